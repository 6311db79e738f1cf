"""How good nodes are by the order that an application or its partition chose: emptiest first, or fullest first."""

import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from slurm_bridge.cluster.columns import Mask, NodeColumns, Numbers, units
from slurm_bridge.cluster.memo import VersionCache
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.yunikorn.demands import MEMORY
from slurm_bridge.families.yunikorn.queues.config import documents
from slurm_bridge.families.yunikorn.queues.config.documents import PartitionDocument
from slurm_bridge.families.yunikorn.queues.orders import WEIGHTS, NodePolicy, node_policy
from slurm_bridge.families.yunikorn.queues.quantities import VCORE
from slurm_bridge.hooks.base import Ask, Tiers
from slurm_bridge.model.node import Node
from slurm_bridge.model.slurmnode import SlurmNode
from slurm_bridge.translate import resources

#: It is measured once in so many seconds at most: with each change all waiting workloads are looked at again.
EVERY = 2.0
#: What Slurm says of a node on which jobs can start when there is room, and what contradicts that.
_OPEN = frozenset({"IDLE", "MIXED", "ALLOCATED"})
_CLOSED = frozenset({"DRAIN", "DOWN", "FAIL", "ERROR", "MAINTENANCE", "NOT_RESPONDING", "INVALID_REG", "POWER_DRAIN"})
_SHUT, _RESERVED, _FREE = range(3)

#: From so many nodes on the first tier is what it is for all scores: a burst must not wait for a few of them.
LARGE = 100
#: On smaller clusters it has at least one node of so many.
PART = 10

#: Scores of registered orders by name and function, for the version of what is in use.
_REGISTERED: VersionCache[tuple[str, int], Numbers] = VersionCache()

#: How much of a kind others than the bridge have on these nodes, all together.
Taken = Callable[[str, Mask], int]


def kinds(partition: PartitionDocument) -> frozenset[str]:
    """What the size of the cluster is measured in: cpu and memory, and whatever queues are given a part of."""
    found = {VCORE, MEMORY}
    for _, queue in documents.walk(partition.root):
        found.update(queue.guaranteed or (), queue.max or ())
        if queue.template is not None:
            found.update(queue.template.guaranteed or (), queue.template.max or ())
    return frozenset(found)


def size(
    columns: NodeColumns,
    kinds: Iterable[str] = (VCORE, MEMORY),
    kept: frozenset[str] = frozenset(),
    inside: Mask | None = None,
    taken: Taken = lambda _kind, _nodes: 0,
) -> Mapping[str, int]:
    """What of the whole cluster the queues can use, by kind; one that no usable node has is not named.

    A node that takes no pod any more counts with what its jobs still have: else others would be evicted for that.
    What pods have that Slurm did not place is not shared out. A node that is `kept` for a workload of ours is part
    of it: that one has been let in already, and would be counted twice. Of nodes that are not `inside` nothing counts;
    `taken` is what is not there for the queues of a kind on some nodes.
    """
    among = columns.present if inside is None else inside
    # Both sides let jobs start there, be it only those of ours.
    kube = columns.of_node("queues usable", _takes_pods).where(bool)
    slurm = columns.of_slurm("queues usable in slurm", _takes_jobs)
    open_ = among & kube & ((slurm >= _FREE) | ((slurm >= _RESERVED) & columns.mask(kept)))
    found: dict[str, int] = {}
    for kind in sorted(kinds):
        name = "cpu" if kind == VCORE else kind
        others = columns.unplaced(name)
        there = int(np.maximum(columns.allocatable(name) - others, 0)[open_].sum())
        if there:
            still = int(np.maximum(columns.used(name) - others, 0)[among & ~open_].sum())
            found[kind] = max(0, there - taken(kind, open_)) + still
    return found


class Measure:
    """The size, when it may have changed; nodes come, go and are drained all the time in a large cluster."""

    def __init__(self, partition: PartitionDocument) -> None:
        self._kinds = kinds(partition)
        self._kept = frozenset[str]()
        self._version = -1
        self._again = -math.inf

    def keeps(self, nodes: frozenset[str]) -> None:
        """These are kept for workloads of ours."""
        if nodes != self._kept:
            self._kept, self._version = nodes, -1

    def is_due(self, version: int, now: float) -> bool:
        """The cluster is another one, and was not measured just now."""
        return version != self._version and now >= self._again

    def news(self, snapshot: ClusterSnapshot, now: float) -> Mapping[str, int]:
        """What it is now; it is not due again before some time has passed."""
        self._version, self._again = snapshot.use_version, now + EVERY
        return self._size(snapshot, now)

    def _size(self, snapshot: ClusterSnapshot, _now: float) -> Mapping[str, int]:
        return size(snapshot.columns, self._kinds, self._kept)


