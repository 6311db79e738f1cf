"""Preemption: pods of a lower priority leave nodes for a workload whose job waits in Slurm for want of them.

A hook says which pods that would be (`hooks.evictions.Preempts`). The life of each case is drawn in `store.Preemption`.
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
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.workload import Root
from slurm_bridge.runtime import backoff
from slurm_bridge.scheduler.census import Census
from slurm_bridge.scheduler.eviction import preemptors, sites
from slurm_bridge.scheduler.eviction.evictor import Evictor
from slurm_bridge.scheduler.eviction.hold_manager import HOLD_SECONDS, HoldManager, HoldTerms
from slurm_bridge.scheduler.eviction.nominations import NominationWriter
from slurm_bridge.scheduler.eviction.preemptors import Preemptor
from slurm_bridge.scheduler.eviction.situation import ClusterSituation
from slurm_bridge.scheduler.eviction.store import EvictionStore, Preemption, Stage
from slurm_bridge.scheduler.members import PLACED, Standing
from slurm_bridge.scheduler.queue import Queue
from slurm_bridge.scheduler.tools import Tools

T = TypeVar("T")

#: The hook is asked about so many workloads in one step: it costs a look at all nodes each time.
TRIES = 3
#: And for so many times as long as that took it is not asked again: other threads have work to do.
REST = 9
#: What Slurm says is in use may be so old when a pod is evicted because of it.
FRESH_SECONDS = 5.0
#: A workload that no eviction helps tries again later and later: this many times twice as late.
DOUBLINGS = 5


class Preemptions:
    """Used by one thread at a time."""

    def __init__(self, tools: Tools, census: Census, queue: Queue, store: EvictionStore, evictor: Evictor) -> None:
        self._tools, self._census, self._queue = tools, census, queue
        self._store, self._evictor = store, evictor
        self._holds = HoldManager(tools, census, queue, HoldTerms(by="preemption", outranked=True))
        self._nominations = NominationWriter(tools, census)
        self._rest = float("-inf")

    def begin(self) -> None:
        """A leadership begins: nominations are read anew from the pods, before any workload is looked at.

        A victim may have gone while no daemon was running. A workload that was to keep away from its node, and is
        looked at before the node is held, would get it the moment the victim's job is ended.
        """
        self._holds.begin()
        self._nominations.forget()
        hook = self._tools.config.chain.preempts
        for key in self._census.roots():
            self._tools.guard.always("recovery of preemptions", key, functools.partial(self._rejoin, key, hook))

    def step(self) -> None:
        """Take every preemption as far as it goes, and begin at most one."""
        hook = self._tools.config.chain.preempts
        self._nominations.settle()
        if hook is None:
            # The hook is not configured any more: nothing else is evicted.
            for key, case in self._store.preemptions().items():
                self._forget(key, case)
            return
        for key, case in self._store.preemptions().items():
            self._try(case.root, functools.partial(self._turn, key, case, hook))
        began, room = self._tools.clock.now(), len(self._store.preemptions()) < hook.at_once
        if room and began >= self._rest and not self._tools.mirror.failing:
            self._start(hook)
            now = self._tools.clock.now()
            self._rest = now + REST * (now - began)

    def _try(self, root: Root, act: Callable[[], T]) -> T | None:
        """Both sides may be away; the next step tries again."""
        try:
            return self._tools.guard.one("preemption", str(root), act)
        except errors.BridgeError as problem:
            logger.bind(workload=str(root)).info("preemption: not now: {}", problem)
        return None

    # -- how it begins -----------------------------------------------------------------------------------------------

    def _rejoin(self, key: WorkloadKey, hook: Preempts | None) -> None:
        """A nomination of an earlier life is kept for as long again and not acted on any further, or taken back."""
        crew = self._census.crew(key)
        waiting = crew.pods(Standing.WANTING) if crew is not None else ()
        pods = tuple(pod for pod in waiting if evictions.nominated((pod,)))
        if hook is None:
            self._nominations.take_back(pods)
        elif crew is not None and pods:
            now = self._tools.clock.now()
            case = Preemption(root=crew.root, pods=pods, victims={}, began=now, stage=Stage.CLEARED)
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
        guard = self._tools.guard
        looks = ((key, functools.partial(self._preemptor, key, hook)) for key in self._tools.states.waiting())
        found = [
            one for key, look in looks if key not in but and (one := guard.one("candidates", key, look)) is not None
        ]
        lowest = sites.lowest(self._census) if found else None
        if lowest is not None:
            above = (one for one in found if one.priority > lowest)
            yield from sorted(above, key=lambda one: (-one.priority, one.since, one.root.uid))

    def _preemptor(self, key: WorkloadKey, hook: Preempts) -> Preemptor | None:
        tools, now = self._tools, self._tools.clock.now()
        state = self._store.get(key)
        if state is not None and now < state.not_before:
            return None
        wish, crew = tools.states.desired(key), self._census.crew(key)
        return preemptors.preemptor(hook, wish, crew, tools.table, now=now, window=tools.limits.window)

    def _proposal(self, hook: Preempts, one: Preemptor) -> Proposal | None:
        """None when there is nothing to gain, or not yet."""
        tools, now = self._tools, self._tools.clock.now()
        if now - tools.facts_at > FRESH_SECONDS:
            tools.refresh_facts()
            return None
        self._pause(one.root.key, hook)
        situation = ClusterSituation(
            ask=one.ask,
            submitted=one.submitted,
            avoided=frozenset({*tools.avoid(one.ask.workload), *tools.promised.nodes}),
            snapshot=tools.keeper.snapshot(),
            chain=tools.config.chain,
            rules=tools.config.rules,
            table=tools.table,
            census=self._census,
            wall=tools.clock.wall(),
        )
        return preemptors.proposal(hook, one, situation)

    def _pause(self, key: WorkloadKey, hook: Preempts) -> None:
        """It has had its try; each further one is later."""
        state = self._store.of(key)
        seconds = backoff.pause(min(state.tries, DOUBLINGS), first=hook.after_seconds, most=math.inf)
        state.tries, state.not_before = state.tries + 1, self._tools.clock.now() + seconds

    def _begin(self, one: Preemptor, proposal: Proposal) -> None:
        """The nominations are on the pods before any pod is evicted: from then on a restart knows them."""
        pods = one.ask.workload.pods
        self._nominations.write(pods, proposal.places)
        victims = {pod.uid: pod for pod in proposal.victims}
        now = self._tools.clock.now()
        case = Preemption(root=one.root, pods=pods, victims=victims, began=now, intent=one.intent)
        self._hold(one.root.key, case, proposal.nodes)
        listed = ", ".join(sorted("/".join(pod.key) for pod in proposal.victims))
        count = "1 pod" if len(victims) == 1 else f"{len(victims)} pods"
        text = f"room is made on {', '.join(sorted(proposal.nodes))}: {count} of a lower priority will be evicted"
        logger.bind(workload=str(one.root)).info("preemption: {} ({})", text, listed)
        for pod in pods:
            self._tools.voice.event(pod, "PreemptionStarted", text)

    def _hold(self, key: WorkloadKey, case: Preemption, nodes: frozenset[str]) -> None:
        self._store.of(key).preemption = case
        self._look_again((key,))
        self._holds.keep(key, nodes)

    # -- how it goes on ----------------------------------------------------------------------------------------------

    def _turn(self, key: WorkloadKey, case: Preemption, hook: Preempts) -> None:
        try:
            self._advance(key, case, hook)
        except errors.NotAuthorized as missing:
            logger.bind(workload=str(case.root)).error("preemption: {}; deploy/preemption has the rights", missing)
            self._give_up(key, case, hook)

    def _advance(self, key: WorkloadKey, case: Preemption, hook: Preempts) -> None:
        crew, age = self._census.crew(key), self._tools.clock.now() - case.began
        if crew is None or not crew.count(Standing.WANTING):
            state = self._store.of(key)
            state.tries, state.not_before = 0, float("-inf")
            self._forget(key, case)
            hook.count("used" if crew is not None and crew.count(*PLACED, Standing.DONE) else "given_up")
            return
        slow = case.stage is Stage.HOLDING and age > HOLD_SECONDS
        if slow or age > hook.keep_seconds or self._wants_otherwise(key, case.intent):
            self._give_up(key, case, hook)
            return
        if case.stage is Stage.HOLDING and self._is_known(key):
            case.stage = Stage.EVICTING
        evicts = case.stage is Stage.EVICTING and not self._is_starting(key)
        if evicts and self._evictor.evict(case.victims, case.name, hook.count):
            case.stage = Stage.LEAVING
        if case.stage is Stage.LEAVING and self._is_cleared(case):
            case.stage = Stage.CLEARED
            self._look_again((key,))

    def _wants_otherwise(self, key: WorkloadKey, intent: str) -> bool:
        """It may have no job now, or wants another one than the nodes were chosen for."""
        wish = self._tools.states.desired(key)
        return wish is not None and (not preemptors.is_wanted(wish) or intent not in ("", wish.intent))

    def _is_known(self, key: WorkloadKey) -> bool:
        """Every other workload has been looked at since the nodes are held, and Slurm knows what it keeps away from."""
        return not self._tools.mirror.failing and bool(self._holds.nodes(key)) and self._holds.is_known(key)

    def _is_starting(self, key: WorkloadKey) -> bool:
        """It has got nodes by itself."""
        return any(one.alive and one.phase is not Phase.PENDING for one in self._tools.table.of(key))

    def _is_cleared(self, case: Preemption) -> bool:
        """No victim is left, no pod has come after them, and the jobs of groups are over."""
        if not self._evictor.have_left(case.victims):
            return False
        newcomers = self._evictor.newcomers(case.victims)
        if newcomers:
            case.victims.update(newcomers)
            case.stage = Stage.EVICTING
            return False
        ended = tuple(self._evictor.end_jobs(case.victims, case.name))
        self._look_again(key for key, _ in ended)
        return all(over for _, over in ended)

    # -- how it ends -------------------------------------------------------------------------------------------------

    def _give_up(self, key: WorkloadKey, case: Preemption, hook: Preempts) -> None:
        """Its time is over, or it wants something else: others may have the nodes, and it has another try later."""
        logger.bind(workload=str(case.root)).warning("preemption: given up while {}", case.stage.value)
        self._pause(key, hook)
        self._forget(key, case)
        hook.count("given_up")

    def _forget(self, key: WorkloadKey, case: Preemption) -> None:
        """The nodes are free to all, and the nominations are taken back."""
        self._store.of(key).preemption = None
        self._nominations.take_back(case.pods)
        self._look_again((key,))
        self._holds.end(key)

    def _look_again(self, keys: Iterable[WorkloadKey]) -> None:
        for key in keys:
            if self._census.crew(key) is not None:
                self._queue.activate(key, urgent=bool(self._tools.table.of(key)))
