"""When a job that does not fit now could start: backfill asks before it lets a later job start first."""

from collections.abc import Sequence

from slurm_bridge.sim.slurm import select, state
from slurm_bridge.sim.slurm.world import World


def plan(world: World, job: state.SlurmJob, grounds: Sequence[select.NodeChoice]) -> state.StartPlan | None:
    """The earliest start if every running job uses its whole time limit; None if that frees too little."""
    running = [world.jobs[job_id] for job_id in world.running]
    ends = sorted({running_job.deadline for running_job in running if running_job.deadline != float("inf")})
    low, high = 0, len(ends)
    best: state.StartPlan | None = None
    while low < high:
        middle = (low + high) // 2
        found = _fits(world, job, grounds, running, until=ends[middle])
        if found is None:
            low = middle + 1
        else:
            best, high = found, middle
    return best


def _fits(
    world: World,
    job: state.SlurmJob,
    grounds: Sequence[select.NodeChoice],
    running: Sequence[state.SlurmJob],
    *,
    until: float,
) -> state.StartPlan | None:
    """Where the job would start after everything that ends by then has ended."""
    free = world.free.copy()
    for other in running:
        if other.deadline <= until and other.grant is not None:
            free.give(other.grant.shares)
    for ground in grounds:
        nodes = [world.nodes[name] for name in ground.partition.nodes if world.nodes[name].usable]
        grant = select.choose(job.ask, select.NodeChoice(nodes=nodes, free=free, partition=ground.partition))
        if grant is not None:
            return state.StartPlan(start=until, nodes=grant.nodes)
    return None
