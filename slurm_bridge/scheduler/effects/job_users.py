"""The user of a job as slurmctld resolved it: only its number tells whether a name is a system account.

Every reading of a job carries the number, so the check costs no call. The last reading is the one before the binding.
"""

from slurm_bridge.model.job import JobView
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.scheduler import state
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.effects import cancel
from slurm_bridge.scheduler.queue import AT_ONCE, Filed
from slurm_bridge.scheduler.state import DesiredJob
from slurm_bridge.translate import forms

#: A job of the same request is not submitted again before so many seconds have passed: administrators repair things.
REFUSED_AGAIN = 300.0


def refused_lately(ctx: SchedulerContext, desired: DesiredJob) -> Filed | None:
    """How long this request has to wait, None when it may be submitted."""
    refused = ctx.states.of(desired.workload.root.key).user_refused
    left = refused.until - ctx.clock.now() if refused is not None else 0.0
    return Filed(after=left) if refused and left > 0 and refused.what == desired.intent else None


def refuse(ctx: SchedulerContext, desired: DesiredJob, placeholder: Placeholder) -> Filed:
    """Withdraw the job, and tell its user why; by two readings, one may be garbled."""
    key = desired.workload.root.key
    read = ctx.mirror.look(placeholder.job_id, placeholder.owner, tell=False)
    if read is None or not improper(read):
        return AT_ONCE
    placeholder = read
    text = f"Slurm job {placeholder.job_id} {_wrong(placeholder.view)}; the job is withdrawn"
    ctx.say(desired.workload, "UserNotAllowed", text, parked=True)
    ctx.status.group(desired.workload, "UserNotAllowed", text, warning=True)
    ctx.counters.attempt("rejected")
    filed = cancel.replace(ctx, placeholder, "its user is not allowed")
    ctx.states.of(key).user_refused = state.RefusedRequest(desired.intent, ctx.clock.now() + REFUSED_AGAIN)
    return Filed(after=REFUSED_AGAIN) if filed is AT_ONCE else filed


def improper(placeholder: Placeholder) -> bool:
    """Slurm has said that the job belongs to an account of the system."""
    view = placeholder.view
    return view is not None and view.user_id is not None and not forms.ordinary(view.user_id)


def _wrong(view: JobView | None) -> str:
    assert view is not None
    return (
        f"belongs to user {view.user or 'without a name'} with the number {view.user_id}; use one with a number from"
        f" {forms.FIRST_USER} on except 65534: change the annotation user-id, the policy's defaults or defaults.user"
    )
