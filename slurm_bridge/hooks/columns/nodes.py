"""The nodes of a snapshot, one row each."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from slurm_bridge.hooks.columns.coded import Coded, Mask, Whole, units, units_given
from slurm_bridge.hooks.columns.members import Members
from slurm_bridge.hooks.columns.pods import PodColumns
from slurm_bridge.hooks.columns.table import Past, Table
from slurm_bridge.hooks.facts import NOTHING, NodeFacts
from slurm_bridge.model.pod import Pod

Facts = Mapping[str, NodeFacts]


class _PodsBefore:
    """The pods' columns that were worked out last, and for which step of the nodes."""

    __slots__ = ("columns", "step")

    def __init__(self) -> None:
        self.columns: PodColumns | None = None
        self.step = 0


class NodeColumns(Table[NodeFacts]):
    """Columns over the nodes of one snapshot. Rows stay where they are while nodes come and go."""

    def __init__(
        self, records: Sequence[NodeFacts | None], members: Members, past: Past, step: int, before: _PodsBefore
    ) -> None:
        super().__init__(records, past, step)
        self.members = members
        self._before = before
        self._pods: PodColumns | None = None

    @classmethod
    def of(cls, nodes: Facts, names: frozenset[str] | None = None) -> "NodeColumns":
        """From scratch, in the order of the mapping."""
        every = frozenset(nodes) if names is None else names
        return cls(list(nodes.values()), Members(list(nodes), every), Past(), 0, _PodsBefore())

    @property
    def names(self) -> NDArray[np.object_]:
        """The name of the node in each row, "" in a hole."""
        return self.members.names

    @property
    def present(self) -> Mask:
        """The rows that hold a node."""
        return self.members.present

    @property
    def facts(self) -> Sequence[NodeFacts | None]:
        """The node of each row."""
        return self.records

    @property
    def pods(self) -> PodColumns:
        """The pods on these nodes."""
        if self._pods is not None:
            return self._pods
        with self._past.lock:
            return self._pods_now()

    def row(self, name: str) -> int | None:
        """Where a node is."""
        return self.members.index.get(name)

    def mask(self, nodes: Iterable[str]) -> Mask:
        """The rows of these nodes; at once for sets that `nodes` has made, and for all names of the snapshot."""
        return self.members.mask(nodes)

    def nodes(self, mask: Mask) -> frozenset[str]:
        """The names in these rows; the same set again for an equal mask."""
        return self.members.nodes(mask)

    def label(self, key: str) -> Coded[str | None]:
        """A label of the nodes, None where a node has none of this key."""
        return self.attribute(f"label {key}", lambda facts: facts.node.metadata.labels.get(key))

    def allocatable(self, resource: str) -> Whole:
        """What the nodes have in all, in the units of `columns.units`."""
        return self.whole(
            f"allocatable {resource}",
            lambda facts: units_given(resource, facts.allocatable.get(resource, NOTHING)),
        )

    def used(self, resource: str) -> Whole:
        """What the pods there request."""
        return self.whole(f"used {resource}", lambda facts: units(resource, facts.used.get(resource, NOTHING)))

    def given_away(self, resource: str) -> Whole:
        """What Slurm has given of it to jobs, whoever's they are and as it told last; it tells of cpu and memory."""
        return self.whole(f"given away {resource}", _GIVEN.get(resource, _none))

    def after(self, nodes: Facts, names: frozenset[str], changed: Collection[str]) -> "NodeColumns":
        """The columns of another snapshot, which differs in these nodes at most."""
        if not changed and names is self.members.every:
            return self
        with self._past.lock:
            return self._after(nodes, names, changed)

    def _after(self, nodes: Facts, names: frozenset[str], changed: Collection[str]) -> "NodeColumns":
        index, records = self.members.index, list(self._records)
        moved = [name for name in changed if (name in index) is not (name in nodes)]
        members = self._moved(moved, nodes, names) if moved or names is not self.members.every else self.members
        records += [None] * (len(members) - len(records))
        rows = {row for name in changed for row in (index.get(name), members.index.get(name)) if row is not None}
        for row in rows:
            name = members.names[row]
            records[row] = nodes[name] if name else None
        return NodeColumns(records, members, self._past, self._past.step(list(rows)), self._before)

    def _moved(self, moved: Sequence[str], nodes: Facts, names: frozenset[str]) -> Members:
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
        return Members(found, names)

    def _pods_now(self) -> PodColumns:
        """Under the lock: another thread may have made them meanwhile."""
        if self._pods is not None:
            return self._pods
        before = self._before
        rows = self._past.between(before.step, self.step)
        if before.columns is None or rows is None:
            made = PodColumns.of([_pods_of(facts) for facts in self._records])
        else:
            # An older table can be shorter, but its pods' columns are not: what is beyond it is empty there.
            known = len(self)
            changed = [_pods_of(self._records[row]) if row < known else () for row in rows.tolist()]
            made = before.columns.after(rows, changed, known)
        before.columns, before.step, self._pods = made, self.step, made
        return made


def _cpus_given(facts: NodeFacts) -> int:
    return 1000 * facts.slurm.used_cpus if facts.slurm is not None else 0


def _memory_given(facts: NodeFacts) -> int:
    return facts.slurm.used_memory_mib << 20 if facts.slurm is not None else 0


def _none(_: NodeFacts) -> int:
    return 0


_GIVEN: Mapping[str, Callable[[NodeFacts], int]] = {"cpu": _cpus_given, "memory": _memory_given}


def _pods_of(facts: NodeFacts | None) -> Sequence[Pod]:
    return () if facts is None else facts.pods
