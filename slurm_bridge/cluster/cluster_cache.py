"""Follows both sides and gives out snapshots. What it costs follows what changed, never how much there is."""

import dataclasses
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType

from slurm_bridge.cluster.columns.follow import Follower
from slurm_bridge.cluster.facts import Amounts, NodeFacts
from slurm_bridge.cluster.holds import Hold, Holding
from slurm_bridge.cluster.nominations import Nominations
from slurm_bridge.cluster.overlaid import Overlaid
from slurm_bridge.cluster.snapshot import EMPTY, ClusterSnapshot
from slurm_bridge.model import names, quantity
from slurm_bridge.model.node import Node
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.slurmnode import Partition, SlurmNode

RequestsOf = Callable[[Pod], Amounts]


class ClusterCache:
    """Watches and bindings write it, all other packages read it. Any thread may call any method."""

    def __init__(self, requests_of: RequestsOf) -> None:
        self._requests_of = requests_of
        self._lock = threading.Lock()
        self._nodes: dict[str, NodeFacts] = {}
        self._claims: dict[str, set[str]] = {}
        #: Nodes with amounts that cannot be read, and why.
        self._odd: dict[str, str] = {}
        self._offers: Mapping[str, Mapping[str, int]] = {}
        self._holding = Holding()
        self._nominations = Nominations()
        self._slurm: Mapping[str, SlurmNode] = {}
        self._partitions: tuple[Partition, ...] = ()
        self._heterogeneous = False
        self._version = 0
        self._use_version = 0
        self._company_version = 0
        self._given = EMPTY
        self._follower = Follower()
        #: The nodes as the snapshot that was given out last has them.
        self._seen: Overlaid[NodeFacts] = Overlaid.of({})
        #: The nodes that differ from those of the snapshot that was given out last.
        self._touched: dict[str, None] = {}
        #: What holds for as long as no node comes, goes or is linked anew; None: to be worked out.
        self._names: frozenset[str] | None = None
        self._by_slurm: Mapping[str, str] | None = None

    def on_node(self, old: Node | None, new: Node | None) -> None:
        """A node appeared, changed or went."""
        with self._lock:
            if new is not None:
                self._put_node(new)
            elif old is not None:
                name = old.metadata.name
                facts = self._nodes.pop(name, None)
                if facts is not None:
                    self._touched[name] = None
                    self._odd.pop(name, None)
                    self._names = self._by_slurm = None
                    self._unclaim(facts)
                    self._moved()

    def on_pod(self, old: Pod | None, new: Pod | None) -> None:
        """Any pod of any scheduler: it counts from the moment it has a node until it is terminal or gone."""
        shown = new or old
        if shown is None:
            return
        with self._lock:
            if self._nominations.hear(shown.uid, new):
                self._heard()
            if new is None or new.terminal:
                self._release(shown.uid)
            elif new.bound:
                # Amounts are read again only when they can have changed; the pod itself is taken over in any case.
                held = self._holding.get(new.uid)
                settled = held is not None and not held.assumed and held.node == new.spec.node_name
                known = held is not None and settled and old is not None and old.spec == new.spec
                requests = held.requests if held is not None and known else self._amounts_of(new)
                placed = names.LABEL_JOB_ID in new.metadata.labels
                self._hold(
                    new.uid, Hold(node=new.spec.node_name, requests=requests, assumed=False, placed=placed, pod=new)
                )

    def assume(self, uid: str, node: str, requests: Amounts, pod: Pod | None = None) -> None:
        """A binding is on its way: count the pod there until the cluster tells what became of it.

        Without the pod itself its amounts count, and the pods of the node do not show it.
        """
        with self._lock:
            held = self._holding.get(uid)
            if held is None or held.assumed:
                self._hold(uid, Hold(node=node, requests=requests, assumed=True, placed=True, pod=pod))

    def offer(self, offers: Mapping[str, Mapping[str, int]]) -> None:
        """What nodes, by name, have beside what their kubelets count: devices that are given away by claims."""
        with self._lock:
            before, self._offers = self._offers, offers
            for name in {**before, **offers}:
                facts = self._nodes.get(name)
                if facts is not None and before.get(name, {}) != offers.get(name, {}):
                    self._write(dataclasses.replace(facts, allocatable=self._allocatable(facts.node)))
                    self._moved()

    def holds(self, uid: str, node: str) -> bool:
        """This pod counts on that node already."""
        with self._lock:
            held = self._holding.get(uid)
            return held is not None and held.node == node

    def forget(self, uid: str) -> None:
        """The binding did not come to pass; what the cluster itself has told stays."""
        with self._lock:
            held = self._holding.get(uid)
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
            both = {**before, **self._slurm}
            changed = [name for name in both if before.get(name) != self._slurm.get(name)]
            for name in changed:
                self._relink(name)
            self._use_version += 1 if changed else 0
            moved = any(not _same_machine(before.get(name), self._slurm.get(name)) for name in changed)
            if moved or [_terms(p) for p in old_partitions] != [_terms(p) for p in self._partitions]:
                self._moved()
            elif old_partitions != self._partitions:
                self._use_version += 1

    @property
    def version(self) -> int:
        """The version that a snapshot would have now; asking costs nothing, whatever changed."""
        with self._lock:
            return self._version

    def snapshot(self) -> ClusterSnapshot:
        """The cluster now; the same object again while nothing changed."""
        with self._lock:
            if self._given.use_version == self._use_version:
                return self._given
            if self._names is None:
                self._names = frozenset(self._nodes)
            if self._by_slurm is None:
                linked = {facts.slurm_name: name for name, facts in self._nodes.items() if facts.slurm}
                self._by_slurm = MappingProxyType(linked)
            self._seen = self._seen.after(self._nodes, self._touched)
            self._given = ClusterSnapshot(
                version=self._version,
                use_version=self._use_version,
                company_version=self._company_version,
                nodes=self._seen,
                slurm_nodes=self._slurm,
                partitions=self._partitions,
                names=self._names,
                by_slurm=self._by_slurm,
                heterogeneous=self._heterogeneous,
                nominated=self._nominations.by_node,
            )
            self._follower.note(self._use_version, frozenset(self._touched))
            self._touched.clear()
            self._given.follow(self._follower)
            return self._given

    def _moved(self) -> None:
        self._version += 1
        self._heard()

    def _heard(self) -> None:
        """Something that more depends on than what is used of a node."""
        self._company_version += 1
        self._use_version += 1

    def _put_node(self, new: Node) -> None:
        name = new.metadata.name
        known = self._nodes.get(name)
        if known is not None and _same_place(known.node, new):
            self._write(dataclasses.replace(known, node=new))
            self._heard()
            return
        there = self._holding.there(name)
        facts = NodeFacts(
            name=name,
            slurm_name=new.slurm_name,
            node=new,
            slurm=known.slurm if known is not None and known.slurm_name == new.slurm_name else None,
            allocatable=self._allocatable(new),
            used=there.used,
            placed=there.placed,
            pods=there.pods,
        )
        self._write(facts)
        if known is not None and known.slurm_name != new.slurm_name:
            self._unclaim(known)
        self._claims.setdefault(new.slurm_name, set()).add(name)
        self._relink(new.slurm_name)
        self._moved()

    def _allocatable(self, node: Node) -> Amounts:
        """What the node has. An amount that cannot be read counts as 0: this node gets no pod, all others do."""
        name = node.metadata.name
        try:
            found = _amounts({**node.status.allocatable, **self._offers.get(name, {})})
        except (ValueError, ArithmeticError) as error:
            self._odd[name] = f"its allocatable resources cannot be read, so that no pod fits there: {error}"
            return _amounts({})
        self._odd.pop(name, None)
        return found

    def oddity(self, name: str) -> str:
        """Why nothing fits on this node, "" where what it has can be read."""
        return self._odd.get(name, "") if self._odd else ""

    def _unclaim(self, facts: NodeFacts) -> None:
        claimants = self._claims[facts.slurm_name]
        claimants.discard(facts.name)
        if not claimants:
            del self._claims[facts.slurm_name]
        self._relink(facts.slurm_name)

    def _relink(self, slurm_name: str) -> None:
        """Two nodes that claim one Slurm node get none: an allocation could mean either of them."""
        claimants = self._claims.get(slurm_name, ())
        found = self._slurm.get(slurm_name) if len(claimants) == 1 else None
        for name in claimants:
            self._write(dataclasses.replace(self._nodes[name], slurm=found))

    def _write(self, facts: NodeFacts) -> None:
        """The only place where facts of a node change, so that columns follow."""
        before = self._nodes.get(facts.name)
        if before is None:
            self._names = None
        # For every pod that comes or goes: what it keeps of a node has no part in how the node is linked.
        same = before is not None and before.slurm is facts.slurm and before.slurm_name == facts.slurm_name
        if before is None or not (same or _link(before) == _link(facts)):
            self._by_slurm = None
        self._nodes[facts.name] = facts
        self._touched[facts.name] = None

    def _amounts_of(self, pod: Pod) -> Amounts:
        """Amounts that cannot be read count as 0: one odd pod must not stop the watch of all others."""
        try:
            return self._requests_of(pod)
        except (ValueError, ArithmeticError):
            return {}

    def _hold(self, uid: str, hold: Hold) -> None:
        held = self._holding.get(uid)
        self._used(self._holding.hold(uid, hold), held, hold)

    def _release(self, uid: str) -> None:
        held = self._holding.get(uid)
        self._used(self._holding.release(uid), held)

    def _used(self, changed: Collection[str], *holds: Hold | None) -> None:
        """What pods keep of these nodes has changed, by these holds, of which one may be over."""
        if changed and any(hold is not None and hold.pod is not None and hold.pod.spec.affinity for hold in holds):
            self._company_version += 1
        for name in changed:
            facts = self._nodes.get(name)
            if facts is not None:
                self._write(self._holding.there(name).noted(facts))
                self._use_version += 1


def _link(facts: NodeFacts) -> tuple[str, bool]:
    return facts.slurm_name, facts.slurm is not None


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
    if field.name not in ("states", "reason", "used_cpus", "used_memory_mib", "used_gres", "slurmd")
)


def _terms(partition: Partition) -> Partition:
    """What decides whether a job can come to a partition, and which nodes: all but whether it is up at the moment."""
    return dataclasses.replace(partition, states=frozenset())
