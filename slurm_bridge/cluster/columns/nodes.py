"""The nodes of a snapshot, one row each."""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from slurm_bridge.cluster.columns.coded import Coded, Mask, Whole, units, units_given
from slurm_bridge.cluster.columns.members import NodeRows
from slurm_bridge.cluster.columns.pods import PodColumns
from slurm_bridge.cluster.columns.records import Records
from slurm_bridge.cluster.columns.table import Past, RecordTable, Strand
from slurm_bridge.cluster.facts import NOTHING, Amounts, NodeFacts
from slurm_bridge.model.node import Node
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.slurmnode import SlurmNode

V = TypeVar("V")

Facts = Mapping[str, NodeFacts]


class _PodsBefore:
    """The pods' columns that were worked out last, and for which step of the nodes' pods."""

    __slots__ = ("columns", "step")

    def __init__(self) -> None:
        self.columns: PodColumns | None = None
        self.step = 0


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """Columns by what they look at: the node in Kubernetes, the node in Slurm, or what pods there keep of it.

    A pod that comes or goes moves only the last of these, and all others stay as they are.
    """

    kube: Strand
    slurm: Strand
    pods: Strand
    before: _PodsBefore

    @classmethod
    def new(cls) -> "Sides":
        """Of a table from scratch."""
        return cls(Strand(Past(), 0), Strand(Past(), 0), Strand(Past(), 0), _PodsBefore())

    def after(self, moved: Sequence[tuple[int, NodeFacts | None, NodeFacts | None]]) -> "Sides":
        """After these rows have changed, each with its record before and now."""
        kube, slurm, pods = list[int](), list[int](), list[int]()
        for row, one, other in moved:
            if one is other:
                continue
            if one is None or other is None:
                kube.append(row)
                slurm.append(row)
                pods.append(row)
                continue
            if one.node is not other.node or one.allocatable is not other.allocatable:
                kube.append(row)
            if one.slurm is not other.slurm:
                slurm.append(row)
            if one.pods is not other.pods or one.used is not other.used:
                pods.append(row)
        return Sides(self.kube.after(kube), self.slurm.after(slurm), self.pods.after(pods), self.before)


