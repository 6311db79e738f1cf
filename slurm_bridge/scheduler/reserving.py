"""Keeping nodes for workloads that others pass: a hook says for whom, Slurm's reservation keeps everybody away.

    named     the hook names a workload whose job waits in Slurm for nodes; the nodes that would hold it and are the
              first to be free are promised to it: others of ours keep away
    reserved  Slurm's reservation keeps all other jobs away, too; where Slurm refuses it, the job is first in its queue
    assigned  its job enters the reservation, and its owner record says which nodes, and until when: so a restart knows
    over      used (it has nodes), withdrawn (its job is another one, has gone, or may not come to them any more or not
              enter; or others have reserved them), or timed out: the job leaves, and the nodes are everybody's

Reservations are short, and prolonged while they are needed: one that nobody looks after goes by itself, and its job
goes on waiting. What is to be given back is given back for certain; what an earlier life left behind, too.
"""

import functools
import threading
from collections.abc import Callable

from loguru import logger

from slurm_bridge import errors
from slurm_bridge.hooks.reserving import Reserves
from slurm_bridge.model.job import JobView, Phase
from slurm_bridge.model.names import NO_WORKLOAD, WorkloadKey
from slurm_bridge.model.placeholder import Certainty, Placeholder
from slurm_bridge.scheduler import sites, soonest, withheld
from slurm_bridge.scheduler.census import Census
from slurm_bridge.scheduler.clearing import Clearing, Terms
from slurm_bridge.scheduler.members import PLACED, Standing
from slurm_bridge.scheduler.queue import Queue
from slurm_bridge.scheduler.returning import Debt, Returning
from slurm_bridge.scheduler.state import Wish
from slurm_bridge.scheduler.tools import Tools
from slurm_bridge.scheduler.withholding import Case, Withholding

#: A workload that could be helped by no node, or whose nodes were not free in time, is looked at again after so long.
REST = 30.0
#: What others of ours are told.
WHY = "node(s) are kept for a workload that has waited for longer"


