"""A job that waits in Slurm: is it still what the workload asks for, and for the same members?

the same                  its members may have changed: their record follows
with required nodes       by an earlier version: they are taken away, because a running job could lose its life by them
what an update can change it is updated, and read back
anything else             it is given back, and the next one takes its place
no node but those that    it is given back: nothing but a job that is not there keeps Slurm from giving it one of them
are cleared for another   the moment it comes free
"""

import dataclasses

import msgspec
from loguru import logger

from slurm_bridge.hooks.chain import Plan
from slurm_bridge.model.job import Done, Refusal, Refused, Unknown
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.scheduler import desired_job, records, words
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.effects import cancel, submit
from slurm_bridge.scheduler.queue import AT_ONCE, WOKEN, Filed
from slurm_bridge.scheduler.state import DesiredJob

#: Intent, what an update cannot change, what it can.
MARK_PARTS = 3
#: Why a job is given back that Slurm would start on nodes that were cleared for another workload.
CROWDED_OUT = "its remaining nodes are being cleared for another workload"


def keep(ctx: SchedulerContext, desired: DesiredJob, planned: Plan | Wait | Reject, placeholder: Placeholder) -> Filed:
    """A job that pends: is it still what is wanted?"""
    if isinstance(planned, Wait) and desired_job.is_crowded_out(desired, ctx, placeholder):
        ctx.promised.crowds_out(desired.workload.root.key)
        return cancel.replace(ctx, placeholder, CROWDED_OUT)
    if isinstance(planned, Wait | Reject):
        ctx.say(desired.workload, planned.reason, f"{planned.message} Slurm job {placeholder.job_id} stays as it was.")
        return WOKEN if isinstance(planned, Reject) else Filed(after=planned.retry_after, moving=planned.moving)
    wanted, asked = desired_job.mark(desired, planned), placeholder.owner.request
    changed = wanted != asked or bool(placeholder.view is not None and placeholder.view.required_nodes)
    if not changed or ctx.states.of(placeholder.owner.key).update_refused == wanted:
        _tell_pending(ctx, desired, planned, placeholder)
        renamed = rename(ctx, desired, placeholder)
        return renamed if renamed is not None else _in_time(ctx, planned)
    if _fixed(wanted) != _fixed(asked):
        return cancel.replace(ctx, placeholder, "the request changed")
    return _update(ctx, desired, planned, placeholder)


def _in_time(ctx: SchedulerContext, planned: Plan) -> Filed:
    """A plan of several attempts goes on after a time; other plans go on when an event wakes them."""
    due = desired_job.due(planned, ctx)
    return WOKEN if due is None else Filed(after=due)


def rename(ctx: SchedulerContext, desired: DesiredJob, placeholder: Placeholder) -> Filed | None:
    """A member was made anew and asks for the same: the job's record has to name it. None: it does."""
    pods = desired.workload.pods
    if desired.workload.gang is None or records.stands_for(placeholder.owner, pods):
        return None
    if ctx.still_ours(placeholder) is None:
        return AT_ONCE
    # A running job has the places that it was asked for, whichever pods take them.
    places = records.places_of(placeholder.owner) if placeholder.started else None
    owner = msgspec.structs.replace(placeholder.owner, members=records.members_of(pods, places))
    outcome = ctx.slurm.note(placeholder.job_id, owner)
    if isinstance(outcome, Refused) and outcome.why is not Refusal.BUSY:
        # The record helps to tell new members from earlier ones; without it the workload goes on.
        logger.warning("the record of job {} stays as it is: {}", placeholder.job_id, outcome.message)
        return None
    if not isinstance(outcome, Done):
        return ctx.back_off(placeholder.owner.key)
    return _changed(ctx, placeholder)


def _changed(ctx: SchedulerContext, placeholder: Placeholder) -> Filed:
    """Slurm said yes: what the job says now is what counts. One that says the same as before is left alone."""
    read = ctx.mirror.look(placeholder.job_id, placeholder.owner, tell=False)
    same = read is not None and read.owner == placeholder.owner
    return ctx.back_off(placeholder.owner.key) if same else AT_ONCE


def _tell_pending(ctx: SchedulerContext, desired: DesiredJob, planned: Plan, placeholder: Placeholder) -> None:
    """Only for jobs that wait for long enough to be read: one that starts at once is told of when it is bound."""
    workload, text = desired.workload, words.waiting(placeholder)
    wanted = planned.wanted if planned.tried and words.refused(placeholder) else ()
    text = words.nowhere(wanted, text)
    ctx.say(workload, "SlurmJobPending", text, key=f"{words.key(placeholder)} {'; '.join(wanted)}".rstrip())
    if placeholder.view is not None:
        submitted = f"Slurm job {placeholder.job_id}{words.asked(planned.request)}{words.said(planned.values)}"
        ctx.status.group(workload, "SlurmJobSubmitted", submitted)
    if placeholder.view is not None and placeholder.view.reason not in ("", "None"):
        ctx.status.group(workload, "SlurmJobPending", text)


def _update(ctx: SchedulerContext, desired: DesiredJob, planned: Plan, placeholder: Placeholder) -> Filed:
    if ctx.still_ours(placeholder) is None:
        return AT_ONCE
    request = submit.asked(ctx, desired, planned, placeholder.owner.attempt)
    outcome = ctx.slurm.update(placeholder.job_id, dataclasses.replace(request, job_id=None))
    if isinstance(outcome, Refused):
        if outcome.why in (Refusal.STARTED, Refusal.OVER, Refusal.NO_SUCH_JOB):
            ctx.mirror.look(placeholder.job_id, placeholder.owner, tell=False)
            return AT_ONCE
        if outcome.why is Refusal.UNKNOWN_NODE:
            # One name that Slurm does not know spoils every later update of this job too.
            ctx.refresh_facts()
            return cancel.replace(ctx, placeholder, "a node that it names is not in Slurm any more")
        if outcome.why is Refusal.BUSY:
            return ctx.back_off(placeholder.owner.key)
        ctx.states.of(placeholder.owner.key).update_refused = desired_job.mark(desired, planned)
        text = f"Slurm job {placeholder.job_id} stays as it was, the change is refused: {outcome.message}"
        ctx.status.group(desired.workload, "SlurmJobRejected", text, warning=True)
        # What comes next may be taken, and the job must not stay with the few nodes that it has now.
        return _in_time(ctx, planned)
    changed = _changed(ctx, placeholder)
    return ctx.back_off(placeholder.owner.key) if isinstance(outcome, Unknown) else changed


def _fixed(mark: str) -> str:
    """The half of a digest that an update cannot change."""
    return mark.split(":")[1] if mark.count(":") == MARK_PARTS - 1 else mark
