"""The timers of a workload: when they start, when they stop, and how many seconds are left.

    incomplete   from a look that finds members missing or unusable while there is a job, until all are there
    settling     from a look that finds members of a group of unknown size, until no more have come for a while
    starting     from the first binding by a job, until as many members as the job was asked for are bound

A new leadership starts them all anew.
"""

from slurm_bridge.model.names import JobId
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.model.workload import Workload
from slurm_bridge.scheduler import records
from slurm_bridge.scheduler.context import Limits
from slurm_bridge.scheduler.state import Leadership
from slurm_bridge.scheduler.workload_pods import WorkloadPods

#: A group whose members never stop coming is submitted after so many times the settling time.
MOST_SETTLING = 10


def incomplete_left(leadership: Leadership, now: float, limits: Limits) -> float:
    """Seconds until the job of an incomplete workload is cancelled."""
    since = now if leadership.incomplete_since is None else leadership.incomplete_since
    return since + limits.incomplete_seconds - now


def start_incomplete(leadership: Leadership, now: float) -> None:
    """Members are missing or unusable; does nothing when the timer runs."""
    if leadership.incomplete_since is None:
        leadership.incomplete_since = now


def settling_left(leadership: Leadership, members: WorkloadPods, now: float, limits: Limits) -> float | None:
    """Seconds until the group counts as whole; None when it does, or when its members are not being counted."""
    since = leadership.settling_since
    if since is None:
        return None
    quiet = limits.settle_seconds
    left = min(members.joined + quiet, since + MOST_SETTLING * quiet) - now
    return left if left > 0 else None


def follow_members(
    leadership: Leadership, workload: Workload, members: WorkloadPods, now: float, limits: Limits, *, started: bool
) -> float | None:
    """No known member is missing: stop `incomplete`, start or stop `settling`; the seconds that are left of it."""
    leadership.incomplete_since = None
    gang = workload.gang
    if gang is None or (gang.size is not None and len(workload.pods) >= gang.size) or started:
        return None
    if leadership.settling_since is None:
        leadership.settling_since = now
    left = settling_left(leadership, members, now, limits)
    if left is None:
        leadership.settling_since = None
    return left


def begin_start(leadership: Leadership, job_id: JobId, now: float) -> None:
    """The pods of this job are bound from now on; does nothing when its start is under way."""
    if leadership.starting is None or leadership.starting[0] != job_id:
        leadership.starting = (job_id, now)


def start_left(
    leadership: Leadership, members: WorkloadPods, placeholder: Placeholder, now: float, limits: Limits
) -> float | None:
    """Seconds that are left for the start by this job; None when it is complete, or has not begun."""
    job_id, began = leadership.starting or (None, 0.0)
    if job_id != placeholder.job_id or is_complete(members, placeholder):
        return None
    return began + limits.bind_seconds - now


def is_complete(members: WorkloadPods, placeholder: Placeholder, *, more: int = 0) -> bool:
    """As many members as the job was asked for have been bound, `more` of them without the watch having reported it."""
    theirs = members.of_job(placeholder.job_id)
    return more + theirs.ever - theirs.losses >= records.starters_of(placeholder.owner)
