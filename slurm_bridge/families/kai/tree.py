"""A topology's tree over the nodes of a cluster, and the same tree for the next state of that cluster.

    stock ─► floor     the leaf of each row       anew only for rows that changed
          └► outline   the domains                only when one has its first node, or has lost its last one
    tree.cut(incoming) ─► sets of names           only for the domains on the path of a node that came, went or moved
                       └► sums                    added up per question

Sums are not carried on from one state to the next: to copy an array of twenty thousand amounts costs as much as to add
it up. Each question is answered on the floor of the finest level that it asks for: what is below costs nothing.
"""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from slurm_bridge.cluster.columns import Whole
from slurm_bridge.cluster.columns.carried import Rows
from slurm_bridge.cluster.recent_answers import Recent
from slurm_bridge.families.kai.floor import NOWHERE, Floor, Leaves
from slurm_bridge.families.kai.stock import Stock
from slurm_bridge.families.kai.topology import Domain, Topology

#: So many incoming sets are remembered; at twenty thousand nodes each takes two megabytes.
MOST_CUTS = 8

#: So many answers about one cut are remembered.
MOST_ANSWERS = 64


class TreePart:
    """The nodes of a tree that are also in an incoming set, by domain."""

    def __init__(self, floor: Floor, incoming: frozenset[str], before: "TreePart | None") -> None:
        self.outline = floor.outline
        self.members = floor.stock.members
        self.incoming = incoming
        #: The leaf of each row, NOWHERE for a node that does not count.
        self.leaf = np.where(self.members.mask(incoming), floor.leaf, floor.leaf.dtype.type(NOWHERE))
        self.rows: Rows = np.flatnonzero(self.leaf != NOWHERE)
        self._leaves: Leaves = self.leaf[self.rows]
        self.counts = self.sums(None)
        #: Answers that were computed about it, for equal questions.
        self.answers: Recent[Hashable, Any] = Recent(MOST_ANSWERS)
        self._arranged: tuple[list[str], list[int]] | None = None
        self._sets = _carried(before, self) if before is not None else {}

    def sums(self, amounts: Whole | None) -> Whole:
        """What the nodes of each domain have together, by its number; less than nothing counts as nothing.

        Without amounts: how many they are.
        """
        leaves: Whole = np.zeros(len(self.outline.leaves), np.int64)
        np.add.at(leaves, self._leaves, 1 if amounts is None else np.maximum(amounts[self.rows], 0))
        return self.outline.sums(leaves)

    def ends(self) -> tuple[Domain, ...]:
        """The first and the last leaf with nodes; none when there is no node."""
        if not len(self._leaves):
            return ()
        return self.outline.leaves[self._leaves.min()], self.outline.leaves[self._leaves.max()]

    def nodes(self, number: int) -> frozenset[str]:
        """The names in a domain; the same set again until a node of it comes or goes."""
        domain = self.outline.domains[number]
        known = self._sets.get(domain)
        if known is None:
            known = self._sets[domain] = self._gathered(number)
        return known

    @property
    def sets(self) -> Mapping[Domain, frozenset[str]]:
        """The sets that were asked for."""
        return self._sets

    def _gathered(self, number: int) -> frozenset[str]:
        if self.counts[number] == len(self.incoming):
            return self.incoming
        if self._arranged is None:
            # All names leaf by leaf, and where each leaf begins.
            rows = self.rows[np.argsort(self._leaves, kind="stable")]
            counts = np.bincount(self._leaves, minlength=len(self.outline.leaves))
            self._arranged = self.members.names[rows].tolist(), [0, *np.cumsum(counts).tolist()]
        names, ends = self._arranged
        first, end = self.outline.span(number)
        return frozenset(names[ends[first] : ends[end]])


def _carried(before: TreePart, now: TreePart) -> dict[Domain, frozenset[str]]:
    """The sets of those domains in which nothing came, went or moved."""
    if before.outline is not now.outline:
        return {}
    known = min(len(before.leaf), len(now.leaf))
    differ = before.leaf[:known] != now.leaf[:known]
    if before.members is not now.members:
        differ |= before.members.names[:known] != now.members.names[:known]
    leaves = {
        leaf for one in (before, now) for leaf in (*one.leaf[:known][differ].tolist(), *one.leaf[known:].tolist())
    }
    touched = {
        now.outline.leaves[leaf][:depth] for leaf in leaves - {NOWHERE} for depth in range(len(now.outline.numbers))
    }
    return {domain: nodes for domain, nodes in [*before.sets.items()] if domain not in touched}


class _Shared:
    """What the trees of one cluster leave to each other."""

    __slots__ = ("_cuts", "_floors", "_latest")

    def __init__(self) -> None:
        self._cuts: Recent[tuple[int, int], TreePart] = Recent(MOST_CUTS)
        self._latest: dict[int, TreePart] = {}
        self._floors: dict[int, Floor] = {}

    def floor(self, topology: Topology, depth: int, stock: Stock) -> Floor:
        """That of this stock, made from the one before."""
        before = self._floors.get(depth)
        made = self._floors[depth] = Floor.of(topology, depth, stock) if before is None else before.after(stock)
        return made

    def cut(self, floor: Floor, incoming: frozenset[str]) -> TreePart:
        """Made from the one for this set, else from the latest: much of it can be carried over."""
        key = (id(incoming), floor.depth)
        known = self._cuts.get(key)
        before = known if known is not None and known.incoming is incoming else self._latest.get(floor.depth)
        made = self._latest[floor.depth] = TreePart(floor, incoming, before)
        self._cuts.put(key, made)
        return made


class Tree:
    """One topology at one moment. Nothing of it changes: it may be asked by several threads."""

    def __init__(self, topology: Topology, stock: Stock, shared: _Shared) -> None:
        self.topology = topology
        self.stock = stock
        self._shared = shared
        self._floors: dict[int, Floor] = {}
        self._cuts: Recent[tuple[int, int], TreePart] = Recent(MOST_CUTS)

    @classmethod
    def of(cls, topology: Topology, stock: Stock) -> "Tree":
        """From scratch."""
        return cls(topology, stock, _Shared())

    def after(self, stock: Stock) -> "Tree":
        """The tree of another state of the same cluster, later or earlier; this one where nothing is different."""
        rows = stock.since(self.stock)
        same = rows is not None and not len(rows) and stock.members is self.stock.members
        return self if same else Tree(self.topology, stock, self._shared)

    def cut(self, incoming: frozenset[str], depth: int) -> TreePart:
        """The part of it that is in this set of names, told apart down to this depth."""
        key = (id(incoming), depth)
        known = self._cuts.get(key)
        if known is not None and known.incoming is incoming:
            return known
        if depth not in self._floors:
            self._floors[depth] = self._shared.floor(self.topology, depth, self.stock)
        made = self._shared.cut(self._floors[depth], incoming)
        self._cuts.put(key, made)
        return made

    def domain(self, name: str) -> Domain | None:
        """Where a node is; None for one that is nowhere in this topology."""
        row = self.stock.members.index.get(name)
        if row is None:
            return None
        coded = self.stock.domains(self.topology)
        return coded.values[int(coded.codes[row])]
