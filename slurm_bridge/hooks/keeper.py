"""Follows both sides and gives out snapshots. What it costs follows what changed, never how much there is."""

import dataclasses
import threading
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from types import MappingProxyType

from slurm_bridge.hooks.snapshot import EMPTY, NOTHING, Amounts, ClusterSnapshot, NodeFacts
from slurm_bridge.model import names, quantity
from slurm_bridge.model.node import Node
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.slurmnode import Partition, SlurmNode

RequestsOf = Callable[[Pod], Amounts]
#: What is asked for in all on each node.
_Sums = dict[str, dict[str, Fraction]]


@dataclasses.dataclass(frozen=True, slots=True)
class _Hold:
    """What one pod keeps on a node; assumed: we have decided so, and the cluster has not said so yet.

    `placed`: it has the node from Slurm.
    """

    node: str
    requests: Amounts
    assumed: bool
    placed: bool


class Keeper:
    """Fed by watches and by whoever binds, read by everybody; all methods may be called from any thread."""

    def __init__(self, requests_of: RequestsOf) -> None:
        self._requests_of = requests_of
        self._lock = threading.Lock()
        self._nodes: dict[str, NodeFacts] = {}
        self._claims: dict[str, set[str]] = {}
        self._used: _Sums = {}
        self._placed: _Sums = {}
        self._holds: dict[str, _Hold] = {}
        self._slurm: Mapping[str, SlurmNode] = {}
        self._partitions: tuple[Partition, ...] = ()
        self._heterogeneous = False
        self._version = 0
        self._use_version = 0
        self._given = EMPTY

    def on_node(self, old: Node | None, new: Node | None) -> None:
        """A node appeared, changed or went."""
        with self._lock:
            if new is not None:
                self._put_node(new)
            elif old is not None:
                self._drop_node(old.metadata.name)

    def on_pod(self, old: Pod | None, new: Pod | None) -> None:
        """Any pod of any scheduler: it counts from the moment it has a node until it is terminal or gone."""
        with self._lock:
            if new is None or new.terminal:
                shown = new or old
                if shown is not None:
                    self._release(shown.uid)
            elif new.bound:
                self._observe(old, new)

    def assume(self, uid: str, node: str, requests: Amounts) -> None:
        """A binding is on its way: count the pod there until the cluster tells what became of it."""
        with self._lock:
            held = self._holds.get(uid)
            if held is None or held.assumed:
                self._hold(uid, _Hold(node, requests, assumed=True, placed=True))

    def holds(self, uid: str, node: str) -> bool:
        """This pod counts on that node already."""
        with self._lock:
            held = self._holds.get(uid)
            return held is not None and held.node == node

    def forget(self, uid: str) -> None:
        """The binding did not come to pass; what the cluster itself has told stays."""
        with self._lock:
            held = self._holds.get(uid)
            if held is not None and held.assumed:
                self._release(uid)

    def set_slurm(
        self, nodes: Iterable[SlurmNode], partitions: Iterable[Partition], *, heterogeneous: bool = False
    ) -> None:
        """What Slurm says now of its nodes and partitions, in full, and whether it takes heterogeneous jobs."""
        with self._lock:
            if heterogeneous is not self._heterogeneous:
                self._heterogeneous = heterogeneous
                self._moved()
            before, self._slurm = self._slurm, MappingProxyType({node.name: node for node in nodes})
            old_partitions, self._partitions = self._partitions, tuple(partitions)
            changed = [name for name in before.keys() | self._slurm.keys() if before.get(name) != self._slurm.get(name)]
            for name in changed:
                self._relink(name)
            self._use_version += 1 if changed else 0
            moved = any(not _same_machine(before.get(name), self._slurm.get(name)) for name in changed)
            if moved or [_membership(p) for p in old_partitions] != [_membership(p) for p in self._partitions]:
                self._moved()
            elif old_partitions != self._partitions:
                self._use_version += 1

    def snapshot(self) -> ClusterSnapshot:
        """The cluster now; the same object again while nothing changed."""
        with self._lock:
            if self._given.use_version != self._use_version:
                self._given = self._take()
            return self._given

    def _take(self) -> ClusterSnapshot:
        last = self._given
        same = last.version == self._version
        linked = {facts.slurm_name: name for name, facts in self._nodes.items() if facts.slurm} if not same else {}
        return ClusterSnapshot(
            version=self._version,
            use_version=self._use_version,
            nodes=MappingProxyType(dict(self._nodes)),
            slurm_nodes=self._slurm,
            partitions=self._partitions,
            names=last.names if same else frozenset(self._nodes),
            by_slurm=last.by_slurm if same else MappingProxyType(linked),
            heterogeneous=self._heterogeneous,
        )

    def _moved(self) -> None:
        self._version += 1
        self._use_version += 1

    def _put_node(self, new: Node) -> None:
        name = new.metadata.name
        known = self._nodes.get(name)
        if known is not None and _same_place(known.node, new):
            self._nodes[name] = dataclasses.replace(known, node=new)
            self._use_version += 1
            return
        self._nodes[name] = NodeFacts(
            name=name,
            slurm_name=new.slurm_name,
            node=new,
            slurm=None,
            allocatable=_amounts(new.status.allocatable),
            used=_frozen(self._used.get(name)),
            placed=_frozen(self._placed.get(name)),
        )
        if known is not None and known.slurm_name != new.slurm_name:
            self._unclaim(known)
        self._claims.setdefault(new.slurm_name, set()).add(name)
        self._relink(new.slurm_name)
        self._moved()

    def _drop_node(self, name: str) -> None:
        facts = self._nodes.pop(name, None)
        if facts is not None:
            self._unclaim(facts)
            self._moved()

    def _unclaim(self, facts: NodeFacts) -> None:
        claimants = self._claims[facts.slurm_name]
        claimants.discard(facts.name)
        if not claimants:
            del self._claims[facts.slurm_name]
        self._relink(facts.slurm_name)

    def _relink(self, slurm_name: str) -> None:
        """Two nodes that claim one Slurm node get none: nobody could say which of them an allocation means."""
        claimants = self._claims.get(slurm_name, ())
        found = self._slurm.get(slurm_name) if len(claimants) == 1 else None
        for name in claimants:
            self._nodes[name] = dataclasses.replace(self._nodes[name], slurm=found)

    def _observe(self, old: Pod | None, new: Pod) -> None:
        held = self._holds.get(new.uid)
        settled = held is not None and not held.assumed and held.node == new.spec.node_name
        if not settled or old is None or old.spec != new.spec:
            placed = names.LABEL_JOB_ID in new.metadata.labels
            self._hold(new.uid, _Hold(new.spec.node_name, self._amounts_of(new), assumed=False, placed=placed))

    def _amounts_of(self, pod: Pod) -> Amounts:
        """Amounts that nobody can read count as nothing: one odd pod must not stop the watch of all others."""
        try:
            return self._requests_of(pod)
        except ValueError:
            return {}

    def _hold(self, uid: str, hold: _Hold) -> None:
        held = self._holds.get(uid)
        self._holds[uid] = hold
        if held is not None and dataclasses.replace(held, assumed=hold.assumed) == hold:
            return
        if held is not None:
            self._count(held, -1)
        self._count(hold, 1)

    def _release(self, uid: str) -> None:
        held = self._holds.pop(uid, None)
        if held is not None:
            self._count(held, -1)

    def _count(self, hold: _Hold, sign: int) -> None:
        _add(self._used, hold, sign)
        if hold.placed:
            _add(self._placed, hold, sign)
        facts = self._nodes.get(hold.node)
        if facts is not None:
            used, placed = _frozen(self._used.get(hold.node)), _frozen(self._placed.get(hold.node))
            self._nodes[hold.node] = dataclasses.replace(facts, used=used, placed=placed)
            self._use_version += 1


