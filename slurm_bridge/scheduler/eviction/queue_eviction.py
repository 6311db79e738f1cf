"""Queue evictions: workloads leave because a hook that counts them says so, mostly for a workload of another queue.

What is under way is written on the pods, so that a restart knows it: on those that wait, which workloads leave for them
and from which nodes; on those that leave, for which workload. `cases.QueueEvictionCase` draws the life of each case.

While one of the workloads that leave for another is refused, no further one is evicted: without it the room is not
enough, and those that had left would have left for nothing. If it is spared, so are they. The one that was refused
before is asked first.

A workload that has not started is not evicted: its job is taken back by the cycle, which knows that nothing is bound
just then, and it waits anew. A workload that the API server does not let go is spared after a while, as is one that is
not evicted yet when its asker waits no longer. Nothing but what is ours is ever evicted.
"""

import functools
from collections.abc import Callable, Collection, Iterable, Mapping

from loguru import logger

from slurm_bridge import errors
from slurm_bridge.hooks.evictions import Clearance, Evicts, Recall
from slurm_bridge.model import names
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.pod import Pod
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.eviction import notes
from slurm_bridge.scheduler.eviction.cases import QueueEvictionCase
from slurm_bridge.scheduler.eviction.evictor import Evictor
from slurm_bridge.scheduler.eviction.hold_manager import HoldManager, HoldTerms
from slurm_bridge.scheduler.eviction.store import EvictionStore
from slurm_bridge.scheduler.pod_index import PodIndex
from slurm_bridge.scheduler.pod_marks import Marks
from slurm_bridge.scheduler.queue import WorkQueue
from slurm_bridge.scheduler.workload_pods import PLACED, PodState

Keys = Collection[WorkloadKey]
Recalls = Mapping[WorkloadKey, Recall]
Rooms = Mapping[WorkloadKey, Clearance]

#: Pods that may leave: on nodes, or waiting for one.
ALIVE = (*PLACED, PodState.WANTING)


