"""Which domain of one level each row is in, and the same for the next state of the cluster."""

import dataclasses
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from slurm_bridge.cluster.columns import Coded
from slurm_bridge.cluster.columns.carried import Rows
from slurm_bridge.families.kai.outline import Outline
from slurm_bridge.families.kai.stock import Stock
from slurm_bridge.families.kai.topology import Domain, Topology

#: The leaf of a row that is in none.
NOWHERE = -1

#: Leaves by row.
Leaves = NDArray[np.signedinteger[Any]]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Floor:
    """The domains down to this depth, of which those of the level itself are the leaves, and the leaf of each row."""

    depth: int
    outline: Outline
    leaf: Leaves
    stock: Stock
    coded: Coded[Domain | None]

    @classmethod
    def of(cls, topology: Topology, depth: int, stock: Stock) -> Self:
        """From scratch."""
        coded = stock.domains(topology)
        outline = Outline(topology, depth, (domain[:depth] for domain in coded.values if domain is not None))
        places = {leaf: place for place, leaf in enumerate(outline.leaves)}
        # Numbers of 16 bits are sorted ten times as fast.
        kind = np.int16 if len(places) <= np.iinfo(np.int16).max else np.int32
        found = (NOWHERE if domain is None else places[domain[:depth]] for domain in coded.values)
        table: Leaves = np.array([*found, NOWHERE], kind)
        return cls(depth, outline, table[coded.codes], stock, coded)

    def after(self, stock: Stock) -> "Floor":
        """The same of another state: anew only what is said of rows that changed.

        From scratch where a domain has its first node, or has lost its last one.
        """
        coded = stock.domains(self.outline.topology)
        if coded is self.coded:
            return dataclasses.replace(self, stock=stock)
        rows = stock.since(self.stock)
        leaf = None if rows is None else self._moved(coded, rows)
        if leaf is None:
            return Floor.of(self.outline.topology, self.depth, stock)
        return Floor(self.depth, self.outline, leaf, stock, coded)

    def _moved(self, coded: Coded[Domain | None], rows: Rows) -> Leaves | None:
        """None where that would take other domains than these."""
        known, length = len(self.leaf), len(coded.codes)
        if length < known:
            return None
        leaf = np.append(self.leaf, np.full(length - known, NOWHERE, self.leaf.dtype))
        left = {*leaf[rows].tolist()} - {NOWHERE}
        first = self.outline.numbers[-1].start
        for row, code in zip(rows.tolist(), coded.codes[rows].tolist(), strict=True):
            domain = coded.values[code] if code >= 0 else None
            number = first + NOWHERE if domain is None else self.outline.index.get(domain[: self.depth])
            if number is None:
                return None
            leaf[row] = number - first
        return leaf if all((leaf == one).any() for one in left) else None
