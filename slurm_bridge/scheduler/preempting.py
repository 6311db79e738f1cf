"""Making room: pods of ours of a lower priority leave nodes for a workload whose job waits in Slurm for want of them.

    HOLDING    the nodes are promised; others of ours whose jobs wait are told to keep away from them
    EVICTING   the API server is asked to evict the victims, which lets budgets speak; a refusal is asked again
    LEAVING    their pods run to their end; a job ends with its pods, that of a group is ended when all are gone
    CLEARED    Slurm gives the nodes to whoever may have them: of ours only the one they were cleared for

Each stage is left for the next, or for the end: the workload has its nodes, or its time is over. What was promised is
written on its pods (nominatedNodeName), so that a restart keeps the nodes; who was told to go is known by his leaving.
Nothing but what is ours is ever told to go: bound by us, by a job of ours that runs.
"""

import dataclasses
import enum
import functools
import itertools
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from loguru import logger

from slurm_bridge import errors
from slurm_bridge.cluster.parties import priority_of
from slurm_bridge.families.kube_scheduler.preempting import hook as hooks
from slurm_bridge.families.kube_scheduler.preempting.hook import Preemption
from slurm_bridge.hooks.evictions import Proposal
from slurm_bridge.model.job import Phase
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Root
from slurm_bridge.scheduler.candidates import Candidate, Candidates
from slurm_bridge.scheduler.census import Census
from slurm_bridge.scheduler.evicting import Evictor
from slurm_bridge.scheduler.members import PLACED, Standing
from slurm_bridge.scheduler.pledging import Pledges
from slurm_bridge.scheduler.promised import Promise
from slurm_bridge.scheduler.queue import Queue
from slurm_bridge.scheduler.tools import Tools

T = TypeVar("T")

#: So many workloads are thought about in one step: it costs a look at all nodes each time.
TRIES = 3
#: And for so many times as long as that took nobody is thought about: other threads have work to do.
REST = 9
#: Those who are told to keep away are waited for at most so long before the preemption is given up.
HOLD_SECONDS = 30.0


class Stage(enum.Enum):
    """How far a preemption has come."""

    HOLDING = "others learn to keep away from the nodes"
    EVICTING = "the victims are told to go"
    LEAVING = "the victims are on their way out"
    CLEARED = "the nodes are free for the one they were cleared for"


@dataclasses.dataclass(slots=True, kw_only=True)
class Case:
    """One preemption for these pods. `others` are the workloads that are told to keep away.

    `intent`: what they asked for when the nodes were chosen; "" where nobody remembers.
    """

    root: Root
    pods: tuple[Pod, ...]
    priority: int
    victims: dict[str, Pod]
    began: float
    intent: str = ""
    stage: Stage = Stage.HOLDING
    others: tuple[WorkloadKey, ...] = ()

    @property
    def name(self) -> str:
        """As users see it."""
        return f"{self.root.namespace}/{self.root.name}"


