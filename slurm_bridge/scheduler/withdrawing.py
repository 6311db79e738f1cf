"""Giving a job back: noted first why, so that nobody takes it for an administrator's wish, then cancelled."""

from collections.abc import Sequence

from loguru import logger

from slurm_bridge import errors
from slurm_bridge.model import job, kinds, names
from slurm_bridge.model.job import Done, Phase, Refusal, Refused
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.placeholder import Certainty, Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.ports import Scope
from slurm_bridge.scheduler import records
from slurm_bridge.scheduler.queue import AT_ONCE, Filed
from slurm_bridge.scheduler.tools import Tools


class Replacer:
    """Ends jobs that others are to follow, and lets those wait with whom something went wrong."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def back_off(self, uid: WorkloadKey) -> Filed:
        """Later, and later each time."""
        return Filed(after=self._tools.pause(uid))

    def replace(self, placeholder: Placeholder, why: str) -> Filed:
        """Cancel it, after writing into it that it was us; its end brings the next attempt."""
        if placeholder.certainty is Certainty.MAYBE:
            # An order that is on its way cannot be cancelled; the mirror gives it up in its time.
            found = self._tools.mirror.look(placeholder.job_id, placeholder.owner, tell=False)
            return AT_ONCE if found is not None else self.back_off(placeholder.owner.key)
        if placeholder.phase is not Phase.PENDING and self._bound_after_all(placeholder):
            return Filed(after=self._tools.limits.backoff_first)
        if not withdraw(self._tools, placeholder, f"replaced: {why}", noted=True):
            return self.back_off(placeholder.owner.key)
        owner = placeholder.owner
        workload = f"{owner.kind} {owner.namespace}/{owner.name}"
        logger.bind(workload=workload).info("job {} is replaced: {}", placeholder.job_id, why)
        return AT_ONCE

    def _bound_after_all(self, placeholder: Placeholder) -> bool:
        """A binding whose answer was lost, or of which no watch has told: the job of such a pod must not go."""
        owner = placeholder.owner
        if owner.kind == kinds.PODS.kind:
            now = self._tools.cluster.get(kinds.PODS, owner.namespace, owner.name)
            return now is not None and now.uid == owner.uid and now.bound
        return any(not pod.terminal for pod in bound_by(self._tools, placeholder))


def bound_by(tools: Tools, placeholder: Placeholder) -> Sequence[Pod]:
    """The pods that this job gave nodes to, as the API server has them now, whatever the watch has told.

    One that cannot be read is one of them, and nobody knows which: then nothing is known.
    """
    scope = Scope(namespace=placeholder.owner.namespace, labels=f"{names.LABEL_JOB_ID}={placeholder.job_id}")
    listed = tools.cluster.list(kinds.PODS, scope)
    if listed.unreadable:
        raise errors.Unreadable(f"a pod of job {placeholder.job_id} in namespace {scope.namespace} cannot be read")
    return [pod for pod in listed.items if pod.bound]


def withdraw(tools: Tools, placeholder: Placeholder, why: str, *, noted: bool = False) -> bool:
    """Note why and cancel; True when the job is over for certain.

    With `noted` the note is a condition: a waiting pod whose job was cancelled without one would be taken for a pod
    whose job an administrator cancelled. Where the job names a node that has left Slurm no note can ever be written.
    """
    if tools.still_ours(placeholder) is None:
        return True
    noting = tools.slurm.note(placeholder.job_id, records.with_note(placeholder.owner, f"withdrawn: {why}"))
    if isinstance(noting, Refused) and noting.why is Refusal.BUSY:
        return False
    if noted and not (_settled(noting) or _unwritable(noting)):
        return False
    outcome = tools.slurm.cancel(placeholder.job_id)
    if not _settled(outcome):
        logger.warning("job {} could not be cancelled yet: {}", placeholder.job_id, outcome)
        return False
    tools.table.put(records.over(placeholder, why, tools.clock.now()), tell=False)
    return True


def _unwritable(outcome: job.Outcome) -> bool:
    return isinstance(outcome, Refused) and outcome.why is Refusal.UNKNOWN_NODE


def _settled(outcome: job.Outcome) -> bool:
    if isinstance(outcome, Refused):
        return outcome.why in (Refusal.OVER, Refusal.NO_SUCH_JOB)
    return isinstance(outcome, Done)
