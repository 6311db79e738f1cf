"""Carries a plan out, one step after the other. Ended after any call, it goes on where a new plan finds it.

Each step looks again at what it changes: a job has to be as the plan saw it, and patches carry the resource version.
The rest of a group is left out after a step that was not done.
"""

from collections.abc import Callable

import msgspec

from slurm_bridge import errors, ports
from slurm_bridge.model import kinds
from slurm_bridge.model.job import Done, JobView, Outcome, Phase, Refusal, Refused
from slurm_bridge.model.meta import Manifest
from slurm_bridge.runtime import hands
from slurm_bridge.takeover import steps
from slurm_bridge.takeover.servers import JobRecords
from slurm_bridge.takeover.steps import (
    HOLDING,
    AdoptJob,
    CancelJob,
    ChangeNode,
    ChangePod,
    HandoverPlan,
    HandoverStep,
    LeftAlone,
    ReturnJob,
)

#: There is nothing left to cancel.
_OVER = (Refusal.OVER, Refusal.NO_SUCH_JOB)


class Execution:
    """Does the steps of a plan, and tells of each that is done."""

    def __init__(
        self,
        cluster: ports.Cluster,
        slurm: JobRecords,
        told: Callable[[HandoverStep], None],
        each: hands.Each = hands.in_turn,
    ) -> None:
        self._cluster, self._slurm, self._told, self._each = cluster, slurm, told, each

    def run(self, plan: HandoverPlan) -> tuple[LeftAlone, ...]:
        """What could not be done. Errors that are about a server and not about one object end the run."""
        failed = self._each(self._group, plan.groups)
        return tuple(one for one in failed if one is not None)

    def _group(self, group: tuple[HandoverStep, ...]) -> LeftAlone | None:
        for step in group:
            try:
                problem = self._do(step)
            except errors.NotFound:
                # A pod or node that is gone needs nothing any more.
                continue
            except errors.Disagreement as changed:
                problem = f"it has changed meanwhile: {changed}"
            except errors.Unreadable as odd:
                problem = str(odd)
            if problem:
                return LeftAlone(subject=steps.subject(step), reason=problem)
            self._told(step)
        return None

    def _do(self, step: HandoverStep) -> str:
        """Why it was not done, "" when it was."""
        if isinstance(step, ChangePod):
            self._cluster.patch(kinds.PODS, step.pod, _pod_patch(step))
            return ""
        if isinstance(step, ChangeNode):
            self._cluster.patch(kinds.NODES, step.node, _node_patch(step))
            return ""
        now = self._slurm.job(step.job.job_id)
        if isinstance(step, CancelJob):
            return self._cancel(step, now)
        if now is None or now.admin_comment != step.job.admin_comment or now.state.phase not in HOLDING:
            return "the job has changed meanwhile"
        if isinstance(step, AdoptJob):
            return _words(self._slurm.note(step.job.job_id, step.owner))
        assert isinstance(step, ReturnJob)
        return _words(self._slurm.inscribe(step.job.job_id, step.text))

    def _cancel(self, step: CancelJob, now: JobView | None) -> str:
        if now is None or now.state.phase is Phase.ENDED:
            return ""
        if now.admin_comment != step.job.admin_comment:
            return "the job has changed meanwhile"
        for pod in step.pods:
            found = self._cluster.get(kinds.PODS, *pod.key)
            if found is not None and found.bound and not found.terminal:
                return f"pod {'/'.join(pod.key)} has a node now"
        if step.owner is not None and now.owner != step.owner:
            problem = _words(self._slurm.note(now.job_id, step.owner))
            if problem:
                return problem
        outcome = self._slurm.cancel(now.job_id)
        return "" if isinstance(outcome, Refused) and outcome.why in _OVER else _words(outcome)


def _words(outcome: Outcome) -> str:
    if isinstance(outcome, Done):
        return ""
    if isinstance(outcome, Refused):
        return f"Slurm refuses: {outcome.message}"
    return f"Slurm did not answer ({outcome.message}): run the command again"


def _pod_patch(step: ChangePod) -> Manifest:
    meta: Manifest = {"resourceVersion": step.pod.metadata.resource_version}
    changes = {"labels": step.labels, "annotations": step.annotations}
    meta |= {field: dict(values) for field, values in changes.items() if values}
    if step.finalizers is not None:
        meta["finalizers"] = list(step.finalizers)
    return {"metadata": meta}


def _node_patch(step: ChangeNode) -> Manifest:
    return {
        "metadata": {"resourceVersion": step.node.metadata.resource_version},
        "spec": {"taints": msgspec.to_builtins(step.taints)},
    }
