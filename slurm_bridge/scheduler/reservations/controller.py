"""Keeping nodes for workloads that others pass: a hook says for which, Slurm's reservation keeps all others away.

    named ──► choose nodes ──► hold them ──► reserve, prolong ──► assign the job ──► release

`cases.ReservationCase` draws the life of each case. Reservations are short, and prolonged while they are needed: one
that nothing prolongs ends by itself, and its job goes on waiting. What is to be given back is given back for certain;
what an earlier life left behind, too.
"""

import functools
import threading
from collections.abc import Callable

from loguru import logger

from slurm_bridge import errors
from slurm_bridge.hooks.lifecycle import Reserves
from slurm_bridge.model.job import JobView, Phase
from slurm_bridge.model.names import NO_WORKLOAD, WorkloadKey
from slurm_bridge.model.placeholder import Certainty, Placeholder
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.eviction import sites
from slurm_bridge.scheduler.eviction.hold_manager import HoldManager, HoldTerms
from slurm_bridge.scheduler.pod_index import PodIndex
from slurm_bridge.scheduler.queue import WorkQueue
from slurm_bridge.scheduler.reservations import choice, node_record
from slurm_bridge.scheduler.reservations.acquire import Acquirer
from slurm_bridge.scheduler.reservations.cases import Debt, ReservationCase
from slurm_bridge.scheduler.reservations.node_record import NodeRecord
from slurm_bridge.scheduler.reservations.release import Releaser
from slurm_bridge.scheduler.reservations.store import ReservationStore
from slurm_bridge.scheduler.state import DesiredJob
from slurm_bridge.scheduler.workload_pods import PLACED, PodState

#: A workload that no node would help, or whose nodes were not free in time, is looked at again after so long.
REST = 30.0
#: What others of ours are told.
WHY = "node(s) are kept for a workload that has waited for longer"


