"""Pods that are still on a node that Slurm may have given to another job."""

from slurm_bridge.model.job import Phase
from slurm_bridge.model.names import JobId, WorkloadKey
from slurm_bridge.model.pod import Pod
from slurm_bridge.scheduler import relevant
from slurm_bridge.scheduler.members import job_id_of
from slurm_bridge.scheduler.tools import Tools


def all_on(ctx: Tools, node: str) -> tuple[Pod, ...]:
    """Pods on a node whose job has ended, or was forgotten and waits for the node again."""
    left = (pod for pod, key in ctx.census.placed_on(node) if _has_ended(ctx, job_id_of(pod), key))
    return (*left, *forgotten_on(ctx, node))


def forgotten_on(ctx: Tools, node: str) -> tuple[Pod, ...]:
    """Pods on a node whose job was forgotten, and waits for the node again."""
    for key in tuple(ctx.states.regaining):
        if not any(one.phase is Phase.PENDING for one in ctx.table.of(key)):
            ctx.states.regaining.discard(key)
    crews = (ctx.census.crew(key) for key in tuple(ctx.states.regaining))
    return tuple(pod for crew in crews if crew for pod in relevant.on(node, crew))


def _has_ended(ctx: Tools, job_id: JobId | None, key: WorkloadKey) -> bool:
    job = ctx.table.get(job_id) if job_id is not None else None
    return job is not None and not job.alive and job.owner.key == key