class Reserving:
    """Turned by one thread; `begin` may be called by another."""

    def __init__(self, tools: Tools, census: Census, queue: Queue) -> None:
        self._tools, self._census, self._queue = tools, census, queue
        self._clearing = Clearing(tools, census, queue, Terms(by="reserving", why=WHY, outranked=True))
        self._lock = threading.Lock()
        self._cases: dict[WorkloadKey, Case] = {}
        self._withholding, self._returning = Withholding(tools, queue), Returning(tools, queue)
        #: Who has had his time, or could be helped by no node: nothing is kept for him until then.
        self._rests: dict[WorkloadKey, float] = {}
        #: Nodes that were kept for a workload, and were not free in time, or that could not be kept for it.
        self._in_vain: dict[WorkloadKey, frozenset[str]] = {}

    def begin(self) -> None:
        """A leadership begins: owner records say what was kept; what nobody knows of is swept by the first step."""
        with self._lock:
            for known in (self._cases, self._rests, self._in_vain):
                known.clear()
            self._clearing.begin()
            self._returning.begin()
            for one in self._tools.table.kept_for():
                resume = functools.partial(self._resume, one)
                self._tools.guard.always("recovery of reservations", one.owner.uid, resume)

    @property
    def cases(self) -> tuple[WorkloadKey, ...]:
        """For whom nodes are kept, by uid."""
        return tuple(self._cases)

    def step(self) -> None:
        """Take everybody as far as it goes."""
        with self._lock:
            self._step()

    def _step(self) -> None:
        hook = self._tools.config.chain.reserves
        self._clearing.settle()
        if self._tools.mirror.failing:
            return
        self._returning.find(self._cases.keys())
        if hook is None and not self._cases and not self._returning.owing:
            return
        self._try(NO_WORKLOAD, functools.partial(self._returning.sweep, {case.name for case in self._cases.values()}))
        for uid, case in tuple(self._cases.items()):
            self._try(uid, functools.partial(self._follow, uid, case, hook))
        for debt in self._returning.due:
            self._try(debt.uid, functools.partial(self._returning.settle, debt))
        if hook is not None:
            self._begin_some(hook)
            kept = (self._clearing.nodes(uid) for uid, case in self._cases.items() if case.reserved)
            hook.keeps(frozenset().union(*kept))

    def _try(self, uid: WorkloadKey, act: Callable[[], None]) -> None:
        """Both sides may be away; the next step tries again."""
        try:
            self._tools.guard.one("keeping nodes", uid, act)
        except errors.BridgeError as problem:
            logger.bind(workload=uid).info("reservation: not now: {}", problem)

    # -- who, and which nodes ----------------------------------------------------------------------------------------

    def _begin_some(self, hook: Reserves) -> None:
        now = self._tools.clock.now()
        self._rests = {uid: until for uid, until in self._rests.items() if until > now}
        for uid in [uid for uid in self._in_vain if self._census.crew(uid) is None]:
            del self._in_vain[uid]
        # Asked every time: the hook counts from when it saw somebody wait.
        for uid in sorted(hook.passed(), key=lambda uid: uid in self._in_vain):
            if len(self._cases) < hook.reservations and uid not in self._cases and uid not in self._rests:
                self._try(uid, functools.partial(self._begin, uid, hook))

    def _begin(self, uid: WorkloadKey, hook: Reserves) -> None:
        placeholder, wish = self._waits(uid), self._tools.states.desired(uid)
        if placeholder is None or placeholder.view is None or wish is None:
            return
        nodes = self._choose(wish, placeholder.view, self._in_vain.get(uid, frozenset()))
        says = withheld.Withheld(nodes=nodes, until=int(self._tools.clock.wall() + hook.reserve_seconds))
        if not nodes or not says.text:
            self._rests[uid] = self._tools.clock.now() + REST
            return
        case = Case(job_id=placeholder.job_id, name=withheld.name(placeholder.owner), says=says)
        if self._returning.owes(case.name):
            # What is still to be given back is its priority, too: that of before would be forgotten.
            return
        hook.count("reserved")
        logger.bind(workload=str(wish.workload.root)).info("reservation: nodes {} are kept for it", ", ".join(nodes))
        self._keep(uid, case)
        self._follow(uid, case, hook)

    def _waits(self, uid: WorkloadKey) -> Placeholder | None:
        """Its one job, where that waits for nodes, and for nothing else that nobody could keep for it."""
        crew, living = self._census.crew(uid), [one for one in self._tools.table.of(uid) if one.alive]
        evicts = self._tools.config.chain.evicts
        if crew is None or crew.count(*PLACED) or len(living) != 1:
            return None
        if evicts is not None and (uid in evicts.rooms() or evicts.recalled(uid) is not None):
            return None
        view, (found,) = living[0].view, living
        waits = found.phase is Phase.PENDING and found.certainty is Certainty.SEEN and view is not None
        return found if waits and view is not None and soonest.supported(view) else None

    def _choose(self, wish: Wish, view: JobView, last: frozenset[str]) -> tuple[str, ...]:
        snapshot = self._tools.keeper.snapshot()
        taken = self._tools.promised.nodes
        names = (snapshot.by_slurm.get(name, "") for name in soonest.allowed(view, snapshot))
        facts = (snapshot.nodes[name] for name in names if name and name not in taken)
        ends = soonest.ends_of(self._tools.table.alive())
        return soonest.choose(soonest.task(wish.translated.shapes, view), view, facts, last=last, ends=ends)

    def _keep(self, uid: WorkloadKey, case: Case) -> None:
        """Others of ours keep away for as long as it may last."""
        self._cases[uid] = case
        self._tools.states.of(uid).leadership.reserved = case.says.text
        known = self._tools.keeper.snapshot().by_slurm
        left = case.says.until - self._tools.clock.wall()
        nodes = (known[name] for name in case.says.nodes if name in known)
        self._clearing.keep(uid, nodes, self._tools.clock.now() + left)

    def _resume(self, one: Placeholder) -> None:
        """As the record of its job says; one that has started is found by whoever gives back."""
        uid, says = one.owner.key, withheld.read(one.owner.reserved)
        if says is not None and one.phase is Phase.PENDING and uid not in self._cases:
            self._keep(uid, Case(job_id=one.job_id, name=withheld.name(one.owner), says=says))

    # -- one of them -------------------------------------------------------------------------------------------------

    def _follow(self, uid: WorkloadKey, case: Case, hook: Reserves | None) -> None:
        over = self._over(uid, case, hook)
        if over is not None:
            self._end(uid, case, over, hook)
            return
        for act in (self._withholding.reserve, self._withholding.assign):
            job = self._job(uid, case)
            if job is not None and not case.vain:
                act(uid, case, job)
        if case.vain:
            self._end(uid, case, "withdrawn", hook)

    def _over(self, uid: WorkloadKey, case: Case, hook: Reserves | None) -> str | None:
        """In a word, None for as long as it has to last."""
        crew, job = self._census.crew(uid), self._job(uid, case)
        started = job is not None and job.phase is not Phase.PENDING
        if started or (crew is not None and crew.count(*PLACED)):
            return "used"
        if crew is None or not crew.count(Standing.WANTING) or job is None or hook is None or hook.reservations == 0:
            return "withdrawn"
        if self._tools.clock.wall() >= case.says.until:
            return "timed out"
        return None if self._is_of_use(case, job) else "withdrawn"

    def _job(self, uid: WorkloadKey, case: Case) -> Placeholder | None:
        living = (one for one in self._tools.table.of(uid) if one.alive)
        return next((one for one in living if one.job_id == case.job_id), None)

    def _is_of_use(self, case: Case, job: Placeholder) -> bool:
        """Its job may come to all of these nodes, and Slurm starts jobs there."""
        snapshot = self._tools.keeper.snapshot()
        if job.view is None or not job.view.partition:
            return True
        there = {name: snapshot.slurm_nodes.get(name) for name in case.says.nodes}
        usable = all(one is not None and not sites.closed(one, reserved=True) for one in there.values())
        return usable and there.keys() <= soonest.allowed(job.view, snapshot)

    def _end(self, uid: WorkloadKey, case: Case, how: str, hook: Reserves | None) -> None:
        """Its nodes are everybody's, and it leaves what kept them for it."""
        logger.bind(workload=uid).info("reservation: {}", how)
        del self._cases[uid]
        self._tools.states.of(uid).leadership.reserved = ""
        self._clearing.end(uid)
        if hook is not None:
            hook.count(f"reservation {how}")
        before = self._in_vain.pop(uid, frozenset())
        if how != "used":
            self._rests[uid] = self._tools.clock.now() + REST
        if how == "timed out" or case.vain:
            self._in_vain[uid] = before.union(case.says.nodes)
        self._returning.owe(debt := Debt(name=case.name, uid=uid, priority=case.says.priority))
        self._returning.settle(debt)
