"""One placeholder for each workload: submit it, and look for it when an answer was lost.

What can go wrong between asking and knowing:

    answer lost              the job may exist: look for it, by its chosen id, else by scans that all lost ones share
    id is taken              by an earlier try of ours: adopt it; by one that ended, or by a stranger: the next attempt
    we die                   the owner record is in the job: the next start finds it
"""

import dataclasses
from collections.abc import Collection

from loguru import logger

from slurm_bridge.hooks import honoured_demands
from slurm_bridge.hooks.chain import Plan
from slurm_bridge.mirror import readings
from slurm_bridge.model import job, names
from slurm_bridge.model.job import Done, JobRequest, Refusal, Refused, Unknown
from slurm_bridge.model.placeholder import Certainty, Placeholder
from slurm_bridge.scheduler import desired_job, records, state, words
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.effects import job_users
from slurm_bridge.scheduler.queue import AT_ONCE, WOKEN, Filed
from slurm_bridge.scheduler.state import DesiredJob

#: A request that Slurm refused is tried again although nothing of ours has changed: administrators repair things.
REFUSED_AGAIN = 300.0
#: A node that Slurm does not know has just left it, as a rule; when it still does not know it then, something is wrong.
MOST_UNTOLD = 3
#: Ids taken by strangers in a row before something else must be wrong.
MOST_COLLISIONS = 10


def submit(
    ctx: SchedulerContext,
    desired: DesiredJob,
    planned: Plan,
    placeholder: Placeholder | None,
    served: Collection[names.JobId] = (),
) -> Filed:
    """Make sure that there is a placeholder. Pods of the workload were bound by the jobs that have `served` it."""
    if placeholder is not None and placeholder.certainty is Certainty.MAYBE:
        if ctx.mirror.look(placeholder.job_id, placeholder.owner) is not None:
            return AT_ONCE
        ctx.table.drop(placeholder.job_id)
    waiting = job_users.refused_lately(ctx, desired) or _declined_lately(ctx, desired, planned)
    if waiting is not None:
        return waiting
    for pod in desired.workload.pods:
        # Bindings whose answer was lost did not happen: the room that was kept for them is free.
        ctx.keeper.forget(pod.uid)
    root = desired.workload.root
    attempt = ctx.table.next_attempt(root.key) if placeholder is None else placeholder.next_attempt
    return _send(ctx, desired, planned, attempt, served)


def _declined_lately(ctx: SchedulerContext, desired: DesiredJob, planned: Plan) -> Filed | None:
    """The very same request was refused a moment ago: what woke the workload has not changed that."""
    declined = ctx.states.of(desired.workload.root.key).declined
    left = declined.until - ctx.clock.now() if declined is not None else 0.0
    return Filed(after=left) if declined and left > 0 and declined.what == desired_job.mark(desired, planned) else None


def _send(
    ctx: SchedulerContext, desired: DesiredJob, planned: Plan, attempt: int, served: Collection[names.JobId]
) -> Filed:
    # Groups that start anew again and again leave a row of ids that ended jobs keep for a while.
    for number in (attempt + (1 << step) - 1 for step in range(MOST_COLLISIONS)):
        request = asked(ctx, desired, planned, number, aside=number != attempt)
        if request.job_id in served:
            # Slurm may have forgotten that job; pods that name it would pass for bound by this one.
            continue
        outcome = ctx.slurm.submit(request)
        if isinstance(outcome, Refused) and outcome.why is Refusal.EXISTS and request.job_id is not None:
            # Whose is the id that is taken? It may be this attempt's, or of no use.
            found = ctx.mirror.look(request.job_id, request.owner, tell=False)
            if found is not None and found.alive:
                return AT_ONCE
            continue
        return _sent(ctx, desired, planned, request, outcome)
    return _refusal(ctx, desired, Refused(why=Refusal.EXISTS, code=0, message="every job id that was tried is taken"))


def _sent(
    ctx: SchedulerContext, desired: DesiredJob, planned: Plan, request: JobRequest, outcome: job.Outcome
) -> Filed:
    if isinstance(outcome, Done):
        return _created(ctx, desired, planned, request, outcome)
    if isinstance(outcome, Unknown):
        # It may exist. With an id we know where to look; without one a scan has to tell.
        job_id = request.job_id or outcome.job_id
        logger.bind(workload=str(desired.workload.root)).warning("submit was not answered: {}", outcome.message)
        ctx.counters.attempt("unknown")
        if job_id is not None:
            ctx.table.put(readings.unknown(job_id, request.owner, ctx.clock.now()), tell=False)
            ctx.mirror.nudge()
        else:
            ctx.states.of(request.owner.key).search = state.Search(ctx.clock.now())
        text = "Slurm did not answer: it is not known whether the job was created; looking for it"
        ctx.say(desired.workload, "SlurmUnavailable", text)
        return ctx.back_off(request.owner.key)
    if outcome.why not in (Refusal.BUSY, Refusal.UNKNOWN_NODE):
        until = ctx.clock.now() + REFUSED_AGAIN
        ctx.states.of(request.owner.key).declined = state.RefusedRequest(request.owner.request, until)
    return _refusal(ctx, desired, outcome)


def _created(ctx: SchedulerContext, desired: DesiredJob, planned: Plan, request: JobRequest, outcome: Done) -> Filed:
    new = readings.submitted(outcome.job_id, request.owner, ctx.clock.now())
    earlier = [one for one in ctx.table.of(request.owner.key) if one.job_id != outcome.job_id]
    ctx.table.put(new, tell=False)
    for one in earlier:
        if not one.alive:
            ctx.table.drop(one.job_id)
    ctx.mirror.nudge()
    ctx.counters.attempt("submitted")
    ctx.say(desired.workload, "SlurmJobPending", words.waiting(new), key=words.key(new))
    if planned.told:
        ctx.status.group(desired.workload, "SlurmJobWidened", planned.told, warning=True)
    if planned.ignored:
        ctx.status.group(desired.workload, honoured_demands.REASON, planned.ignored, warning=True)
    return WOKEN


def _refusal(ctx: SchedulerContext, desired: DesiredJob, outcome: Refused) -> Filed:
    again = outcome.why in (Refusal.BUSY, Refusal.UNKNOWN_NODE)
    if outcome.why is Refusal.UNKNOWN_NODE:
        ctx.refresh_facts()
        if ctx.avoided.tries(desired.workload.root.key) < MOST_UNTOLD:
            return ctx.back_off(desired.workload.root.key)
    busy = outcome.why is Refusal.BUSY
    ctx.counters.attempt("unavailable" if busy else "rejected")
    text = f"Slurm refuses the job: {outcome.message} (error {outcome.code})"
    reason = "SlurmUnavailable" if busy else "SlurmJobRejected"
    ctx.say(desired.workload, reason, text, parked=not again)
    ctx.status.group(desired.workload, reason, text, warning=True)
    return ctx.back_off(desired.workload.root.key) if again else Filed(after=REFUSED_AGAIN)


def asked(
    context: SchedulerContext, desired: DesiredJob, planned: Plan, attempt: int, *, aside: bool = False
) -> JobRequest:
    """The plan as it is sent: with the owner record of this attempt, and its id; `aside` of one that is taken."""
    owner = records.for_attempt(
        planned.request.owner,
        attempt,
        request=desired_job.mark(desired, planned),
        plan=planned.state.text,
        members=desired_job.members(desired),
        reserved=context.states.of(desired.workload.root.key).leadership.reserved,
    )
    ids = context.limits.ids
    return dataclasses.replace(planned.request, owner=owner, job_id=ids.choose(owner, aside=aside) if ids else None)
