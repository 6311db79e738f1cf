"""What keeps a workload from going on: said to its members, counted, and waited for."""

from loguru import logger

from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.model.workload import Workload
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.queue import Filed
from slurm_bridge.scheduler.workload_pods import PodState, WorkloadPods


def of_crew(ctx: SchedulerContext, members: WorkloadPods, obstacle: Wait | Reject) -> Filed:
    """For members whose workload is not known yet."""
    lead, rejected = members.first(PodState.WANTING), isinstance(obstacle, Reject)
    ctx.say_to_members(members, obstacle.reason, obstacle.message, key=obstacle.message, parked=rejected)
    if rejected and lead is not None:
        ctx.status.event(lead, obstacle.reason, obstacle.message, warning=True)
    return _count(ctx, str(members.root), obstacle)


def of_workload(ctx: SchedulerContext, workload: Workload, obstacle: Wait | Reject) -> Filed:
    """Say why, and wait for whatever can change it."""
    ctx.say(workload, obstacle.reason, obstacle.message, parked=isinstance(obstacle, Reject))
    if isinstance(obstacle, Reject) or obstacle.warning:
        ctx.status.group(workload, obstacle.reason, obstacle.message, warning=True)
    return _count(ctx, str(workload.root), obstacle)


def _count(ctx: SchedulerContext, whose: str, obstacle: Wait | Reject) -> Filed:
    rejected = isinstance(obstacle, Reject)
    if rejected:
        logger.bind(workload=whose).info("{}: {}", obstacle.reason, obstacle.message)
    ctx.counters.attempt("rejected" if rejected else "unschedulable")
    return Filed() if isinstance(obstacle, Reject) else Filed(after=obstacle.retry_after, moving=obstacle.moving)
