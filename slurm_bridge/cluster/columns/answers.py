"""Answers about nodes that are kept by row: mappings for looking up one name, arrays for all."""

import collections
from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from slurm_bridge.cluster.columns.coded import Codes, Mask
from slurm_bridge.cluster.columns.members import FEW, NodeRows
from slurm_bridge.cluster.columns.nodes import NodeColumns

Nodes = frozenset[str]


class Reasons(Mapping[str, tuple[str, ...]]):
    """Why nodes are denied: `codes` by row says which of the `reasons`; those of code 0 mean not at all."""

    __slots__ = ("_codes", "_reasons", "denied", "members")

    def __init__(self, columns: NodeColumns | NodeRows, codes: Codes, reasons: tuple[tuple[str, ...], ...]) -> None:
        self.members = columns if isinstance(columns, NodeRows) else columns.members
        #: The rows that are denied.
        self.denied: Mask = (codes > 0) & self.members.present
        self._codes = codes
        self._reasons = reasons

    def left(self, nodes: Nodes) -> Nodes:
        """Those of these nodes that are not denied; the same set where none is."""
        if len(nodes) <= FEW and not self._denies(nodes):
            return nodes
        asked = self.members.mask(nodes)
        if np.count_nonzero(asked) != len(nodes):
            return nodes.difference(self)
        stay = asked & ~self.denied
        return nodes if np.count_nonzero(stay) == len(nodes) else self.members.nodes(stay)

    def _denies(self, nodes: Nodes) -> bool:
        """Some of these nodes."""
        index, denied = self.members.index, self.denied
        for name in nodes:  # noqa: SIM110 - every hook is asked so of every sample, and `any` takes twice as long
            if (row := index.get(name)) is not None and denied[row]:
                return True
        return False

    def also(self, other: "Reasons") -> "Reasons":
        """Only those that another denies too, with the reasons of this one."""
        if other.members is self.members:
            denied = self.denied & other.denied
        else:
            denied = self.denied & self.members.mask(frozenset(other))
        return Reasons(self.members, np.where(denied, self._codes, 0), self._reasons)

    def counts(self) -> Mapping[str, int]:
        """How often each reason was given; one node can have several, and one of them twice."""
        found: collections.Counter[str] = collections.Counter()
        often = np.bincount(self._codes[self.denied], minlength=1).tolist()
        for number, reasons in zip(often, self._reasons, strict=False):
            for reason in reasons if number else ():
                found[reason] += number
        return found

    def __getitem__(self, name: str) -> tuple[str, ...]:
        row = self.members.index.get(name)
        if row is None or not self.denied[row]:
            raise KeyError(name)
        return self._reasons[self._codes[row]]

    def __contains__(self, name: object) -> bool:
        row = self.members.index.get(name) if isinstance(name, str) else None
        return row is not None and bool(self.denied[row])

    def __iter__(self) -> Iterator[str]:
        names: list[str] = self.members.names[self.denied].tolist()
        return iter(names)

    def __len__(self) -> int:
        return int(np.count_nonzero(self.denied))

    def __repr__(self) -> str:
        return f"Reasons({dict(self)!r})"


#: A number for each row, and in which rows it counts.
Valued = tuple[NDArray[np.float64] | NDArray[np.int64], Mask]


class Numbers(Mapping[str, float]):
    """A number for each node in the rows of a mask. Made at the first use: with a single tier there is none."""

    __slots__ = ("_made", "_make", "_members")

    def __init__(self, columns: NodeColumns, make: Callable[[], Valued]) -> None:
        self._members = columns.members
        self._made: tuple[NDArray[np.float64], Mask] | None = None
        self._make = make

    def _both(self) -> tuple[NDArray[np.float64], Mask]:
        if self._made is None:
            values, mask = self._make()
            self._made = values.astype(np.float64), mask & self._members.present
        return self._made

    @property
    def _values(self) -> NDArray[np.float64]:
        return self._both()[0]

    @property
    def _mask(self) -> Mask:
        return self._both()[1]

    def best(self, nodes: Nodes, k: int) -> list[str]:
        """So many of these nodes, the highest first, equal ones by name; without a number a node has 0."""
        rows = np.flatnonzero(self._members.mask(nodes))
        numbers = np.where(self._mask[rows], self._values[rows], 0.0)
        if 0 < k < len(rows):
            least = np.partition(numbers, len(rows) - k)[len(rows) - k]
            among = numbers >= least
            rows, numbers = rows[among], numbers[among]
        order = np.lexsort((self._members.rank[rows], -numbers))[: max(0, k)]
        found: list[str] = self._members.names[rows[order]].tolist()
        return found

    def values_of(self, columns: NodeColumns) -> NDArray[np.float64]:
        """The numbers by the rows of these columns, 0 where there is none."""
        if columns.members is self._members:
            return np.where(self._mask, self._values, 0.0)
        found = (self.get(name, 0.0) for name in columns.names.tolist())
        return np.fromiter(found, np.float64, len(columns))

    def __getitem__(self, name: str) -> float:
        row = self._members.index.get(name)
        if row is None or not self._mask[row]:
            raise KeyError(name)
        return float(self._values[row])

    def __contains__(self, name: object) -> bool:
        row = self._members.index.get(name) if isinstance(name, str) else None
        return row is not None and bool(self._mask[row])

    def __iter__(self) -> Iterator[str]:
        names: list[str] = self._members.names[self._mask].tolist()
        return iter(names)

    def __len__(self) -> int:
        return int(np.count_nonzero(self._mask))

    def __repr__(self) -> str:
        return f"Numbers({dict(self)!r})"
