"""Having workloads of ours leave for others, because a hook that counts them says so.

    noted     on whoever waits: who goes for it, and from which nodes: others keep away from these; on the victims: for
              whom they go. Then a restart knows both
    told      the API server is asked to evict the pods, which lets budgets speak; a refusal is asked again
    leaving   the pods run to their end; the job of a group is ended when all of them have gone
    gone      it has no job and no pod on a node any more: the hook hears of it, and what it used is the asker's

While one of those who go for somebody is refused, nobody else is told: without him the room is not enough, and who had
gone would have gone for nothing. If he is spared, so are they. Who was refused before is asked first.

A victim that has not started is not evicted: its job is taken back by the cycle, which knows that nothing is bound just
then, and it waits anew. A victim that the API server does not let go is spared after a while, as is one that nobody has
been told of yet when its asker waits no longer. Nothing but what is ours is ever told to go.
"""

import dataclasses
import functools
import threading
from collections.abc import Callable, Collection, Iterable, Mapping

from loguru import logger

from slurm_bridge import errors
from slurm_bridge.hooks.evictions import Evicts, Recall, Room
from slurm_bridge.model import names
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.pod import Pod
from slurm_bridge.scheduler import notes
from slurm_bridge.scheduler.census import Census
from slurm_bridge.scheduler.clearing import Clearing, Terms
from slurm_bridge.scheduler.evicting import Evictor
from slurm_bridge.scheduler.marking import Marks
from slurm_bridge.scheduler.members import PLACED, Standing
from slurm_bridge.scheduler.queue import Queue
from slurm_bridge.scheduler.tools import Tools

Keys = Collection[WorkloadKey]


@dataclasses.dataclass(slots=True, kw_only=True)
class Case:
    """One victim: its pods as they were when they were told to go, and since when one of them is refused."""

    pods: dict[str, Pod] = dataclasses.field(default_factory=dict)
    refused: float | None = None
    announced: bool = False


