"""What trees are made of: nodes by row, where each is, and what is free on it."""

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, Self

from slurm_bridge.cluster.columns import Coded, Whole
from slurm_bridge.cluster.columns.carried import Rows
from slurm_bridge.cluster.columns.members import NodeRows
from slurm_bridge.cluster.columns.table import Past, RecordTable
from slurm_bridge.families.kai.topology import Amounts, Domain, Topology


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StockNode:
    """A node. What pods that end still hold (`releasing`) is as good as free."""

    name: str
    labels: Mapping[str, str]
    idle: Amounts
    releasing: Amounts = dataclasses.field(default_factory=dict)
    free_pods: int | None = None

    def free(self, resource: str) -> int:
        """What could be had of this type."""
        return self.idle.get(resource, 0) + self.releasing.get(resource, 0)


class Stock(Protocol):
    """The nodes at one moment, by row; arrays are shared and never written."""

    @property
    def members(self) -> NodeRows:
        """Which row is which node."""

    def domains(self, topology: Topology) -> Coded[Domain | None]:
        """Where each node is, down to the lowest level; None for one that is nowhere in this topology."""

    def free(self, resource: str) -> Whole:
        """What could be had of this type on each node, 0 in holes; less than nothing counts as nothing."""

    def free_pods(self) -> Whole | None:
        """How many more pods each node takes; None where that is not counted."""

    def since(self, before: Self) -> Rows | None:
        """The rows in which this may differ from another stock of the same nodes; None when unknown."""


#: For a node that does not say how many pods it takes; no workload has as many.
_ANY_NUMBER = 2**31


class StockNodes:
    """A stock of records. One that follows another costs what has changed."""

    def __init__(self, table: RecordTable[StockNode], members: NodeRows) -> None:
        self._table = table
        self.members = members

    @classmethod
    def of(cls, nodes: Iterable[StockNode]) -> "StockNodes":
        """From scratch, in this order."""
        records = tuple(nodes)
        names = [node.name for node in records]
        return cls(RecordTable(records, Past(), 0), NodeRows(names, frozenset(names)))

    def after(self, changed: Iterable[StockNode], gone: Iterable[str] = ()) -> "StockNodes":
        """With these nodes as they are now, known or new, and without those that are gone."""
        told = {node.name: node for node in changed}
        index = self.members.index
        left = [name for name in gone if name in index and name not in told]
        new = [name for name in told if name not in index]
        members = self._moved(left, new) if left or new else self.members
        records = [*self._table.records, *itertools.repeat(None, len(members) - len(self._table))]
        touched = {members.index[name]: node for name, node in told.items()}
        rows: dict[int, StockNode | None] = dict.fromkeys((index[name] for name in left), None) | touched
        for row, node in rows.items():
            records[row] = node
        past = self._table.past
        return StockNodes(RecordTable(records, past, past.step(list(rows))), members)

    def domains(self, topology: Topology) -> Coded[Domain | None]:
        return self._table.attribute(f"domain {topology.name}", lambda node: topology.domain(node.labels))

    def free(self, resource: str) -> Whole:
        return self._table.whole(f"free {resource}", lambda node: node.free(resource))

    def free_pods(self) -> Whole:
        return self._table.whole("free pods", lambda node: _ANY_NUMBER if node.free_pods is None else node.free_pods)

    def since(self, before: "StockNodes") -> Rows | None:
        return self._table.since(before._table)  # noqa: SLF001 - another one of this class

    def _moved(self, left: Sequence[str], new: Sequence[str]) -> NodeRows:
        """Nodes that went leave holes; those that came fill holes first."""
        names: list[str] = self.members.names.tolist()
        for name in left:
            names[self.members.index[name]] = ""
        holes = [row for row, name in enumerate(names) if not name]
        for row, name in zip(holes, new, strict=False):
            names[row] = name
        names += new[len(holes) :]
        return NodeRows(names, (self.members.every | frozenset(new)) - frozenset(left))