class QueueEvictions:
    """Used by one thread at a time."""

    def __init__(
        self, context: SchedulerContext, pod_index: PodIndex, queue: WorkQueue, store: EvictionStore, evictor: Evictor
    ) -> None:
        self._context, self._pod_index, self._queue = context, pod_index, queue
        self._store, self._evictor, self._marks = store, evictor, Marks(context, pod_index)
        self._holds = HoldManager(context, pod_index, queue, HoldTerms(by="queues"))
        self._swept = False

    def begin(self) -> None:
        """A leadership begins: the hook has read from the pods what was under way.

        Nodes are held before any workload is looked at: a victim may have gone while no daemon was running.
        """
        self._marks.begin()
        self._holds.begin()
        self._swept = False
        hook = self._context.config.chain.evicts
        for key, room in hook.rooms().items() if hook is not None else ():
            hold = functools.partial(self._hold_again, key, room, self._until(hook))
            self._context.guard.always("recovery of evictions", key, hold)

    def _hold_again(self, asker: WorkloadKey, room: Clearance, until: float) -> None:
        """Its pods say which nodes were cleared for it; believed of those that its victims are on, or have left."""
        nodes = notes.room_on(self._pods(asker, PodState.WANTING))
        self._holds.keep(asker, nodes & self._left_by(room.victims), until)

    def _left_by(self, victims: Iterable[WorkloadKey]) -> frozenset[str]:
        """As their pods say that are still there, and as Slurm remembers the jobs of those that have gone."""
        found, snapshot = set[str](), self._context.keeper.snapshot()
        for key in victims:
            found.update(pod.spec.node_name for pod in self._pods(key, *PodState))
            held = (name for one in self._context.table.of(key) if one.view for name in one.view.nodes or ())
            found.update(node.name for name in held if (node := snapshot.by_slurm_name(name)) is not None)
        return frozenset(found)

    def step(self) -> None:
        """Take every eviction as far as it goes."""
        hook = self._context.config.chain.evicts
        recalls: Recalls = hook.recalls() if hook is not None else {}
        rooms: Rooms = hook.rooms() if hook is not None else {}
        self._marks.settle()
        self._holds.settle()
        self._sweep(recalls, rooms)
        if hook is None or self._context.mirror.failing:
            return
        for asker in dict.fromkeys(one.asker for one in recalls.values()):
            self._holds.keep(asker, self._nodes(asker, recalls), self._until(hook))
        ready = {key for key, room in rooms.items() if self._prepared(key, room, recalls)}
        self._turn_all(hook, recalls, ready, rooms.keys())

    def _turn_all(self, hook: Evicts, recalls: Recalls, ready: Keys, waiting: Keys) -> None:
        held, given_up = set[WorkloadKey](), set[WorkloadKey]()
        for key, recall in sorted(recalls.items(), key=lambda one: not self._store.was_refused(one[0])):
            wanted = not recall.asker or recall.asker in waiting
            case = self._case(key)
            late = recall.asker in held | given_up and not self._is_leaving(case)
            if recall.asker and wanted and (recall.asker not in ready or late):
                continue
            self._try("turn", key, functools.partial(self._turn, recall, case, hook, wanted=wanted))
            if case.refused is not None:
                state = self._store.of(key)
                state.was_refused = True
                (held if state.under_way.eviction is not None else given_up).add(recall.asker)
        for recall in (one for one in recalls.values() if one.asker and one.asker in given_up):
            other = self._store.of(recall.victim).under_way.eviction
            if other is not None and not self._is_leaving(other):
                self._spare(recall, hook, "another workload that was to leave with it was refused", refused=False)

    def _case(self, victim: WorkloadKey) -> QueueEvictionCase:
        under_way = self._store.of(victim).under_way
        under_way.eviction = under_way.eviction or QueueEvictionCase()
        return under_way.eviction

    def _prepared(self, asker: WorkloadKey, room: Clearance, recalls: Recalls) -> bool:
        """All its pods and its victims' pods say what is under way, and others know what they keep away from."""
        noted = self._try("note", asker, functools.partial(self._note, asker, room, recalls))
        victims = [one for one in recalls.values() if one.asker == asker]
        marked = noted and all(self._try("mark", one.victim, functools.partial(self._mark, one)) for one in victims)
        return marked and (self._holds.is_known(asker) or self._holds.is_late(asker))

    def _try(self, what: str, key: WorkloadKey, act: Callable[[], bool]) -> bool:
        """Both sides may be away; the next step tries again."""
        try:
            return self._context.guard.one(f"eviction: {what}", key, act) or False
        except errors.BridgeError as problem:
            logger.bind(workload=key).info("eviction: not now: {}", problem)
        return False

    def _until(self, hook: Evicts | None) -> float:
        """So long after some victim was last about to leave."""
        return self._context.clock.now() + (hook.evict_seconds if hook is not None else 0.0)

    def _nodes(self, asker: WorkloadKey, recalls: Recalls) -> frozenset[str]:
        """Those that its victims are on."""
        victims = (one.victim for one in recalls.values() if one.asker == asker)
        return frozenset(pod.spec.node_name for victim in victims for pod in self._pods(victim, *PLACED))

    def _pods(self, key: WorkloadKey, *stands: PodState) -> tuple[Pod, ...]:
        members = self._pod_index.workload(key)
        return members.pods(*stands) if members is not None else ()

    # -- what is written on pods -------------------------------------------------------------------------------------

    def _sweep(self, recalls: Recalls, rooms: Rooms) -> None:
        """What was written for an eviction that is over is taken back; the first time all workloads are looked at."""
        marked = (*self._store.evictions(), *self._store.noted()) if self._swept else self._pod_index.roots()
        self._swept = True
        for key in marked:
            self._context.guard.one("eviction: sweep", key, functools.partial(self._sweep_one, key, recalls, rooms))

    def _sweep_one(self, key: WorkloadKey, recalls: Recalls, rooms: Rooms) -> None:
        pods = self._pods(key, *ALIVE)
        if key not in recalls:
            self._take_back(key, pods)
        if key not in rooms:
            state = self._store.get(key)
            if state is not None:
                state.under_way.noted = None
            self._marks.take_back(pods, names.ANNOTATION_ROOM)

    def _take_back(self, victim: WorkloadKey, pods: Iterable[Pod]) -> None:
        """It has gone, or stays. A pod that is on its way out goes on to say for which workload: it is true."""
        state = self._store.get(victim)
        if state is not None:
            state.under_way.eviction = None
        self._marks.take_back((pod for pod in pods if not pod.terminating), names.ANNOTATION_MAKES_ROOM)

    def _note(self, asker: WorkloadKey, room: Clearance, recalls: Recalls) -> bool:
        """Write on its pods which workloads leave for it, and tell its users once; False where it has no such pod."""
        pods, under_way = self._pods(asker, PodState.WANTING), self._store.of(asker).under_way
        told = under_way.noted = under_way.noted or frozenset()
        says = {"victims": dict(room.victims), "nodes": sorted(self._holds.nodes(asker))}
        if not self._marks.write(pods, names.ANNOTATION_ROOM, notes.text(says)):
            return bool(pods)
        under_way.noted = told.union(room.victims)
        leaving = sorted(name for one, name in room.victims.items() if one in recalls)
        if not told.issuperset(room.victims) and leaving:
            where = f" in queue {room.where}" if room.where else ""
            count = "1 workload" if len(leaving) == 1 else f"{len(leaving)} workloads"
            text = f"room is made{where}: {count} of queues beyond their guarantees will be evicted"
            logger.bind(workload=asker).info("eviction: {} ({})", text, ", ".join(leaving))
            for pod in pods:
                self._context.status.event(pod, "PreemptionStarted", text)
        return True

    def _mark(self, recall: Recall) -> bool:
        """Write on its pods for which workload they leave; they do not say so longer than that is true."""
        self._case(recall.victim)
        says = notes.text({"uid": recall.asker, "for": recall.cause})
        pods = (pod for pod in self._pods(recall.victim, *ALIVE) if not pod.terminating)
        self._marks.write(pods, names.ANNOTATION_MAKES_ROOM, says)
        return True

    # -- one victim --------------------------------------------------------------------------------------------------

    def _turn(self, recall: Recall, case: QueueEvictionCase, hook: Evicts, *, wanted: bool) -> bool:
        """`wanted`: the workload that it is to leave for still waits."""
        victim = recall.victim
        # Asked first: a workload that is looked at from now on knows that it is to leave, and gets no job.
        idle = self._queue.idle((victim,))
        case.pods.update({pod.uid: pod for pod in self._pods(victim, *PLACED)})
        if not wanted and not self._is_leaving(case):
            self._spare(recall, hook, f"{recall.cause} does not wait any more", refused=False)
        elif case.pods:
            self._evict(recall, case, hook)
        elif self._context.may_have_job(victim):
            self._call_back(recall, case, hook)
        elif idle:
            self._gone(recall, hook)
        return True

    def _is_leaving(self, case: QueueEvictionCase) -> bool:
        """One of its pods has gone, or is on its way."""
        seen = (self._pod_index.get(uid) for uid in case.pods)
        return any(pod is None or pod.terminal or pod.terminating for pod in seen)

    def _call_back(self, recall: Recall, case: QueueEvictionCase, hook: Evicts) -> None:
        """The cycle takes its job back."""
        if not case.announced and self._pod_index.workload(recall.victim) is not None:
            case.announced = True
            for pod in self._pods(recall.victim, PodState.WANTING):
                text = f"Preempted by {recall.cause} before it had a node: it waits in its queue again"
                self._context.status.event(pod, "Preempted", text, warning=True)
            hook.count("taken back")
        self._queue.activate(recall.victim, urgent=True)

    def _evict(self, recall: Recall, case: QueueEvictionCase, hook: Evicts) -> None:
        try:
            self._mark(recall)
            leaving = self._evictor.evict(case.pods, recall.cause, hook.count)
        except errors.NotAuthorized as missing:
            logger.bind(workload=recall.victim).error("eviction: {}; deploy/yunikorn has the rights", missing)
            self._spare(recall, hook, "the right to evict is missing", refused=True)
            return
        if not leaving:
            # It is asked again; of a group that is torn already all have to leave, however long that takes.
            now = self._context.clock.now()
            case.refused = now if case.refused is None else case.refused
            if now - case.refused >= hook.evict_seconds and not self._is_leaving(case):
                self._spare(recall, hook, f"its eviction was refused for {hook.evict_seconds:.0f} s", refused=True)
            return
        case.refused = None
        if self._is_over(recall, case):
            self._gone(recall, hook)

    def _is_over(self, recall: Recall, case: QueueEvictionCase) -> bool:
        """No pod is left, no pod has come after them, and no job."""
        if not self._evictor.have_left(case.pods):
            return False
        newcomers = self._evictor.newcomers(case.pods)
        if newcomers:
            case.pods.update(newcomers)
            return False
        ended = tuple(self._evictor.end_jobs(case.pods, recall.cause))
        placed = self._pods(recall.victim, *PLACED)
        return all(over for _, over in ended) and not placed and not self._context.may_have_job(recall.victim)

    # -- how it ends -------------------------------------------------------------------------------------------------

    def _gone(self, recall: Recall, hook: Evicts) -> None:
        logger.bind(workload=recall.victim).info("eviction: it has made room for {}", recall.cause)
        hook.gone(recall.victim)
        if self._pod_index.workload(recall.victim) is not None:
            self._queue.activate(recall.victim, urgent=False)

    def _spare(self, recall: Recall, hook: Evicts, why: str, *, refused: bool) -> None:
        """It stays, and its pods do not say any more that they leave."""
        logger.bind(workload=recall.victim).warning("eviction: it is spared: {}", why)
        hook.count("spared")
        hook.spared(recall.victim, refused=refused)
        self._take_back(recall.victim, self._pods(recall.victim, *ALIVE))
