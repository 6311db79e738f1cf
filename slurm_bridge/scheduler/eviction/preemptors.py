"""Workloads that may preempt others: those that wait for nodes, for long enough, and for nothing else. Reads only."""

import dataclasses

from loguru import logger

from slurm_bridge.hooks import chain
from slurm_bridge.hooks.background import NotAnswered
from slurm_bridge.hooks.base import Ask
from slurm_bridge.hooks.evictions import Preempts, Proposal, Situation
from slurm_bridge.mirror.table import Table
from slurm_bridge.model.job import JobView, Phase
from slurm_bridge.model.placeholder import Certainty, Placeholder
from slurm_bridge.model.workload import Root
from slurm_bridge.scheduler import wish as wishes
from slurm_bridge.scheduler.members import PLACED, Crew, Standing
from slurm_bridge.scheduler.state import Wish

#: Reasons of a pending job that free nodes would help. They would not help any other (a limit, a dependency).
LACKING = frozenset({"Resources", "Priority"})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Preemptor:
    """A workload that waits for nodes since then: in Slurm (`submitted`), or before because the hooks leave it none."""

    ask: Ask
    intent: str
    since: float
    submitted: bool

    @property
    def root(self) -> Root:
        """Its root."""
        return self.ask.workload.root

    @property
    def priority(self) -> int:
        """Pods of a lower one may be evicted for it."""
        return self.ask.workload.priority


def preemptor(
    hook: Preempts, wish: Wish | None, crew: Crew | None, table: Table, *, now: float, window: int
) -> Preemptor | None:
    """The workload as it was translated last; one that has changed since is looked at after its next translation."""
    if wish is None or crew is None or crew.count(*PLACED) or not is_wanted(wish):
        return None
    ask = chain.asked(wish.workload, wish.translated)
    if not hook.supports(ask):
        return None
    jobs = [one for one in table.of(wish.workload.root.key) if one.alive]
    if not all(map(_lacks_nodes, jobs)) or (not jobs and table.unstarted >= window):
        # It could not use the nodes, or could not be submitted to them.
        return None
    since = jobs[0].since if jobs else crew.joined
    if now - since < hook.after_seconds:
        return None
    if {pod.uid for pod in wish.workload.pods} != {pod.uid for pod in crew.pods(Standing.WANTING)}:
        return None
    return Preemptor(ask=ask, intent=wish.intent, since=since, submitted=bool(jobs))


def proposal(hook: Preempts, one: Preemptor, situation: Situation) -> Proposal | None:
    """What the hook proposes; None when there is nothing to gain, or not yet."""
    try:
        return hook.propose(one.ask, situation)
    except NotAnswered as silent:
        logger.bind(workload=str(one.root)).warning("preemption: not now: {}", silent)
    return None


def is_wanted(wish: Wish) -> bool:
    """The workload is to have a job."""
    return not wish.workload.suspended and not wishes.parked(wish)


def waits_for_nodes(view: JobView) -> bool:
    """The job is pending for want of nodes, and nobody holds it."""
    return view.reason in LACKING and not view.held


def _lacks_nodes(placeholder: Placeholder) -> bool:
    pending = placeholder.phase is Phase.PENDING and placeholder.certainty is Certainty.SEEN
    return pending and placeholder.view is not None and waits_for_nodes(placeholder.view)
