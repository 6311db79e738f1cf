"""Pods that are still on a node that Slurm may have given to another job."""

from collections.abc import Iterable

from slurm_bridge.model.job import Phase
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.pod import Pod
from slurm_bridge.scheduler import current_job, words
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.workload_pods import job_id_of


def all_on(ctx: SchedulerContext, node: str) -> tuple[Pod, ...]:
    """Pods on a node whose job has ended, or was forgotten and waits for the node again."""
    return (*ended_on(ctx, node), *forgotten_on(ctx, node))


def ended_on(ctx: SchedulerContext, node: str) -> tuple[Pod, ...]:
    """Pods on a node whose job has ended; Slurm forgets such a job sooner than some pods end."""
    return tuple(pod for pod, key in ctx.pod_index.placed_on(node) if _outlived(ctx, pod, key))


def _outlived(ctx: SchedulerContext, pod: Pod, key: WorkloadKey) -> bool:
    job_id = job_id_of(pod)
    job = ctx.table.get(job_id) if job_id is not None else None
    if job is None:
        return pod.terminating
    return not job.alive and job.owner.key == key


def preempted(ctx: SchedulerContext, pods: Iterable[Pod]) -> bool:
    """Slurm has ended the job of one of them for the sake of another job."""
    jobs = (ctx.table.get(job_id) for pod in pods if (job_id := job_id_of(pod)) is not None)
    return any(job is not None and "PREEMPTED" in job.state.words for job in jobs)


def refused_on(ctx: SchedulerContext, node: str) -> bool:
    """Slurm has tried to start a job that waits for this node again, and had no room for it."""
    keys = {key for pod, key in ctx.pod_index.placed_on(node) if key in ctx.states.regaining}
    jobs = (job for key in keys for job in ctx.table.of(key) if job.phase is Phase.PENDING)
    return any(words.refused(job) and job.view is not None and not job.view.held for job in jobs)


def forgotten_on(ctx: SchedulerContext, node: str) -> tuple[Pod, ...]:
    """Pods on a node whose job was forgotten, and waits for the node again."""
    for key in ctx.states.regaining:
        if not any(one.phase is Phase.PENDING for one in ctx.table.of(key)):
            ctx.states.end_regaining(key)
    workloads = (ctx.pod_index.workload(key) for key in ctx.states.regaining)
    return tuple(pod for members in workloads if members for pod in current_job.on(node, members))
