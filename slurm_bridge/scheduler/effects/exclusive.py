"""Whether a placeholder has its nodes for itself, because of what its user asked for or of what a hook made of it."""

from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.state import DesiredJob


def as_submitted(
    ctx: SchedulerContext, desired: DesiredJob, placeholder: Placeholder, snapshot: ClusterSnapshot
) -> bool:
    """As Slurm shows the job, or as it would be submitted now: not every reading has the field."""
    if placeholder.view is not None and placeholder.view.exclusive:
        return True
    return ctx.config.chain.exclusive(desired.workload, desired.translated, snapshot)
