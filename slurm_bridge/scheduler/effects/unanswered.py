"""Where job ids cannot be chosen: find the job of a submit that was not answered, by scans that all such submits share.

    submit ──first scan──► not found ──gap──► second scan ──► not found: it was never created, go on without it
                 └──────────── found: the table has it ───────────┘

slurmrestd gives up on slurmctld after 10 s while slurmctld may still create the job; the gap is longer than that.
"""

from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.queue import AT_ONCE, Filed
from slurm_bridge.scheduler.state import Search

#: Scans without a trace before the job counts as never created.
SCANS = 2


def search(ctx: SchedulerContext, key: WorkloadKey) -> Filed:
    """Go on until it is certain whether there is a job, whatever happens to the pods meanwhile.

    A job that the bridge does not know uses up what its queue has, and would outlive its pods until the next sweep.
    """
    waiting = ctx.states.of(key).search
    if waiting is None or ctx.table.lives(key):
        return _settled(ctx, key)
    if ctx.mirror.failing:
        return Filed(after=ctx.limits.lookup_gap)
    _scan(ctx, waiting)
    if waiting.scans >= SCANS or ctx.table.lives(key):
        return _settled(ctx, key)
    return Filed(after=max(0.1, waiting.not_before - ctx.clock.now()))


def _settled(ctx: SchedulerContext, key: WorkloadKey) -> Filed:
    ctx.states.of(key).search = None
    return AT_ONCE


def _scan(ctx: SchedulerContext, waiting: Search) -> None:
    """A scan that began late enough counts for every submit that waits for one."""
    with ctx.scans.lock:
        now = ctx.clock.now()
        if now < waiting.not_before:
            return
        if ctx.scans.last < waiting.not_before:
            ctx.mirror.sweep()
            ctx.scans.last = now
        waiting.scans += 1
        waiting.not_before = now + ctx.limits.lookup_gap
