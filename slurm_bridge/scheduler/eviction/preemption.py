"""Preemption: pods of a lower priority leave nodes for a workload whose job waits in Slurm for want of them.

A hook says which pods that would be (`hooks.evictions.Preempts`). `cases.PreemptionCase` draws the life of each case.
"""

import functools
import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TypeVar

from loguru import logger

from slurm_bridge import errors
from slurm_bridge.hooks import evictions
from slurm_bridge.hooks.evictions import Preempts, Proposal
from slurm_bridge.model.job import Phase
from slurm_bridge.model.names import WorkloadKey, namespace_of
from slurm_bridge.model.workload import Root
from slurm_bridge.runtime import backoff
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.eviction import preemptors, sites, situation
from slurm_bridge.scheduler.eviction.cases import PreemptionCase, PreemptionStage
from slurm_bridge.scheduler.eviction.evictor import Evictor
from slurm_bridge.scheduler.eviction.hold_manager import HOLD_SECONDS, HoldManager, HoldTerms
from slurm_bridge.scheduler.eviction.nominations import NominationWriter
from slurm_bridge.scheduler.eviction.preemptors import Preemptor
from slurm_bridge.scheduler.eviction.store import EvictionStore
from slurm_bridge.scheduler.pod_index import PodIndex
from slurm_bridge.scheduler.queue import WorkQueue
from slurm_bridge.scheduler.workload_pods import PLACED, PodState

T = TypeVar("T")

#: The hook is asked about so many workloads in one step: it costs a look at all nodes each time.
TRIES = 3
#: And for so many times as long as that took it is not asked again: other threads have work to do.
REST = 9
#: A workload that no eviction helps tries again later and later: this many times twice as late.
DOUBLINGS = 5