def _add(sums: _Sums, hold: _Hold, sign: int) -> None:
    used = sums.setdefault(hold.node, {})
    for name, amount in hold.requests.items():
        used[name] = used.get(name, NOTHING) + sign * amount
        if not used[name]:
            del used[name]
    if not used:
        del sums[hold.node]


def _frozen(used: Mapping[str, Fraction] | None) -> Amounts:
    return MappingProxyType(dict(used or {}))


def _amounts(written: Mapping[str, str | int | float]) -> Amounts:
    return MappingProxyType({name: quantity.parse(amount) for name, amount in written.items()})


def _same_place(one: Node, other: Node) -> bool:
    """Nothing differs that a rule about placement looks at; a kubelet's heartbeat changes none of it."""
    return (
        one.uid == other.uid
        and one.metadata.labels == other.metadata.labels
        and one.metadata.deletion_timestamp == other.metadata.deletion_timestamp
        and one.spec == other.spec
        and one.ready == other.ready
        and one.status.allocatable == other.status.allocatable
    )


def _same_machine(one: SlurmNode | None, other: SlurmNode | None) -> bool:
    """Only what runs on it, or how it feels, differs."""
    if one is None or other is None:
        return one is other
    return all(getattr(one, field) == getattr(other, field) for field in _MACHINE)


#: What a node is, and not what runs on it or how it feels.
_MACHINE = tuple(
    field.name
    for field in dataclasses.fields(SlurmNode)
    if field.name not in ("states", "reason", "used_cpus", "used_memory_mib", "used_gres")
)


def _membership(partition: Partition) -> tuple[str, tuple[str, ...]]:
    return partition.name, partition.nodes
