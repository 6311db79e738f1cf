"""Pods that are still on a node that Slurm may have given to another job."""

from slurm_bridge.model.job import Phase
from slurm_bridge.model.pod import Pod
from slurm_bridge.scheduler import current_job
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.workload_pods import job_id_of


def all_on(ctx: SchedulerContext, node: str) -> tuple[Pod, ...]:
    """Pods on a node whose job has ended, or was forgotten and waits for the node again."""
    left = []
    for pod, key in ctx.pod_index.placed_on(node):
        job_id = job_id_of(pod)
        job = ctx.table.get(job_id) if job_id is not None else None
        if job is not None and not job.alive and job.owner.key == key:
            left.append(pod)
    return (*left, *forgotten_on(ctx, node))


def forgotten_on(ctx: SchedulerContext, node: str) -> tuple[Pod, ...]:
    """Pods on a node whose job was forgotten, and waits for the node again."""
    for key in ctx.states.regaining:
        if not any(one.phase is Phase.PENDING for one in ctx.table.of(key)):
            ctx.states.end_regaining(key)
    workloads = (ctx.pod_index.workload(key) for key in ctx.states.regaining)
    return tuple(pod for members in workloads if members for pod in current_job.on(node, members))