class Preemptions:
    """Used by one thread at a time."""

    def __init__(
        self, context: SchedulerContext, pod_index: PodIndex, queue: WorkQueue, store: EvictionStore, evictor: Evictor
    ) -> None:
        self._context, self._pod_index, self._queue = context, pod_index, queue
        self._store, self._evictor = store, evictor
        self._holds = HoldManager(context, pod_index, queue, HoldTerms(by="preemption", outranked=True))
        self._nominations = NominationWriter(context, pod_index)
        self._rest = float("-inf")

    def begin(self) -> None:
        """A leadership begins: nominations are read anew from the pods, before any workload is looked at.

        A victim may have gone while no daemon was running. A workload that was to keep away from its node, and is
        looked at before the node is held, would get it the moment the victim's job is ended.
        """
        self._holds.begin()
        self._nominations.begin()
        self._rejoin_all(self._pod_index.roots())

    def take_up(self, namespaces: Collection[str]) -> None:
        """Likewise for the workloads of further namespaces."""
        self._rejoin_all(key for key in self._pod_index.roots() if namespace_of(key) in namespaces)

    def _rejoin_all(self, keys: Iterable[WorkloadKey]) -> None:
        hook = self._context.config.chain.preempts
        for key in keys:
            self._context.guard.always("recovery of preemptions", key, functools.partial(self._rejoin, key, hook))

    def step(self) -> None:
        """Take every preemption as far as it goes, and begin at most one."""
        hook = self._context.config.chain.preempts
        self._nominations.settle()
        if hook is None:
            # The hook is not configured any more: nothing else is evicted.
            for key, case in self._store.preemptions().items():
                self._forget(key, case)
            return
        for key, case in self._store.preemptions().items():
            self._try(case.root, functools.partial(self._turn, key, case, hook))
        began, room = self._context.clock.now(), len(self._store.preemptions()) < hook.at_once
        if room and began >= self._rest and not self._context.mirror.failing:
            self._start(hook)
            now = self._context.clock.now()
            self._rest = now + REST * (now - began)

    def _try(self, root: Root, act: Callable[[], T]) -> T | None:
        """Both sides may be away; the next step tries again."""
        try:
            return self._context.guard.one("preemption", str(root), act)
        except errors.BridgeError as problem:
            logger.bind(workload=str(root)).info("preemption: not now: {}", problem)
        return None

    # -- how it begins -----------------------------------------------------------------------------------------------

    def _rejoin(self, key: WorkloadKey, hook: Preempts | None) -> None:
        """A nomination of an earlier life is kept for as long again and not acted on any further, or taken back."""
        members = self._pod_index.workload(key)
        waiting = members.pods(PodState.WANTING) if members is not None else ()
        pods = tuple(pod for pod in waiting if evictions.nominated((pod,)))
        if hook is None:
            self._nominations.take_back(pods)
        elif members is not None and pods:
            now = self._context.clock.now()
            case = PreemptionCase(root=members.root, pods=pods, victims={}, began=now, stage=PreemptionStage.CLEARED)
            self._hold(key, case, evictions.nominated(pods))
            hook.count("rejoined")

    def _start(self, hook: Preempts) -> None:
        for one in itertools.islice(self._preemptors(hook, self._store.preemptions()), TRIES):
            proposal = self._try(one.root, functools.partial(self._proposal, hook, one))
            if proposal is not None:
                self._try(one.root, functools.partial(self._begin, one, proposal))
                hook.count("started" if one.root.key in self._store.preemptions() else "failed")
                return

    def _preemptors(self, hook: Preempts, but: Collection[WorkloadKey]) -> Iterator[Preemptor]:
        """Those that wait for long enough, the most important first, and of equal ones the oldest."""
        guard = self._context.guard
        looks = ((key, functools.partial(self._preemptor, key, hook)) for key in self._context.states.waiting())
        found = [
            one for key, look in looks if key not in but and (one := guard.one("candidates", key, look)) is not None
        ]
        lowest = sites.lowest(self._pod_index) if found else None
        if lowest is not None:
            above = (one for one in found if one.priority > lowest)
            yield from sorted(above, key=lambda one: (-one.priority, one.since, one.root.uid))

    def _preemptor(self, key: WorkloadKey, hook: Preempts) -> Preemptor | None:
        context, now = self._context, self._context.clock.now()
        state = self._store.get(key)
        if state is not None and now < state.not_before:
            return None
        wanted, members = context.states.desired(key), self._pod_index.workload(key)
        return preemptors.preemptor(hook, wanted, members, context.table, now=now, window=context.limits.window)

    def _proposal(self, hook: Preempts, one: Preemptor) -> Proposal | None:
        """None when there is nothing to gain, or not yet."""
        found = situation.of_ask(self._context, self._pod_index, one.ask, submitted=one.submitted)
        if found is None:
            return None
        self._pause(one.root.key, hook)
        return preemptors.proposal(hook, one, found)

    def _pause(self, key: WorkloadKey, hook: Preempts) -> None:
        """It has had its try; each further one is later."""
        state = self._store.of(key)
        seconds = backoff.pause(min(state.tries, DOUBLINGS), first=hook.after_seconds, most=math.inf)
        state.tries, state.not_before = state.tries + 1, self._context.clock.now() + seconds

    def _begin(self, one: Preemptor, proposal: Proposal) -> None:
        """The nominations are on the pods before any pod is evicted: from then on a restart knows them."""
        pods = one.ask.workload.pods
        self._nominations.write(pods, proposal.places)
        victims = {pod.uid: pod for pod in proposal.victims}
        now = self._context.clock.now()
        case = PreemptionCase(root=one.root, pods=pods, victims=victims, began=now, intent=one.intent)
        self._hold(one.root.key, case, proposal.nodes)
        listed = ", ".join(sorted("/".join(pod.key) for pod in proposal.victims))
        count = "1 pod" if len(victims) == 1 else f"{len(victims)} pods"
        text = f"room is made on {', '.join(sorted(proposal.nodes))}: {count} of a lower priority will be evicted"
        logger.bind(workload=str(one.root)).info("preemption: {} ({})", text, listed)
        for pod in pods:
            self._context.status.event(pod, "PreemptionStarted", text)

    def _hold(self, key: WorkloadKey, case: PreemptionCase, nodes: frozenset[str]) -> None:
        self._store.of(key).under_way.preemption = case
        self._look_again((key,))
        self._holds.keep(key, nodes)

    # -- how it goes on ----------------------------------------------------------------------------------------------

    def _turn(self, key: WorkloadKey, case: PreemptionCase, hook: Preempts) -> None:
        try:
            self._advance(key, case, hook)
        except errors.NotAuthorized as missing:
            logger.bind(workload=str(case.root)).error("preemption: {}; deploy/preemption has the rights", missing)
            self._give_up(key, case, hook)

    def _advance(self, key: WorkloadKey, case: PreemptionCase, hook: Preempts) -> None:
        members, age = self._pod_index.workload(key), self._context.clock.now() - case.began
        if members is None or not members.count(PodState.WANTING):
            state = self._store.of(key)
            state.tries, state.not_before = 0, float("-inf")
            self._forget(key, case)
            hook.count("used" if members is not None and members.count(*PLACED, PodState.DONE) else "given_up")
            return
        slow = case.stage is PreemptionStage.HOLDING and age > HOLD_SECONDS
        if slow or age > hook.keep_seconds or self._wants_otherwise(key, case.intent):
            self._give_up(key, case, hook)
            return
        if case.stage is PreemptionStage.HOLDING and self._is_known(key):
            case.stage = PreemptionStage.EVICTING
        evicts = case.stage is PreemptionStage.EVICTING and not self._is_starting(key)
        if evicts and self._evictor.evict(case.victims, case.name, hook.count):
            case.stage = PreemptionStage.LEAVING
        if case.stage is PreemptionStage.LEAVING and self._is_cleared(case):
            case.stage = PreemptionStage.CLEARED
            self._look_again((key,))

    def _wants_otherwise(self, key: WorkloadKey, intent: str) -> bool:
        """It may have no job now, or wants another one than the nodes were chosen for."""
        wanted = self._context.states.desired(key)
        return wanted is not None and (not preemptors.is_wanted(wanted) or intent not in ("", wanted.intent))

    def _is_known(self, key: WorkloadKey) -> bool:
        return not self._context.mirror.failing and bool(self._holds.nodes(key)) and self._holds.is_known(key)

    def _is_starting(self, key: WorkloadKey) -> bool:
        """It has got nodes by itself."""
        return any(one.alive and one.phase is not Phase.PENDING for one in self._context.table.of(key))

    def _is_cleared(self, case: PreemptionCase) -> bool:
        """No victim is left, no pod has come after them, and the jobs of groups are over."""
        if not self._evictor.have_left(case.victims):
            return False
        newcomers = self._evictor.newcomers(case.victims)
        if newcomers:
            case.victims.update(newcomers)
            case.stage = PreemptionStage.EVICTING
            return False
        ended = tuple(self._evictor.end_jobs(case.victims, case.name))
        self._look_again(key for key, _ in ended)
        return all(over for _, over in ended)

    # -- how it ends -------------------------------------------------------------------------------------------------

    def _give_up(self, key: WorkloadKey, case: PreemptionCase, hook: Preempts) -> None:
        """Its time is over, or it wants something else: others may have the nodes, and it has another try later."""
        logger.bind(workload=str(case.root)).warning("preemption: given up while {}", case.stage.value)
        self._pause(key, hook)
        self._forget(key, case)
        hook.count("given_up")

    def _forget(self, key: WorkloadKey, case: PreemptionCase) -> None:
        """The nodes are free to all, and the nominations are taken back."""
        self._store.of(key).under_way.preemption = None
        self._nominations.take_back(case.pods)
        self._look_again((key,))
        self._holds.end(key)

    def _look_again(self, keys: Iterable[WorkloadKey]) -> None:
        for key in keys:
            if self._pod_index.workload(key) is not None:
                self._queue.activate(key, urgent=bool(self._context.table.of(key)))