def _takes_pods(node: Node) -> bool:
    return node.ready and not node.spec.unschedulable and node.metadata.deletion_timestamp is None


def _takes_jobs(slurm: SlurmNode | None) -> int:
    if slurm is None or not slurm.states & _OPEN or slurm.states & _CLOSED:
        return _SHUT
    return _RESERVED if "RESERVED" in slurm.states else _FREE


def scores(snapshot: ClusterSnapshot, policy: str, sort: documents.NodeSort) -> Numbers:
    """Higher is better: what is left of a node, or for binpacking what is used of it, as weighted parts of 1.

    What Slurm has given away counts as used, or what pods ask for where that is more. A registered order says itself
    how good a node is.
    """
    order = sort.registered.get(policy)
    if order is None:
        return _by_usage(snapshot.columns, node_policy(policy), sort.weights)
    key = (policy, id(order))
    return _REGISTERED.get(snapshot.use_version, key, lambda: _by_order(snapshot.columns, order, sort.weights))


def _by_order(columns: NodeColumns, order: documents.NodeOrder, weights: Mapping[str, float]) -> Numbers:
    """Node by node, for it is foreign code; what it says that is no number comes last."""
    kinds = sorted({VCORE, MEMORY, *weights})
    names = {kind: "cpu" if kind == VCORE else kind for kind in kinds}
    there = {kind: columns.allocatable(name).tolist() for kind, name in names.items()}
    used = {kind: _taken(columns, name).tolist() for kind, name in names.items()}
    values = np.full(len(columns.present), -math.inf)
    for row in np.flatnonzero(columns.present).tolist():
        score = float(order({kind: there[kind][row] for kind in kinds}, {kind: used[kind][row] for kind in kinds}))
        values[row] = -score if math.isfinite(score) else -math.inf
    return Numbers(columns, lambda: (np.nan_to_num(values, neginf=np.finfo(np.float64).min), columns.present))


def _by_usage(columns: NodeColumns, policy: NodePolicy, weights: Mapping[str, float]) -> Numbers:
    counted: NDArray[np.float64] = np.zeros(len(columns.present))
    used: NDArray[np.float64] = np.zeros(len(columns.present))
    for kind, weight in (weights or WEIGHTS).items():
        name = "cpu" if kind == VCORE else kind
        there = columns.allocatable(name).astype(np.float64)
        taken = _taken(columns, name).astype(np.float64)
        used += weight * np.divide(taken, there, out=np.zeros_like(there), where=there > 0)
        counted += weight * (there > 0)
    usage = np.divide(used, counted, out=np.zeros_like(used), where=counted > 0)
    return Numbers(columns, lambda: (usage if policy is NodePolicy.BINPACKING else 1 - usage, columns.present))


def _taken(columns: NodeColumns, name: str) -> NDArray[np.int64]:
    taken: NDArray[np.int64] = np.maximum(columns.used(name), columns.given_away(name))
    return taken


def tiers(columns: NodeColumns, scores: Numbers, among: Mask, ask: Ask, seconds: float) -> Tiers | None:
    """On a small cluster: as few of the best nodes as have room for the workload, then all of them.

    None where the cluster is large, or is too full: then scores count as they always do.
    """
    count = int(np.count_nonzero(among))
    if count >= LARGE:
        return None
    places = _places(columns, ask)
    rows = np.flatnonzero(among & (places > 0))
    best_first = rows[np.argsort(-scores.values_of(columns)[rows], kind="stable")]
    held, wanted = np.cumsum(places[best_first]), len(ask.workload.pods)
    if not len(held) or held[-1] < wanted:
        return None
    needed = int(np.searchsorted(held, wanted)) + 1
    return Tiers(count=2, first=max(needed, -(-count // PART)), widen_after=seconds)


def _places(columns: NodeColumns, ask: Ask) -> NDArray[np.int64]:
    """For so many pods as large as the largest there is room on each node now. Slurm gives whole processors."""
    pods = [shape.pods[0] for shape in ask.shapes] or [ask.workload.pods[0]]
    most: dict[str, Fraction] = {}
    for pod in pods:
        for name, amount in resources.requests_of(pod).items():
            most[name] = max(most.get(name, Fraction(0)), Fraction(math.ceil(amount) if name == "cpu" else amount))
    found = np.full(len(columns.present), len(ask.workload.pods), np.int64)
    for name, amount in most.items():
        if amount > 0:
            left = np.maximum(columns.allocatable(name) - _taken(columns, name), 0)
            found = np.minimum(found, left // units(name, amount))
    return np.minimum(found, 1) if ask.request.exclusive else found