class ReservationController:
    """Stepped by one thread; `begin` may be called by another."""

    def __init__(self, context: SchedulerContext, pod_index: PodIndex, queue: WorkQueue) -> None:
        self._context, self._pod_index = context, pod_index
        self._lock, self._store = threading.Lock(), ReservationStore(context.states)
        self._holds = HoldManager(context, pod_index, queue, HoldTerms(by="reserving", why=WHY, outranked=True))
        self._acquirer, self._releaser = Acquirer(context, queue), Releaser(context, queue, self._store)

    def begin(self) -> None:
        """A leadership begins: owner records say what was kept; what none of them says is swept by the first step."""
        with self._lock:
            self._store.begin()
            self._holds.begin()
            self._releaser.begin()
            for one in self._context.table.kept_for():
                resume = functools.partial(self._resume, one)
                self._context.guard.always("recovery of reservations", one.owner.uid, resume)

    @property
    def kept(self) -> tuple[WorkloadKey, ...]:
        """The workloads that nodes are kept for."""
        return tuple(self._store.kept())

    def step(self) -> None:
        """Take every reservation as far as it goes."""
        with self._lock:
            hook, kept = self._context.config.chain.reserves, self._store.kept()
            self._holds.settle()
            if self._context.mirror.failing:
                return
            self._releaser.find(kept.keys())
            if hook is None and not kept and not self._store.debts:
                return
            self._try(NO_WORKLOAD, functools.partial(self._releaser.sweep, {case.name for case in kept.values()}))
            for key, case in kept.items():
                self._try(key, functools.partial(self._follow, key, case, hook))
            for debt in self._releaser.due:
                self._try(debt.workload, functools.partial(self._releaser.settle, debt))
            if hook is not None:
                self._begin_some(hook)
                reserved = (self._holds.nodes(key) for key, case in self._store.kept().items() if case.reserved)
                hook.keeps(frozenset().union(*reserved))

    def _try(self, key: WorkloadKey, act: Callable[[], None]) -> None:
        """Both sides may be away; the next step tries again."""
        try:
            self._context.guard.one("keeping nodes", key, act)
        except errors.BridgeError as problem:
            logger.bind(workload=key).info("reservation: not now: {}", problem)

    # -- which workloads, and which nodes ----------------------------------------------------------------------------

    def _begin_some(self, hook: Reserves) -> None:
        now = self._context.clock.now()
        self._store.drop_ended(lambda key: self._pod_index.workload(key) is not None, now)
        # Asked every time: the hook counts from when it saw a workload wait. Those tried in vain come last.
        for key in sorted(hook.passed(), key=lambda key: bool(self._in_vain(key))):
            state = self._store.get(key)
            free = state is None or (state.kept is None and state.rest_until <= now)
            if free and len(self._store.kept()) < hook.reservations:
                self._try(key, functools.partial(self._begin, key, hook))

    def _in_vain(self, key: WorkloadKey) -> frozenset[str]:
        state = self._store.get(key)
        return state.in_vain if state is not None else frozenset()

    def _begin(self, key: WorkloadKey, hook: Reserves) -> None:
        placeholder, wanted = self._pending_job(key), self._context.states.desired(key)
        if placeholder is None or placeholder.view is None or wanted is None:
            return
        nodes = self._choose(wanted, placeholder.view, self._in_vain(key))
        says = NodeRecord(nodes=nodes, until=int(self._context.clock.wall() + hook.reserve_seconds))
        if not nodes or not says.text:
            self._store.of(key).rest_until = self._context.clock.now() + REST
            return
        case = ReservationCase(job_id=placeholder.job_id, name=node_record.name(placeholder.owner), says=says)
        if case.name in self._store.debts:
            # What is still to be given back is its priority, too: that of before would be forgotten.
            return
        hook.count("reserved")
        logger.bind(workload=str(wanted.workload.root)).info("reservation: nodes {} are kept for it", ", ".join(nodes))
        self._keep(key, case)
        self._follow(key, case, hook)

    def _pending_job(self, key: WorkloadKey) -> Placeholder | None:
        """Its one job, where that waits for nodes, and for nothing else that cannot be kept for it."""
        members, living = self._pod_index.workload(key), [one for one in self._context.table.of(key) if one.alive]
        evicts = self._context.config.chain.evicts
        if members is None or members.count(*PLACED) or len(living) != 1:
            return None
        if evicts is not None and (key in evicts.rooms() or evicts.recalled(key) is not None):
            return None
        view, (found,) = living[0].view, living
        waits = found.phase is Phase.PENDING and found.certainty is Certainty.SEEN and view is not None
        return found if waits and view is not None and choice.supported(view) else None

    def _choose(self, wanted: DesiredJob, view: JobView, last: frozenset[str]) -> tuple[str, ...]:
        snapshot = self._context.keeper.snapshot()
        taken = self._context.promised.nodes
        names = (snapshot.by_slurm.get(name, "") for name in choice.allowed(view, snapshot))
        facts = (snapshot.nodes[name] for name in names if name and name not in taken)
        ends = choice.ends_of(self._context.table.alive())
        return choice.choose(choice.task(wanted.translated.shapes, view), view, facts, last=last, ends=ends)

    def _keep(self, key: WorkloadKey, case: ReservationCase) -> None:
        """Others of ours keep away for as long as it may last."""
        self._store.of(key).kept = case
        self._context.states.of(key).leadership.reserved = case.says.text
        known = self._context.keeper.snapshot().by_slurm
        left = case.says.until - self._context.clock.wall()
        nodes = (known[name] for name in case.says.nodes if name in known)
        self._holds.keep(key, nodes, self._context.clock.now() + left)

    def _resume(self, one: Placeholder) -> None:
        """As the record of its job says; one that has started is found by the releaser."""
        key, says = one.owner.key, node_record.read(one.owner.reserved)
        if says is not None and one.phase is Phase.PENDING and key not in self._store.kept():
            self._keep(key, ReservationCase(job_id=one.job_id, name=node_record.name(one.owner), says=says))

    # -- one of them -------------------------------------------------------------------------------------------------

    def _follow(self, key: WorkloadKey, case: ReservationCase, hook: Reserves | None) -> None:
        over = self._over(key, case, hook)
        if over is not None:
            self._end(key, case, over, hook)
            return
        for act in (self._acquirer.reserve, self._acquirer.assign):
            job = self._job(key, case)
            if job is not None and not case.vain:
                act(key, case, job)
        if case.vain:
            self._end(key, case, "withdrawn", hook)

    def _over(self, key: WorkloadKey, case: ReservationCase, hook: Reserves | None) -> str | None:
        """How it ends, in a word; None for as long as it has to last."""
        members, job = self._pod_index.workload(key), self._job(key, case)
        started = job is not None and job.phase is not Phase.PENDING
        if started or (members is not None and members.count(*PLACED)):
            return "used"
        if (
            members is None
            or not members.count(PodState.WANTING)
            or job is None
            or hook is None
            or hook.reservations == 0
        ):
            return "withdrawn"
        if self._context.clock.wall() >= case.says.until:
            return "timed out"
        return None if self._is_of_use(case, job) else "withdrawn"

    def _job(self, key: WorkloadKey, case: ReservationCase) -> Placeholder | None:
        living = (one for one in self._context.table.of(key) if one.alive)
        return next((one for one in living if one.job_id == case.job_id), None)

    def _is_of_use(self, case: ReservationCase, job: Placeholder) -> bool:
        """Its job may come to all of these nodes, and Slurm starts jobs there."""
        snapshot = self._context.keeper.snapshot()
        if job.view is None or not job.view.partition:
            return True
        there = {name: snapshot.slurm_nodes.get(name) for name in case.says.nodes}
        usable = all(one is not None and not sites.closed(one, reserved=True) for one in there.values())
        return usable and there.keys() <= choice.allowed(job.view, snapshot)

    def _end(self, key: WorkloadKey, case: ReservationCase, how: str, hook: Reserves | None) -> None:
        """Its nodes are free to all, and its job leaves the reservation."""
        logger.bind(workload=key).info("reservation: {}", how)
        state = self._store.of(key)
        state.kept = None
        self._context.states.of(key).leadership.reserved = ""
        self._holds.end(key)
        if hook is not None:
            hook.count(f"reservation {how}")
        if how != "used":
            state.rest_until = self._context.clock.now() + REST
        failed = how == "timed out" or case.vain
        state.in_vain = state.in_vain.union(case.says.nodes) if failed else frozenset()
        self._releaser.release(Debt(name=case.name, workload=key, priority=case.says.priority))
