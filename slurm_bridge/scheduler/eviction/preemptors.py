"""Workloads that may preempt others: those that wait for nodes, for long enough, and for nothing else. Reads only."""

import dataclasses

from loguru import logger

from slurm_bridge.hooks import chain
from slurm_bridge.hooks.base import Ask
from slurm_bridge.hooks.evictions import Preempts, Proposal, Situation
from slurm_bridge.hooks.services import NotAnswered
from slurm_bridge.mirror.table import Table
from slurm_bridge.model.job import JobView, Phase
from slurm_bridge.model.placeholder import Certainty, Placeholder
from slurm_bridge.model.workload import Root
from slurm_bridge.scheduler import desired_job
from slurm_bridge.scheduler.state import DesiredJob
from slurm_bridge.scheduler.workload_pods import PLACED, PodState, WorkloadPods

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
    hook: Preempts, desired: DesiredJob | None, members: WorkloadPods | None, table: Table, *, now: float, window: int
) -> Preemptor | None:
    """The workload as it was translated last; one that has changed since is looked at after its next translation."""
    if desired is None or members is None or members.count(*PLACED) or not is_wanted(desired):
        return None
    ask = chain.asked(desired.workload, desired.translated)
    if not hook.supports(ask):
        return None
    jobs = [one for one in table.of(desired.workload.root.key) if one.alive]
    if not all(map(_lacks_nodes, jobs)) or (not jobs and table.unstarted >= window):
        # It could not use the nodes, or could not be submitted to them.
        return None
    since = jobs[0].since if jobs else members.joined
    if now - since < hook.after_seconds:
        return None
    if {pod.uid for pod in desired.workload.pods} != {pod.uid for pod in members.pods(PodState.WANTING)}:
        return None
    return Preemptor(ask=ask, intent=desired.intent, since=since, submitted=bool(jobs))


def proposal(hook: Preempts, one: Preemptor, situation: Situation) -> Proposal | None:
    """What the hook proposes; None when there is nothing to gain, or not yet."""
    try:
        return hook.propose(one.ask, situation)
    except NotAnswered as silent:
        logger.bind(workload=str(one.root)).warning("preemption: not now: {}", silent)
    return None


def is_wanted(desired: DesiredJob) -> bool:
    """The workload is to have a job."""
    return not desired.workload.suspended and not desired_job.parked(desired)


def waits_for_nodes(view: JobView) -> bool:
    """The job is pending for want of nodes, and it is not held."""
    return view.reason in LACKING and not view.held


def _lacks_nodes(placeholder: Placeholder) -> bool:
    pending = placeholder.phase is Phase.PENDING and placeholder.certainty is Certainty.SEEN
    return pending and placeholder.view is not None and waits_for_nodes(placeholder.view)
