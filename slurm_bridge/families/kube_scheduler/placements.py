"""A node for each pod of a workload, one pod after the other, as kube-scheduler places them.

What a rule about neighbours (spread, affinity, ports of the host) says of a pod depends on the nodes of all pods before
it: pods of the same workload, and pods of others that have been asked for and are not there yet. So pods with such
rules are placed one by one, and Slurm is asked for exactly these nodes.

    1 beside   what other workloads of the namespace were given here and does not run yet counts as if it ran
    2 place    in rank order: a node that the rules leave and that has room now; where there is none, one that would
               have room if it were empty. When a pod finds no node, the first one is put into another domain
    3 again    where the pods that do not run yet are in the way, without them: they may come elsewhere
"""

import collections
import dataclasses
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from slurm_bridge.cluster import room
from slurm_bridge.cluster.columns import Codes, Mask, NodeColumns, Whole
from slurm_bridge.cluster.columns.coded import HOLE
from slurm_bridge.cluster.facts import NodeFacts
from slurm_bridge.cluster.room import Rows
from slurm_bridge.cluster.rules import neighbours
from slurm_bridge.families.kube_scheduler.filters import Predicates
from slurm_bridge.families.kube_scheduler.scene import Scene, with_pods
from slurm_bridge.model import names
from slurm_bridge.model.job import JobRequest
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.pod import Pod

#: Pods by the name of the node that they are to come to.
Coming = Mapping[str, Sequence[Pod]]

#: So many workloads are remembered, and each for so many seconds after it was planned last: one that waits in Slurm is
#: planned more often.
MOST_WORKLOADS = 4096
STALE_SECONDS = 120.0

#: A workload of more pods is not placed pod by pod. All nodes are looked at about so often in each way of placing one:
#: more would take too long. Each look takes about a millisecond with 1 000 nodes.
MOST_PODS = 128
MOST_LOOKS = 128

#: In so many numbers of pods on each node an even placement is looked for, where a first one was not even.
MOST_ROOMS = 6


#: Slurm gives every node of a job the same number of tasks, and refuses a job of which a node can never have as many.
UNEVEN = "node(s) would have to take as many pods of the job as the fullest of them"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PodPlacement:
    """The node of each pod by its uid, and the pods by node."""

    nodes: Mapping[str, str]
    coming: Coming
    #: There was room for it when it was made.
    roomy: bool = False
    #: The attempt of the job for which it was made.
    attempt: int = 0

    @property
    def most(self) -> int:
        """Pods on the node that has most of them."""
        return max(map(len, self.coming.values()))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Unplaced:
    """The first pod for which no node is left, its number among all, and for how many nodes each reason holds."""

    pod: Pod
    number: int
    reasons: Mapping[str, int]
    #: The row of the node of the first pod, None where that is the one without a node.
    start: int | None = None