class NodeColumns(RecordTable[NodeFacts]):
    """Columns over the nodes of one snapshot. Rows stay where they are while nodes come and go."""

    def __init__(
        self, records: Records[NodeFacts | None], members: NodeRows, past: Past, step: int, sides: Sides
    ) -> None:
        super().__init__(records, past, step)
        self.members = members
        #: The name of the node in each row, "" in a hole; which rows hold a node; and the node of each row.
        self.names = members.names
        self.present = members.present
        self.facts: Sequence[NodeFacts | None] = records
        self._facts = records
        self._sides = sides
        self._pods: PodColumns | None = None

    @classmethod
    def of(cls, nodes: Facts, names: frozenset[str] | None = None) -> "NodeColumns":
        """From scratch, in the order of the mapping."""
        every = frozenset(nodes) if names is None else names
        return cls(Records.of(nodes.values()), NodeRows(list(nodes), every), Past(), 0, Sides.new())

    @property
    def sides(self) -> Sides:
        """What each side says: the very same of columns between which it did not change."""
        return self._sides

    @property
    def pods(self) -> PodColumns:
        """The pods on these nodes."""
        if self._pods is not None:
            return self._pods
        with self.past.lock:
            # Under the lock: another thread may have made them meanwhile.
            if self._pods is None:
                self._pods = self._pods_now()
            return self._pods

    def row(self, name: str) -> int | None:
        """Where a node is."""
        return self.members.index.get(name)

    def mask(self, nodes: Iterable[str]) -> Mask:
        """The rows of these nodes; at once for sets that `nodes` has made, and for all names of the snapshot."""
        return self.members.mask(nodes)

    def nodes(self, mask: Mask) -> frozenset[str]:
        """The names in these rows; the same set again for an equal mask."""
        return self.members.nodes(mask)

    def unmoved(self, before: "NodeColumns") -> bool:
        """The same nodes, of which neither side says anything else than before; what runs there may have changed."""
        mine, theirs = self._sides, before.sides
        return mine.kube is theirs.kube and mine.slurm is theirs.slurm and self.members is before.members

    def of_node(self, name: str, of: Callable[[Node], V]) -> Coded[V]:
        """What `of` says of each node in Kubernetes: an attribute that stays whatever runs there."""
        found: Coded[V] = self._sides.kube.column(self.records, (name, True), lambda facts: of(facts.node))
        return found

    def of_slurm(self, name: str, of: Callable[[SlurmNode | None], int]) -> Whole:
        """A number of each node in Slurm, None where Slurm has none; it stays until Slurm says something else."""
        found: Whole = self._sides.slurm.column(self.records, (name, False), lambda facts: of(facts.slurm))
        return found

    def of_pods(self, name: str, of: Callable[[Sequence[Pod]], V]) -> Coded[V]:
        """What `of` says of the pods on each node."""
        found: Coded[V] = self._sides.pods.column(self.records, (name, True), lambda facts: of(facts.pods))
        return found

    def whole_of_allocatable(self, name: str, of: Callable[[Amounts], int]) -> Whole:
        """A number of what each node has in all."""
        found: Whole = self._sides.kube.column(self.records, (name, False), lambda facts: of(facts.allocatable))
        return found

    def whole_of_pods(self, name: str, of: Callable[[Amounts, Sequence[Pod]], int]) -> Whole:
        """A number of what the pods on each node request in all, and of these pods as far as they are known in full."""
        found: Whole = self._sides.pods.column(self.records, (name, False), lambda facts: of(facts.used, facts.pods))
        return found

    def label(self, key: str) -> Coded[str | None]:
        """A label of the nodes, None where a node has none of this key.

        Keys that no node has share one column: users choose how many of them they name.
        """
        if key not in self.label_keys:
            return self.of_node("label that no node has", lambda _: None)
        return self.of_node(f"label {key}", lambda node: node.metadata.labels.get(key))

    @property
    def label_keys(self) -> frozenset[str]:
        """Every label key that some node has."""
        of_each = self.of_node("label keys", lambda node: frozenset(node.metadata.labels))
        known: _Keys = self._sides.kube.past.shared("label keys", _Keys)
        return known.together(of_each)

    def allocatable(self, resource: str) -> Whole:
        """What the nodes have in all, in the units of `columns.units`."""

        def of(there: Amounts) -> int:
            return units_given(resource, there.get(resource, NOTHING))

        return self.whole_of_allocatable(f"allocatable {resource}", of)

    def used(self, resource: str) -> Whole:
        """What the pods there request."""
        return self.whole_of_pods(f"used {resource}", lambda used, _: units(resource, used.get(resource, NOTHING)))

    def unplaced(self, resource: str) -> Whole:
        """What of it pods request that no job of Slurm's has brought there: daemons, and what others schedule."""

        def of(facts: NodeFacts) -> int:
            return units(resource, facts.used.get(resource, NOTHING) - facts.placed.get(resource, NOTHING))

        found: Whole = self._sides.pods.column(self.records, (f"unplaced {resource}", False), of)
        return found

    def given_away(self, resource: str) -> Whole:
        """What Slurm has given of it to jobs of all users, as last reported; Slurm reports cpu and memory."""

        def of(slurm: SlurmNode | None) -> int:
            if slurm is None:
                return 0
            return {"cpu": 1000 * slurm.used_cpus, "memory": slurm.used_memory_mib << 20}.get(resource, 0)

        return self.of_slurm(f"given away {resource}", of)

    def after(self, nodes: Facts, names: frozenset[str], changed: Collection[str]) -> "NodeColumns":
        """The columns of another snapshot, which differs in these nodes at most."""
        if not changed and names is self.members.every:
            return self
        with self.past.lock:
            return self._after(nodes, names, changed)

    def _after(self, nodes: Facts, names: frozenset[str], changed: Collection[str]) -> "NodeColumns":
        index, members = self.members.index, self.members
        now: dict[int, NodeFacts | None]
        if names is members.every:
            now = {row: nodes[name] for name in changed if (row := index.get(name)) is not None}
        else:
            moved = sorted(name for name in changed if (name in index) is not (name in nodes))
            members = self._moved(moved, nodes, names)
            rows = {row for name in changed for row in (index.get(name), members.index.get(name)) if row is not None}
            now = {row: nodes[name] if (name := members.names[row]) else None for row in rows}
        known = len(self._facts)
        sides = self._sides.after(
            [(row, self._facts[row] if row < known else None, there) for row, there in now.items()]
        )
        records = self._facts.replaced(now, len(members), None)
        return NodeColumns(records, members, self.past, self.past.step(list(now)), sides)

    def _moved(self, moved: Sequence[str], nodes: Facts, names: frozenset[str]) -> NodeRows:
        """Nodes that went leave holes; those that came fill holes first."""
        found: list[str] = self.members.names.tolist()
        for name in moved:
            if name not in nodes:
                found[self.members.index[name]] = ""
        holes = [row for row, name in enumerate(found) if not name]
        for name in moved:
            if name in nodes and holes:
                found[holes.pop()] = name
            elif name in nodes:
                found.append(name)
        return NodeRows(found, names)

    def _pods_now(self) -> PodColumns:
        before, strand = self._sides.before, self._sides.pods
        rows = strand.past.between(before.step, strand.step)
        if before.columns is None or rows is None:
            made = PodColumns.of([_pods_of(facts) for facts in self.records])
        elif len(rows):
            # An older table can be shorter, but its pods' columns are not: what is beyond it is empty there.
            known = len(self)
            changed = [_pods_of(self.records[row]) if row < known else () for row in rows.tolist()]
            made = before.columns.after(rows, changed, known)
        else:
            made = before.columns
        before.columns, before.step = made, strand.step
        return made


class _Keys:
    """The label keys of all nodes, as they were put together last."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: tuple[Coded[frozenset[str]] | None, frozenset[str]] = (None, frozenset())

    def together(self, of_each: Coded[frozenset[str]]) -> frozenset[str]:
        """Worked out when some node's keys have changed."""
        column, keys = self._known
        if column is not of_each:
            keys = frozenset[str]().union(*of_each.values)
            self._known = (of_each, keys)
        return keys


def _pods_of(facts: NodeFacts | None) -> Sequence[Pod]:
    return () if facts is None else facts.pods
