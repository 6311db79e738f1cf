"""Gives a job back: first a note in the job says why, so that it does not look like an administrator's wish."""

from collections.abc import Sequence

from loguru import logger

from slurm_bridge import errors
from slurm_bridge.model import job, kinds, names
from slurm_bridge.model.job import Done, Phase, Refusal, Refused, Unknown
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.placeholder import Certainty, Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.ports import Scope
from slurm_bridge.scheduler import records
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.queue import AT_ONCE, Filed


def back_off(ctx: SchedulerContext, key: WorkloadKey) -> Filed:
    """Later, and later each time."""
    return Filed(after=ctx.pause(key))


def replace(ctx: SchedulerContext, placeholder: Placeholder, why: str) -> Filed:
    """Cancel it, after writing into it that it was us; its end brings the next attempt."""
    if placeholder.certainty is Certainty.MAYBE:
        # An order that is on its way cannot be cancelled; the mirror gives it up in its time.
        found = ctx.mirror.look(placeholder.job_id, placeholder.owner, tell=False)
        return AT_ONCE if found is not None else ctx.back_off(placeholder.owner.key)
    if placeholder.phase is not Phase.PENDING and _bound_after_all(ctx, placeholder):
        return Filed(after=ctx.limits.backoff_first)
    if not withdraw(ctx, placeholder, f"replaced: {why}", noted=True):
        return ctx.back_off(placeholder.owner.key)
    owner = placeholder.owner
    workload = f"{owner.kind} {owner.namespace}/{owner.name}"
    logger.bind(workload=workload).info("job {} is replaced: {}", placeholder.job_id, why)
    return AT_ONCE


def _bound_after_all(ctx: SchedulerContext, placeholder: Placeholder) -> bool:
    """A binding whose answer was lost, or of which no watch has told: the job of such a pod must not go."""
    owner = placeholder.owner
    if owner.kind == kinds.PODS.kind:
        now = ctx.cluster.get(kinds.PODS, owner.namespace, owner.name)
        return now is not None and now.uid == owner.uid and now.bound
    return any(not pod.terminal for pod in bound_by(ctx, placeholder))


def bound_by(ctx: SchedulerContext, placeholder: Placeholder) -> Sequence[Pod]:
    """The pods that this job gave nodes to, as the API server has them now, whatever the watch has told.

    When one of them cannot be read, it is unknown which one: then nothing is known.
    """
    scope = Scope(namespace=placeholder.owner.namespace, labels=f"{names.LABEL_JOB_ID}={placeholder.job_id}")
    listed = ctx.cluster.list(kinds.PODS, scope)
    if listed.unreadable:
        raise errors.Unreadable(f"a pod of job {placeholder.job_id} in namespace {scope.namespace} cannot be read")
    return [pod for pod in listed.items if pod.bound]


def withdraw(ctx: SchedulerContext, placeholder: Placeholder, why: str, *, noted: bool = False) -> bool:
    """Note why and cancel; True when the job is over for certain.

    With `noted` the note is a condition: a waiting pod whose job was cancelled without one would be taken for a pod
    whose job an administrator cancelled. Where the job names a node that has left Slurm no note can ever be written.
    """
    if ctx.still_ours(placeholder) is None:
        return True
    noting = ctx.slurm.note(placeholder.job_id, records.with_note(placeholder.owner, f"withdrawn: {why}"))
    refused = noting.why if isinstance(noting, Refused) else None
    if refused is Refusal.BUSY or (noted and refused is not Refusal.UNKNOWN_NODE and not _settled(noting)):
        return False
    if isinstance(noting, Unknown) and ctx.still_ours(placeholder) is None:
        # The answer took its time, and the id may be another job's by now.
        return True
    outcome = ctx.cancels.one(placeholder.job_id)
    if not _settled(outcome):
        logger.warning("job {} could not be cancelled yet: {}", placeholder.job_id, outcome)
        return False
    ctx.table.put(records.over(placeholder, why, ctx.clock.now()), tell=False)
    return True


def _settled(outcome: job.Outcome) -> bool:
    if isinstance(outcome, Refused):
        return outcome.why in (Refusal.OVER, Refusal.NO_SUCH_JOB)
    return isinstance(outcome, Done)