class Recalling:
    """Turned by one thread; `begin` may be called by another."""

    def __init__(self, tools: Tools, census: Census, queue: Queue) -> None:
        self._tools, self._census, self._queue = tools, census, queue
        self._evictor, self._marks = Evictor(tools, census), Marks(tools, census)
        self._clearing = Clearing(tools, census, queue, Terms(by="queues"))
        self._lock = threading.Lock()
        self._cases: dict[WorkloadKey, Case] = {}
        #: Who says on his pods that others go for him, and of whom he was told.
        self._noted: dict[WorkloadKey, frozenset[WorkloadKey]] = {}
        #: Who was refused at some time.
        self._kept: set[WorkloadKey] = set()
        self._swept = False

    def begin(self) -> None:
        """A leadership begins: the hook has read from the pods what was under way.

        Nodes are promised before anybody is looked at: a victim may have gone while nobody looked.
        """
        with self._lock:
            self._cases.clear()
            self._noted.clear()
            self._marks.begin()
            self._clearing.begin()
            self._swept = False
            hook = self._tools.config.chain.evicts
            for uid, room in hook.rooms().items() if hook is not None else ():
                keep = functools.partial(self._keep_on, uid, room, self._until(hook))
                self._tools.guard.always("recovery of evictions", uid, keep)

    def _keep_on(self, uid: WorkloadKey, room: Room, until: float) -> None:
        """Its pods say which nodes were cleared for it; believed of those that its victims are on, or have left."""
        crew = self._census.crew(uid)
        nodes = notes.room_on(crew.pods(Standing.WANTING)) if crew is not None else frozenset[str]()
        self._clearing.keep(uid, nodes & self._left_by(room.victims), until)

    def _left_by(self, victims: Iterable[WorkloadKey]) -> frozenset[str]:
        """As their pods say that are still there, and as Slurm remembers the jobs of those that have gone."""
        found, snapshot = set[str](), self._tools.keeper.snapshot()
        for uid in victims:
            crew = self._census.crew(uid)
            found.update(pod.spec.node_name for pod in (crew.pods(*Standing) if crew is not None else ()))
            held = (name for one in self._tools.table.of(uid) if one.view for name in one.view.nodes or ())
            found.update(node.name for name in held if (node := snapshot.by_slurm_name(name)) is not None)
        return frozenset(found)

    @property
    def cases(self) -> tuple[WorkloadKey, ...]:
        """Those who are on their way out, by uid."""
        return tuple(self._cases)

    def step(self) -> None:
        """Take everybody as far as it goes."""
        with self._lock:
            self._step()

    def _step(self) -> None:
        hook = self._tools.config.chain.evicts
        recalls: Mapping[WorkloadKey, Recall] = hook.recalls() if hook is not None else {}
        rooms: Mapping[WorkloadKey, Room] = hook.rooms() if hook is not None else {}
        self._marks.settle()
        self._clearing.settle()
        self._sweep(recalls, rooms)
        if hook is None or self._tools.mirror.failing:
            return
        for asker in dict.fromkeys(one.asker for one in recalls.values()):
            self._clearing.keep(asker, self._nodes(asker, recalls), self._until(hook))
        ready = {uid for uid, room in rooms.items() if self._prepared(uid, room, recalls)}
        self._turn_all(hook, recalls, ready, rooms.keys())

    def _turn_all(self, hook: Evicts, recalls: Mapping[WorkloadKey, Recall], ready: Keys, waiting: Keys) -> None:
        self._kept = {uid for uid in self._kept if self._census.crew(uid) is not None}
        held, given_up = set[WorkloadKey](), set[WorkloadKey]()
        for uid, recall in sorted(recalls.items(), key=lambda one: one[0] not in self._kept):
            wanted = not recall.asker or recall.asker in waiting
            case = self._cases.setdefault(uid, Case())
            late = recall.asker in held | given_up and not self._is_leaving(case)
            if recall.asker and wanted and (recall.asker not in ready or late):
                continue
            self._try("turn", uid, functools.partial(self._turn, recall, case, hook, wanted=wanted))
            if case.refused is not None:
                self._kept.add(uid)
                (held if uid in self._cases else given_up).add(recall.asker)
        for recall in (one for one in recalls.values() if one.asker and one.asker in given_up):
            other = self._cases.get(recall.victim)
            if other is not None and not self._is_leaving(other):
                self._spare(recall, hook, "another one who was to go with it was refused", refused=False)

    def _prepared(self, uid: WorkloadKey, room: Room, recalls: Mapping[WorkloadKey, Recall]) -> bool:
        """It is written who goes for it, on all of them, and others know what they keep away from."""
        noted = self._try("note", uid, functools.partial(self._note, uid, room, recalls))
        victims = [one for one in recalls.values() if one.asker == uid]
        marked = noted and all(self._try("mark", one.victim, functools.partial(self._mark, one)) for one in victims)
        return marked and self._clearing.holds(uid)

    def _try(self, what: str, uid: WorkloadKey, act: Callable[[], bool]) -> bool:
        """Both sides may be away; the next step tries again."""
        try:
            return self._tools.guard.one(f"eviction: {what}", uid, act) or False
        except errors.BridgeError as problem:
            logger.bind(workload=uid).info("eviction: not now: {}", problem)
        return False

    def _until(self, hook: Evicts | None) -> float:
        """So long after somebody was last about to go."""
        return self._tools.clock.now() + (hook.evict_seconds if hook is not None else 0.0)

    def _nodes(self, asker: WorkloadKey, recalls: Mapping[WorkloadKey, Recall]) -> frozenset[str]:
        """Those that its victims are on."""
        crews = (self._census.crew(one.victim) for one in recalls.values() if one.asker == asker)
        return frozenset(pod.spec.node_name for crew in crews if crew is not None for pod in crew.pods(*PLACED))

    # -- what is written on pods -------------------------------------------------------------------------------------

    def _sweep(self, recalls: Mapping[WorkloadKey, Recall], rooms: Mapping[WorkloadKey, Room]) -> None:
        """What was written for a preemption that is over is taken back; at the beginning everybody is looked at."""
        marked = self._census.roots() if not self._swept else (*self._cases, *self._noted)
        self._swept = True
        for uid in marked:
            self._tools.guard.one("eviction: sweep", uid, functools.partial(self._sweep_one, uid, recalls, rooms))

    def _sweep_one(
        self, uid: WorkloadKey, recalls: Mapping[WorkloadKey, Recall], rooms: Mapping[WorkloadKey, Room]
    ) -> None:
        crew = self._census.crew(uid)
        pods = crew.pods(*PLACED, Standing.WANTING) if crew is not None else ()
        if uid not in recalls:
            self._take_back(uid, pods)
        if uid not in rooms:
            self._noted.pop(uid, None)
            self._marks.take_back(pods, names.ANNOTATION_ROOM)

    def _take_back(self, uid: WorkloadKey, pods: Iterable[Pod]) -> None:
        """It has gone, or stays. Whoever is on his way out keeps what he says: it is true."""
        self._cases.pop(uid, None)
        self._marks.take_back((pod for pod in pods if not pod.terminating), names.ANNOTATION_MAKES_ROOM)

    def _note(self, uid: WorkloadKey, room: Room, recalls: Mapping[WorkloadKey, Recall]) -> bool:
        """Whoever waits says who goes for him, and is told of it once; False where nobody of him is there."""
        crew = self._census.crew(uid)
        pods = crew.pods(Standing.WANTING) if crew is not None else ()
        told = self._noted.setdefault(uid, frozenset())
        says = {"victims": dict(room.victims), "nodes": sorted(self._clearing.nodes(uid))}
        if not self._marks.write(pods, names.ANNOTATION_ROOM, notes.text(says)):
            return bool(pods)
        self._noted[uid] = told.union(room.victims)
        going = sorted(name for one, name in room.victims.items() if one in recalls)
        if not told.issuperset(room.victims) and going:
            where = f" in queue {room.where}" if room.where else ""
            count = "1 workload" if len(going) == 1 else f"{len(going)} workloads"
            text = f"room is made{where}: {count} with more than their queues are entitled to have to go"
            logger.bind(workload=uid).info("eviction: {} ({})", text, ", ".join(going))
            for pod in pods:
                self._tools.voice.event(pod, "PreemptionStarted", text)
        return True

    def _mark(self, recall: Recall) -> bool:
        """Its pods say for whom they go; whatever becomes of it, they do not say so longer than that is true."""
        self._cases.setdefault(recall.victim, Case())
        crew = self._census.crew(recall.victim)
        pods = crew.pods(*PLACED, Standing.WANTING) if crew is not None else ()
        says = notes.text({"uid": recall.asker, "for": recall.whom})
        self._marks.write((pod for pod in pods if not pod.terminating), names.ANNOTATION_MAKES_ROOM, says)
        return True

    # -- one victim --------------------------------------------------------------------------------------------------

    def _turn(self, recall: Recall, case: Case, hook: Evicts, *, wanted: bool) -> bool:
        """`wanted`: whoever it is to go for still waits."""
        uid = recall.victim
        # Asked first: whoever is looked at from now on knows that it is to go, and gets no job.
        idle = self._queue.idle((uid,))
        crew = self._census.crew(uid)
        placed = crew.pods(*PLACED) if crew is not None else ()
        case.pods.update({pod.uid: pod for pod in placed})
        if not wanted and not self._is_leaving(case):
            self._spare(recall, hook, f"{recall.whom} does not wait any more", refused=False)
        elif case.pods:
            self._evict(recall, case, hook)
        elif not self._tools.may_have_job(uid):
            if idle:
                self._gone(recall, hook)
        else:
            self._call_back(recall, case, hook)
        return True

    def _is_leaving(self, case: Case) -> bool:
        """Somebody of it has gone, or is on his way."""
        seen = (self._census.get(uid) for uid in case.pods)
        return any(pod is None or pod.terminal or pod.terminating for pod in seen)

    def _call_back(self, recall: Recall, case: Case, hook: Evicts) -> None:
        """The cycle takes its job back."""
        crew = self._census.crew(recall.victim)
        if not case.announced and crew is not None:
            case.announced = True
            for pod in crew.pods(Standing.WANTING):
                text = f"Preempted by {recall.whom} before it had a node: it waits in its queue again"
                self._tools.voice.event(pod, "Preempted", text, warning=True)
            hook.count("taken back")
        self._queue.activate(recall.victim, urgent=True)

    def _evict(self, recall: Recall, case: Case, hook: Evicts) -> None:
        try:
            self._mark(recall)
            told = self._evictor.told(case.pods, recall.whom, hook.count)
        except errors.NotAuthorized as missing:
            logger.bind(workload=recall.victim).error("eviction: {}; deploy/yunikorn has the rights", missing)
            self._spare(recall, hook, "the right to evict is missing", refused=True)
            return
        if not told:
            self._refused(recall, case, hook)
            return
        case.refused = None
        if self._is_over(recall, case):
            self._gone(recall, hook)

    def _refused(self, recall: Recall, case: Case, hook: Evicts) -> None:
        """It is asked again; of a group that is torn already all have to go, however long that takes."""
        now = self._tools.clock.now()
        case.refused = now if case.refused is None else case.refused
        if now - case.refused >= hook.evict_seconds and not self._is_leaving(case):
            self._spare(recall, hook, f"its eviction was refused for {hook.evict_seconds:.0f} s", refused=True)

    def _is_over(self, recall: Recall, case: Case) -> bool:
        """No pod is left, nobody has come after them, and no job."""
        if not self._evictor.left(case.pods):
            return False
        newcomers = self._evictor.newcomers(case.pods)
        if newcomers:
            case.pods.update(newcomers)
            return False
        ended = tuple(self._evictor.end_jobs(case.pods, recall.whom))
        crew = self._census.crew(recall.victim)
        placed = crew is not None and crew.count(*PLACED)
        return all(over for _, over in ended) and not placed and not self._tools.may_have_job(recall.victim)

    # -- how it ends -------------------------------------------------------------------------------------------------

    def _gone(self, recall: Recall, hook: Evicts) -> None:
        logger.bind(workload=recall.victim).info("eviction: it has made room for {}", recall.whom)
        hook.gone(recall.victim)
        if self._census.crew(recall.victim) is not None:
            self._queue.activate(recall.victim, urgent=False)

    def _spare(self, recall: Recall, hook: Evicts, why: str, *, refused: bool) -> None:
        """It stays, and says so."""
        logger.bind(workload=recall.victim).warning("eviction: it is spared: {}", why)
        hook.count("spared")
        hook.spared(recall.victim, refused=refused)
        crew = self._census.crew(recall.victim)
        self._take_back(recall.victim, crew.pods(*PLACED, Standing.WANTING) if crew is not None else ())
