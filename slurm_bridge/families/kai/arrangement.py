"""Gives each part of a workload one of its domains, so that all of them have room at once, each on nodes of its own.

Parts are placed one after the other, those around others first. A part that is placed takes the fewest nodes on which
its pods fit: components of a job share no node. Where a part finds no room, parts before it go on to their next domain:

    round 0   each part in the first of its domains that has room still
    round 1   one part in the second of those, each of the others in the first
    round n   all ways in which n domains with room are passed over

So the best ways are found first, and all of them in the end, if the number of steps allows. Equal parts side by side
take domains in one order only: what they exchange is no other way.
"""

import dataclasses
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Generic, TypeVar

import numpy as np

from slurm_bridge.cluster.columns import Mask, Whole
from slurm_bridge.families.kai import fit
from slurm_bridge.families.kai.stock import Stock
from slurm_bridge.families.kai.topology import Amounts

D = TypeVar("D")

#: So often a domain is tried for a part, in all rounds together.
MOST_STEPS = 4096


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ComponentTasks:
    """Equal tasks, which are a component of the job."""

    amounts: Amounts
    count: int

    @property
    def key(self) -> Hashable:
        """Equal for equal ones."""
        return tuple(sorted(self.amounts.items())), self.count


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlacedPart:
    """The tasks of one part that are in no smaller one. `around` is the number of the part around it, None: none is.

    Parts with the same `alike` may be exchanged: they ask for the same, and no other part is within them.
    """

    tasks: tuple[ComponentTasks, ...]
    around: int | None = None
    alike: Hashable = None


class NodesLeft:
    """Which nodes no component has taken yet, by row, and how many tasks each has room for."""

    def __init__(self, stock: Stock) -> None:
        self._stock = stock
        self._pods = stock.free_pods()
        self._taken: Mask = np.zeros(len(stock.members), np.bool_)
        self._copies: dict[Hashable, Whole] = {}

    def take(self, tasks: Sequence[ComponentTasks], nodes: frozenset[str]) -> list[int] | None:
        """The rows of the fewest of these nodes on which the tasks fit, None where there are too few."""
        taken: list[int] = []
        for one in tasks:
            rows = np.flatnonzero(self._stock.members.mask(nodes) & ~self._taken)
            room = self._room(one)[rows]
            largest = np.argsort(-room, kind="stable")
            needed = int(np.searchsorted(np.cumsum(room[largest]), one.count)) + 1
            if needed > len(rows):
                self.give_back(taken)
                return None
            mine = rows[largest[:needed]].tolist()
            self._taken[mine] = True
            taken += mine
        return taken

    def names(self, rows: Sequence[int]) -> frozenset[str]:
        """What these nodes are called."""
        return self._stock.members.at(np.array(rows, np.intp))

    def give_back(self, rows: Sequence[int]) -> None:
        """They are free again."""
        self._taken[rows] = False

    def _room(self, tasks: ComponentTasks) -> Whole:
        known = self._copies.get(tasks.key)
        if known is None:
            rows = len(self._stock.members)
            known = fit.copies(tasks.amounts.items(), tasks.count, self._stock.free, self._pods, rows)
            self._copies[tasks.key] = known
        return known


class Arrangements(Generic[D]):
    """All ways to place parts, best first. `domains` of a part follow from those of the part around it (or None)."""

    def __init__(
        self,
        parts: Sequence[PlacedPart],
        left: NodesLeft,
        domains: Callable[[int, D | None], Sequence[D]],
        nodes: Callable[[D], frozenset[str]],
    ) -> None:
        self._parts, self._left = parts, left
        self._domains, self._nodes = domains, nodes
        self._chosen: list[tuple[int, D]] = []
        self._steps = MOST_STEPS
        self._more = True
        self._twins = [_twin(parts, number) for number in range(len(parts))]

    def __iter__(self) -> Iterator[tuple[D, ...]]:
        passed_over = 0
        while self._more and self._steps > 0:
            self._more = False
            yield from self._placed(passed_over)
            passed_over += 1

    def _placed(self, passed_over: int) -> Iterator[tuple[D, ...]]:
        """The ways for the parts that are not placed yet that pass over so many domains with room."""
        number = len(self._chosen)
        if number == len(self._parts):
            if passed_over == 0:
                yield tuple(domain for _, domain in self._chosen)
            return
        part, twin = self._parts[number], self._twins[number]
        around = self._chosen[part.around][1] if part.around is not None else None
        first = self._chosen[twin][0] if twin is not None else 0
        skipped = 0
        for place, domain in enumerate(self._domains(number, around)[first:], first):
            if self._steps <= 0:
                return
            self._steps -= 1
            rows = self._left.take(part.tasks, self._nodes(domain))
            if rows is None:
                continue
            if skipped > passed_over:
                self._left.give_back(rows)
                self._more = True
                return
            self._chosen.append((place, domain))
            try:
                yield from self._placed(passed_over - skipped)
            finally:
                self._chosen.pop()
                self._left.give_back(rows)
            skipped += 1


def disjoint(
    wanted: Sequence[tuple[frozenset[str], Sequence[ComponentTasks]]], left: NodesLeft
) -> list[frozenset[str]] | None:
    """A share of its domain for each component, such that all fit; None where they do not fit at once.

    Each gets the nodes that it takes. Of nodes that are left over the smallest domain has them, in which components
    share evenly.
    """
    taken: list[frozenset[str]] = []
    for nodes, tasks in wanted:
        rows = left.take(tasks, nodes)
        if rows is None:
            return None
        taken.append(left.names(rows))
    gone, shares = frozenset[str]().union(*taken), [*taken]
    by_domain: dict[frozenset[str], list[int]] = {}
    for place, (nodes, tasks) in enumerate(wanted):
        if tasks:
            by_domain.setdefault(nodes, []).append(place)
    for nodes, places in sorted(by_domain.items(), key=lambda pair: len(pair[0])):
        over = sorted(nodes - gone)
        gone |= nodes
        for turn, place in enumerate(places):
            shares[place] |= frozenset(over[turn :: len(places)])
    return shares


def _twin(parts: Sequence[PlacedPart], number: int) -> int | None:
    """The last part before this one that it may be exchanged with."""
    mine = parts[number]
    if mine.alike is None:
        return None
    alike = (one for one in range(number - 1, -1, -1) if parts[one] == mine)
    return next(alike, None)
