"""What all steps of an explanation share."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from slurm_bridge import ports
from slurm_bridge.explain.cluster_view import CurrentSnapshot
from slurm_bridge.hooks.attempts import PlanState
from slurm_bridge.hooks.chain import Chain
from slurm_bridge.hooks.services import ChainServices
from slurm_bridge.model.job import JobRequest, JobView, Phase
from slurm_bridge.model.parts import ClusterParts
from slurm_bridge.model.workload import Workload
from slurm_bridge.scheduler import desired_job
from slurm_bridge.scheduler.ids import IdRange
from slurm_bridge.scheduler.state import DesiredJob
from slurm_bridge.translate import digest
from slurm_bridge.translate.rules import Rules
from slurm_bridge.translate.translator import Translated

#: Writes the body of a submission; ValueError names a value that Slurm would silently change.
Write = Callable[[JobRequest], Mapping[str, object]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ExplainContext:
    """The configuration, as the daemon uses it.

    `current` is the snapshot that `around` gives to hooks that read it in the background.
    """

    rules: Rules
    chain: Chain
    around: ChainServices
    current: CurrentSnapshot
    ids: IdRange | None
    write: Write
    clock: ports.Clock
    #: Of several daemons; None where there is one.
    parts: ClusterParts | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """One workload with its translation and its jobs."""

    workload: Workload
    translated: Translated
    means: ExplainContext
    jobs: Sequence[JobView]

    @property
    def desired(self) -> DesiredJob:
        """The record that the scheduler would keep."""
        intent = digest.intent(self.translated, desired_job.retry(self.workload))
        return DesiredJob(workload=self.workload, translated=self.translated, intent=intent)


def running(jobs: Sequence[JobView]) -> PlanState | None:
    """The attempt at nodes that is in force, from the owner record of the placeholder."""
    found = alive(jobs)
    return PlanState.of_running(found.owner.plan) if found is not None and found.owner is not None else None


def alive(jobs: Sequence[JobView] | None) -> JobView | None:
    """The last job that has not ended."""
    return next((view for view in reversed(jobs or ()) if view.state.phase is not Phase.ENDED), None)
