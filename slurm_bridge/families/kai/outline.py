"""The domains of a topology that have nodes, down to some level, by number, and how they stand within each other."""

import bisect
import collections
import functools
import itertools
from collections.abc import Iterable, Mapping

import numpy as np

from slurm_bridge.cluster.columns import Whole
from slurm_bridge.cluster.columns.carried import Rows
from slurm_bridge.cluster.columns.table import frozen
from slurm_bridge.families.kai.domain_order import Branch
from slurm_bridge.families.kai.topology import Domain, Topology


class Outline:
    """Numbers go level by level from the root, and by the domains' order in a level. The lowest ones are the leaves."""

    def __init__(self, topology: Topology, depth: int, leaves: Iterable[Domain]) -> None:
        self.topology = topology
        self.leaves = tuple(sorted(set(leaves)))
        between = ({leaf[:above] for leaf in self.leaves} for above in range(1, depth))
        levels = [((),), *map(sorted, between), self.leaves]
        self.domains: tuple[Domain, ...] = tuple(itertools.chain.from_iterable(levels))
        ends = itertools.accumulate(map(len, levels), initial=0)
        self.numbers = tuple(itertools.starmap(range, itertools.pairwise(ends)))
        self.index: Mapping[Domain, int] = {domain: number for number, domain in enumerate(self.domains)}

    def sums(self, leaves: Whole) -> Whole:
        """Amounts of the leaves, added up level by level."""
        sums: Whole = np.zeros(len(self.domains), np.int64)
        sums[self.numbers[-1].start :] = leaves
        for numbers in self.numbers[:0:-1]:
            within = slice(numbers.start, numbers.stop)
            np.add.at(sums, self._parents[within], sums[within])
        return frozen(sums)

    def span(self, number: int) -> tuple[int, int]:
        """From which leaf to which a domain reaches: those within it stand side by side."""
        first, width = self._spans
        return int(first[number]), int(first[number] + width[number])

    @functools.cached_property
    def branch(self) -> Branch:
        """All domains in order, grown from below: what is within a domain is there before it."""
        within: Mapping[Domain, list[Branch]] = {}
        for level, numbers in reversed([*zip(self.topology.above(len(self.numbers) - 1), self.numbers, strict=True)]):
            grown = collections.defaultdict(list)
            for number in numbers:
                domain = self.domains[number]
                children = tuple(within.get(domain, ()))
                grown[domain[:-1]].append(Branch(number=number, domain=domain, level=level, children=children))
            within = grown
        return within[()][0]

    @functools.cached_property
    def _parents(self) -> Rows:
        """The root's is itself, and not used."""
        return np.fromiter((self.index[domain[:-1]] for domain in self.domains), np.intp, len(self.domains))

    @functools.cached_property
    def _spans(self) -> tuple[Rows, Whole]:
        """The first leaf of each domain, which stands right before all that are within it, and how many there are."""
        firsts = (bisect.bisect_left(self.leaves, domain) for domain in self.domains)
        widths = self.sums(np.ones(len(self.leaves), np.int64))
        return np.fromiter(firsts, np.intp, len(self.domains)), widths