class Preempting:
    """Turned by one thread; `begin` may be called by another."""

    def __init__(self, tools: Tools, census: Census, queue: Queue) -> None:
        self._tools, self._census, self._queue = tools, census, queue
        self._candidates, self._evictor = Candidates(tools, census), Evictor(tools, census)
        self._pledges = Pledges(tools, census)
        self._lock = threading.Lock()
        self._cases: dict[WorkloadKey, Case] = {}
        self._rest = float("-inf")

    def begin(self) -> None:
        """A leadership begins: what was promised is read anew from the pods, before anybody is looked at.

        A victim may have gone while nobody looked. Whoever was told to keep away from its node, and is looked at by
        one who does not know of the promise, would get the node the moment its job is ended.
        """
        with self._lock:
            self._cases.clear()
            self._tools.promised.clear()
            self._pledges.forget()
            self._rejoin(self._hook())

    @property
    def cases(self) -> Mapping[WorkloadKey, Stage]:
        """The preemptions that are under way, by the uid of whom they are for."""
        return {uid: case.stage for uid, case in tuple(self._cases.items())}

    def step(self) -> None:
        """Take every preemption as far as it goes, and begin at most one."""
        with self._lock:
            hook = self._hook()
            self._pledges.settle()
            if hook is None:
                self._drop_all()
                return
            for uid, case in tuple(self._cases.items()):
                self._try(case.root, functools.partial(self._turn, uid, case, hook))
            began, room = self._tools.clock.now(), len(self._cases) < hook.options.at_once
            if room and began >= self._rest and not self._tools.mirror.failing:
                self._start(hook)
                now = self._tools.clock.now()
                self._rest = now + REST * (now - began)

    def _hook(self) -> Preemption | None:
        found = (one.hook for one in self._tools.config.chain.hooks)
        return next((one for one in found if isinstance(one, Preemption)), None)

    def _try(self, root: Root, act: Callable[[], T]) -> T | None:
        """Both sides may be away; the next step tries again."""
        try:
            return self._tools.guard.one("preemption", str(root), act)
        except errors.BridgeError as problem:
            logger.bind(workload=str(root)).info("preemption: not now: {}", problem)
        return None

    # -- how it begins -----------------------------------------------------------------------------------------------

    def _rejoin(self, hook: Preemption | None) -> None:
        """Promises of an earlier life: kept for as long again and not acted on any further, or taken back."""
        for uid in self._census.roots():
            self._tools.guard.always("recovery of preemptions", uid, functools.partial(self._rejoin_one, uid, hook))

    def _rejoin_one(self, uid: WorkloadKey, hook: Preemption | None) -> None:
        crew = self._census.crew(uid)
        waiting = crew.pods(Standing.WANTING) if crew is not None else ()
        pods = tuple(pod for pod in waiting if hooks.promised((pod,)))
        if hook is None:
            self._pledges.take_back(pods)
        elif crew is not None and pods:
            now, priority = self._tools.clock.now(), max(map(priority_of, waiting))
            case = Case(root=crew.root, pods=pods, priority=priority, victims={}, began=now, stage=Stage.CLEARED)
            self._promise(uid, case, hooks.promised(pods))
            hook.count("rejoined")

    def _start(self, hook: Preemption) -> None:
        for one in itertools.islice(self._candidates.waiting(hook, self._cases), TRIES):
            proposal = self._try(one.root, functools.partial(self._candidates.proposal, hook, one))
            if proposal is not None:
                self._try(one.root, functools.partial(self._begin, one, proposal))
                hook.count("started" if one.root.key in self._cases else "failed")
                return

    def _begin(self, one: Candidate, proposal: Proposal) -> None:
        """The promise is on the pods before anybody is told of it: from then on a restart knows it."""
        pods = one.workload.pods
        self._pledges.write(pods, proposal.places)
        victims = {pod.uid: pod for pod in proposal.victims}
        case = Case(
            root=one.root,
            pods=pods,
            priority=one.priority,
            victims=victims,
            began=self._tools.clock.now(),
            intent=one.wish.intent,
        )
        self._promise(one.root.key, case, proposal.nodes)
        who = ", ".join(sorted("/".join(pod.key) for pod in proposal.victims))
        count = "1 pod" if len(victims) == 1 else f"{len(victims)} pods"
        text = f"room is made on {', '.join(sorted(proposal.nodes))}: {count} of a lower priority will be evicted"
        logger.bind(workload=str(one.root)).info("preemption: {} ({})", text, who)
        for pod in pods:
            self._tools.voice.event(pod, "PreemptionStarted", text)

    def _promise(self, uid: WorkloadKey, case: Case, nodes: frozenset[str]) -> None:
        self._cases[uid] = case
        self._tools.promised.make(Promise(uid=uid, priority=case.priority, nodes=nodes))
        # Whoever is not on his way to Slurm learns of it when his turn has come.
        asking = {one for one in self._tools.states.waiting() if self._tools.table.of(one)}
        case.others = self._others(uid, case.priority, asking | self._queue.flying())
        self._look_again((uid, *case.others))

    def _others(self, uid: WorkloadKey, priority: int, among: Iterable[WorkloadKey]) -> tuple[WorkloadKey, ...]:
        """Those of these workloads that wait, and may not have what is cleared for this one."""
        crews = [(one, self._census.crew(one)) for one in among if one != uid]
        return tuple(
            one
            for one, crew in crews
            if crew is not None and any(priority_of(pod) <= priority for pod in crew.pods(Standing.WANTING))
        )

    # -- how it goes on ----------------------------------------------------------------------------------------------

    def _turn(self, uid: WorkloadKey, case: Case, hook: Preemption) -> None:
        try:
            self._advance(uid, case, hook)
        except errors.NotAuthorized as missing:
            logger.bind(workload=str(case.root)).error("preemption: {}; deploy/preemption has the rights", missing)
            self._give_up(uid, case, hook)

    def _advance(self, uid: WorkloadKey, case: Case, hook: Preemption) -> None:
        crew, age = self._census.crew(uid), self._tools.clock.now() - case.began
        if crew is None or not crew.count(Standing.WANTING):
            self._candidates.forget(uid)
            self._forget(uid, case)
            hook.count("used" if crew is not None and crew.count(*PLACED, Standing.DONE) else "given_up")
            return
        slow = case.stage is Stage.HOLDING and age > HOLD_SECONDS
        if slow or age > hook.options.keep_seconds or self._candidates.otherwise(uid, case.intent):
            self._give_up(uid, case, hook)
            return
        if case.stage is Stage.HOLDING and self._held(case):
            case.stage = Stage.EVICTING
        if case.stage is Stage.EVICTING and not self._starting(uid) and self._told(case, hook):
            case.stage = Stage.LEAVING
        if case.stage is Stage.LEAVING and self._gone(case):
            case.stage = Stage.CLEARED
            self._look_again((uid,))

    def _held(self, case: Case) -> bool:
        """Everybody has been looked at since the nodes were promised, and Slurm knows what he keeps away from."""
        return not self._tools.mirror.failing and self._queue.idle(case.others)

    def _starting(self, uid: WorkloadKey) -> bool:
        """It has got nodes without our help."""
        return any(one.alive and one.phase is not Phase.PENDING for one in self._tools.table.of(uid))

    def _told(self, case: Case, hook: Preemption) -> bool:
        return self._evictor.told(case.victims, case.name, hook.count)

    def _gone(self, case: Case) -> bool:
        """No victim is left, nobody has come after them, and the jobs of groups are over."""
        if not self._evictor.left(case.victims):
            return False
        newcomers = self._evictor.newcomers(case.victims)
        if newcomers:
            case.victims.update(newcomers)
            case.stage = Stage.EVICTING
            return False
        ended = tuple(self._evictor.end_jobs(case.victims, case.name))
        self._look_again(uid for uid, _ in ended)
        return all(over for _, over in ended)

    # -- how it ends -------------------------------------------------------------------------------------------------

    def _give_up(self, uid: WorkloadKey, case: Case, hook: Preemption) -> None:
        """Its time is over, or it wants something else: others may have the nodes, and it has another try later."""
        logger.bind(workload=str(case.root)).warning("preemption: given up while {}", case.stage.value)
        self._candidates.pause(uid, hook)
        self._forget(uid, case)
        hook.count("given_up")

    def _forget(self, uid: WorkloadKey, case: Case) -> None:
        """Whoever still waits is promised nothing any more, and the others may have the nodes."""
        del self._cases[uid]
        self._tools.promised.end(uid)
        self._pledges.take_back(case.pods)
        self._look_again((uid, *self._others(uid, case.priority, self._tools.states.waiting())))

    def _drop_all(self) -> None:
        """The hook is not configured any more: nobody else is told to go."""
        for uid, case in tuple(self._cases.items()):
            self._forget(uid, case)

    def _look_again(self, uids: Iterable[WorkloadKey]) -> None:
        for uid in uids:
            if self._census.crew(uid) is not None:
                self._queue.activate(uid, urgent=bool(self._tools.table.of(uid)))