class PlannedPods:
    """The pods of workloads that were placed here and have no nodes yet; used from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._planned: OrderedDict[WorkloadKey, tuple[float, PodPlacement]] = OrderedDict()

    def put(self, key: WorkloadKey, placement: PodPlacement, now: float) -> None:
        """Slurm is asked for these nodes."""
        with self._lock:
            self._planned[key] = now, placement
            self._planned.move_to_end(key)
            while len(self._planned) > MOST_WORKLOADS:
                self._planned.popitem(last=False)

    def drop(self, key: WorkloadKey) -> None:
        """The workload has nodes, or may get others than these."""
        with self._lock:
            self._planned.pop(key, None)

    def of(self, key: WorkloadKey) -> PodPlacement | None:
        """What was planned for this workload last."""
        with self._lock:
            found = self._planned.get(key)
        return found[1] if found is not None else None

    def beside(self, key: WorkloadKey, now: float, runs: Callable[[str, Pod], bool]) -> Coming:
        """Pods of other workloads of the namespace that are to come; `runs` says whether a pod is on this node already.

        Nearly all rules are about the own namespace. So one namespace costs others nothing.
        """
        namespace = names.namespace_of(key)
        found: dict[str, list[Pod]] = collections.defaultdict(list)
        with self._lock:
            while self._planned and next(iter(self._planned.values()))[0] < now - STALE_SECONDS:
                self._planned.popitem(last=False)
            others = [placement for other, (_, placement) in self._of(namespace) if other != key]
        for placement in others:
            for node, pods in placement.coming.items():
                found[node] += [pod for pod in pods if not runs(node, pod)]
        return {node: pods for node, pods in found.items() if pods}

    def _of(self, namespace: str) -> Iterator[tuple[WorkloadKey, tuple[float, PodPlacement]]]:
        return ((key, planned) for key, planned in self._planned.items() if names.namespace_of(key) == namespace)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Placer:
    """What one workload is placed by: `nodes` are those that all other rules leave it, `scores` their values by row.

    `seen` gives the scene of a pod, `rules` what to ask about it. `turn` is where among equal nodes the choice begins.
    """

    seen: Callable[[Pod], Scene]
    rules: Callable[[Pod], Predicates]
    request: JobRequest
    nodes: Mask
    scores: NDArray[np.float64]
    turn: int

    def place(self, pods: Sequence[Pod], beside: Coming, before: PodPlacement | None) -> PodPlacement | Unplaced:
        """A node for each pod that has none yet."""
        pods = [pod for pod in pods if not pod.bound]
        for others, empty in ((beside, False), (beside, True), ({}, True)):
            found = self._from_some_domain(pods, others, before if empty else None, empty=empty)
            if isinstance(found, PodPlacement):
                break
        return found

    def has_room(self, placed: PodPlacement, pod: Pod) -> bool:
        """Slurm could start it now: each node has room for as many of these pods as the fullest one gets."""
        columns = self.seen(pod).columns
        slots = self._slots(columns, pod, empty=False)[columns.mask(placed.coming)]
        return len(slots) == len(placed.coming) and bool((slots >= placed.most).all())

    def _from_some_domain(
        self, pods: Sequence[Pod], beside: Coming, before: PodPlacement | None, *, empty: bool
    ) -> PodPlacement | Unplaced:
        """The others have to be near the first pod where it says so: that may have to begin in another domain."""
        scene, first, looks = self.seen(pods[0]), self.nodes, MOST_LOOKS
        slots = self._slots(scene.columns, pods[0], empty=empty)
        domains = _Domains.of(scene, np.where(self.nodes, slots, 0), len(pods))
        start, furthest = first & domains.enough, None
        while True:
            found = self._evenly(pods, beside, before, start, slots, empty=empty)
            if isinstance(found, PodPlacement):
                return found
            furthest = found if furthest is None or found.number > furthest.number else furthest
            looks -= found.number
            first = first & ~(domains.around(found.start) if found.start is not None else domains.enough)
            if looks <= 0 or not domains.codes or not first.any():
                return furthest
            start = first

    def _evenly(
        self,
        pods: Sequence[Pod],
        beside: Coming,
        before: PodPlacement | None,
        first: Mask,
        slots: Whole,
        *,
        empty: bool,
    ) -> PodPlacement | Unplaced:
        """Slurm gives every node of a job the same number of tasks: each node needs room for as many as the fullest."""
        found = self._place(pods, beside, before, first, empty=empty)
        if isinstance(found, Unplaced):
            return found
        columns, most = self.seen(pods[0]).columns, -(-len(pods) // len(found.coming))
        if found.most == most and (slots[columns.mask(found.coming)] >= most).all():
            return found
        rooms = np.unique(np.minimum(slots[self.nodes], len(pods)))[-MOST_ROOMS:]
        for each in sorted({most, -(-most // 2), 1, *rooms[rooms > 0].tolist()}, reverse=True):
            even = self._place(pods, beside, None, first, each, empty=empty)
            if isinstance(even, PodPlacement):
                return even
        start = columns.row(found.nodes[pods[0].uid])
        return Unplaced(pod=pods[-1], number=len(pods), reasons={UNEVEN: len(found.coming)}, start=start)

    def _place(
        self,
        pods: Sequence[Pod],
        beside: Coming,
        before: PodPlacement | None,
        first: Mask,
        most: int | None = None,
        *,
        empty: bool,
    ) -> PodPlacement | Unplaced:
        """With `empty` what nodes have room for now does not matter, and pods stay where they were placed `before`.

        The first pod comes on one of these nodes. With `most`, nodes with room for so many get no more than that.
        """
        columns = self.seen(pods[0]).columns
        crowd, others = _Crowd(columns, beside), _counted(columns, beside)
        mine: dict[str, list[Pod]] = collections.defaultdict(list)
        chosen: dict[str, str] = {}
        taken = np.zeros(len(self.nodes), np.int64)
        for number, pod in enumerate(pods, 1):
            look = _NodesForPod.of(self.seen(pod), crowd, self.rules(pod))
            roomy = room.places(look.columns, pod) > taken if empty else look.slots(pod, self.request) > 0
            if most is not None:
                roomy = roomy & (taken < most) & (self._slots(columns, pod, empty=empty) >= most)
            rows = np.flatnonzero(look.open & (self.nodes if number > 1 else first) & roomy)
            if not rows.size:
                start = look.columns.row(chosen[pods[0].uid]) if chosen else None
                return Unplaced(pod=pod, number=number, reasons=look.reasons(self.nodes), start=start)
            kept = columns.row(before.nodes.get(pod.uid, "")) if before is not None else None
            row = kept if kept is not None and kept in rows else self._best(rows, taken, others)
            node = chosen[pod.uid] = str(columns.names[row])
            taken[row] += 1
            mine[node].append(pod)
            crowd.add(node, pod)
        return PodPlacement(nodes=chosen, coming=dict(mine), roomy=not empty)

    def _slots(self, columns: NodeColumns, pod: Pod, *, empty: bool) -> Whole:
        return room.places(columns, pod) if empty else room.slots(columns, pod, self.request)

    def _best(self, rows: Rows, taken: Whole, others: Whole) -> int:
        """Nodes that the workload has already, then the best scores, then nodes with the fewest pods to come."""
        turns = (rows - self.turn) % len(self.nodes)
        return int(rows[np.lexsort((turns, others[rows], -self.scores[rows], taken[rows] == 0))[0]])


def _counted(columns: NodeColumns, coming: Coming) -> Whole:
    """How many pods come to each node, by row."""
    counts = np.zeros(len(columns), np.int64)
    for name, pods in coming.items():
        row = columns.row(name)
        if row is not None:
            counts[row] = len(pods)
    return counts


class _Crowd:
    """The nodes to which pods come, as if these were there, in columns of their own."""

    def __init__(self, columns: NodeColumns, coming: Coming) -> None:
        self._columns = columns
        self._facts: dict[str, NodeFacts] = {}
        #: The rows that these nodes have among all nodes, in order, and as a mask.
        self.rows: list[int] = []
        self.moved = np.zeros(len(columns), np.bool_)
        for name, pods in coming.items():
            self._put(name, pods)
        self.changed = NodeColumns.of(self._facts)

    def add(self, name: str, pod: Pod) -> None:
        """One more pod."""
        self._put(name, (pod,))
        self.changed = self.changed.after(self._facts, frozenset(self._facts), (name,))

    def _put(self, name: str, pods: Sequence[Pod]) -> None:
        """A node that is gone is passed over."""
        row = self._columns.row(name)
        there = self._facts.get(name) or (self._columns.facts[row] if row is not None else None)
        if row is None or there is None:
            return
        if name not in self._facts:
            self.rows.append(row)
            self.moved[row] = True
        self._facts[name] = with_pods(there, (*there.pods, *pods))


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Domains:
    """The domains in which equal pods have to be together: by their codes, for each key of a term about themselves."""

    codes: tuple[Codes, ...]
    #: The nodes in domains that have room for all of the pods; all nodes where no domain has.
    enough: Mask

    @classmethod
    def of(cls, scene: Scene, slots: Whole, pods: int) -> Self:
        """`slots` is for how many such pods each node has room."""
        columns, labels_of = scene.columns, scene.lookup.namespace_labels
        terms = neighbours.required(scene.pod) if pods > 1 else ()
        keys = {one.topology_key for one in terms if one.selects(scene.pod, labels_of)}
        codes, enough = tuple(columns.label(key).codes for key in sorted(keys)), columns.present
        for one in codes:
            known = one != HOLE
            total = np.bincount(one[known], weights=np.minimum(slots, pods)[known], minlength=1)
            enough = enough & known & (total[np.where(known, one, 0)] >= pods)
        return cls(codes=codes, enough=enough if enough.any() else columns.present)

    def around(self, row: int) -> Mask:
        """The nodes in a domain with this one; where pods need not be together, this one alone."""
        around = np.zeros(len(self.enough), np.bool_)
        around[row] = True
        for codes in self.codes:
            around |= codes == codes[row]
        return around


@dataclasses.dataclass(frozen=True, kw_only=True)
class _NodesForPod:
    """The nodes as one pod finds them when these pods have come, and what rules say of them."""

    columns: NodeColumns
    crowd: _Crowd
    said: tuple[tuple[Mask, str], ...]

    @classmethod
    def of(cls, seen: Scene, crowd: _Crowd, rules: Predicates) -> "_NodesForPod":
        """Nodes to which pods come are judged by themselves, with these pods there; all others beside them."""
        columns, changed = seen.columns, crowd.changed
        if not crowd.rows:
            return cls(columns=columns, crowd=crowd, said=tuple(_said(rules, seen)))
        parts = ((columns, columns.present & ~crowd.moved), (changed, changed.present))
        far, near = (dataclasses.replace(seen, columns=judged, parts=parts) for judged in (columns, changed))
        said = [(mask & ~crowd.moved, reason) for mask, reason in _said(rules, far)]
        for mask, reason in _said(rules, near):
            there = np.zeros(len(columns), np.bool_)
            there[crowd.rows] = mask
            said.append((there, reason))
        return cls(columns=columns, crowd=crowd, said=tuple(said))

    @property
    def open(self) -> Mask:
        """The nodes that no rule denies."""
        left = self.columns.present.copy()
        for mask, _ in self.said:
            left &= ~mask
        return left

    def slots(self, pod: Pod, request: JobRequest) -> Whole:
        """For how many such pods there is room now, beside those to come."""
        found = room.slots(self.columns, pod, request).copy()
        if self.crowd.rows:
            found[self.crowd.rows] = room.slots(self.crowd.changed, pod, request)
        return found

    def reasons(self, nodes: Mask) -> Mapping[str, int]:
        """Of how many of these nodes each reason is true."""
        counts: collections.Counter[str] = collections.Counter()
        for mask, reason in self.said:
            counts[reason] += int(np.count_nonzero(mask & nodes))
        return {reason: count for reason, count in counts.items() if count}


def _said(rules: Predicates, scene: Scene) -> Iterator[tuple[Mask, str]]:
    for rule in rules.values():
        yield from rule(scene)
