"""From a subject to an explanation.

1 translate   the request that the pods and their owners describe, or what is wrong with it
2 hooks       a pass that cannot end in a submission; offline each hook by itself, as far as it needs no cluster
3 placeholder the job that exists already for the pods
4 write       the JSON of the submission
"""

import dataclasses
from collections.abc import Mapping

from slurm_bridge.explain import attempts, cluster_view, context, parts, pipeline, preemption, usage
from slurm_bridge.explain.attempts import NodeAttempt
from slurm_bridge.explain.cluster_view import Servers
from slurm_bridge.explain.context import ExplainContext, Inquiry
from slurm_bridge.explain.nodes import NodeReasons
from slurm_bridge.explain.pipeline import PipelineResult
from slurm_bridge.explain.preemption import Claim, PreemptionView
from slurm_bridge.explain.slots import Slot
from slurm_bridge.explain.subjects import ExplainSubject
from slurm_bridge.explain.usage import OtherWorkloads
from slurm_bridge.hooks.base import Matrix
from slurm_bridge.hooks.explain import UNSCHEDULABLE, Line
from slurm_bridge.model.job import JobView, Phase
from slurm_bridge.model.verdict import Obstacle, Reject, Wait
from slurm_bridge.scheduler import desired_job, records
from slurm_bridge.translate import digest, translator
from slurm_bridge.translate.shapes import Form
from slurm_bridge.translate.translator import Value

#: Only Slurm's nodes decide this.
UNSETTLED = (
    "how one job holds these pods depends on Slurm's nodes: until then it requests the most that any of them needs"
)

#: What an offline explanation leaves open.
UNSEEN = (
    "offline: nodes, Slurm's partitions and limits, and existing jobs were not read",
    "against a cluster, the time limit of the partition and excluded nodes may be added to the request",
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """`obstacle` None: it would be submitted, as `body`. `jobs` None: Slurm was not asked.

    `reasons` describe the nodes for all pods, or for each of `slots` if these differ. `tries` are the sets of nodes
    that Slurm is offered one after the other; empty if all nodes are offered at once.
    """

    subject: ExplainSubject
    notes: tuple[str, ...]
    obstacle: Obstacle | None
    values: tuple[Value, ...] = ()
    hints: Mapping[str, str] = dataclasses.field(default_factory=dict)
    lines: tuple[Line, ...] = ()
    reasons: tuple[NodeReasons, ...] = ()
    slots: tuple[Slot, ...] = ()
    form: Form | None = None
    told: str = ""
    matrices: Mapping[str, Matrix] = dataclasses.field(default_factory=dict)
    tries: tuple[NodeAttempt, ...] = ()
    preemption: PreemptionView | None = None
    body: Mapping[str, object] | None = None
    jobs: tuple[JobView, ...] | None = None

    @property
    def held_by(self) -> tuple[str, ...]:
        """The hooks that hold the workload; empty if no hook does."""
        return pipeline.holders(self.lines, self.obstacle) if self.obstacle is not None else ()

    @property
    def placeholder(self) -> JobView | None:
        """The job that stands for the pod now."""
        return context.alive(self.jobs)

    @property
    def status(self) -> int:
        """The exit status: 0 submitted, 3 waits, 4 refused."""
        if self.obstacle is None:
            return 0
        return WAITS if isinstance(self.obstacle, Wait) else REFUSED


WAITS, REFUSED = 3, 4


def explain(
    subject: ExplainSubject, means: ExplainContext, servers: Servers | None, others: OtherWorkloads = usage.ALONE
) -> Explanation:
    """Explain a subject. Without `servers` no server is asked. `others` finds the other workloads in the cluster."""
    jobs = _jobs(subject, means, servers)
    notes = (*subject.notes, *_parts(subject, means, servers), *(UNSEEN if servers is None else ()))
    if subject.workload is None:
        return Explanation(subject=subject, notes=notes, obstacle=subject.obstacle, jobs=jobs)
    translated = translator.translate(subject.workload, means.rules)
    if isinstance(translated, Reject):
        return Explanation(subject=subject, notes=notes, obstacle=translated, jobs=jobs)
    inquiry = Inquiry(workload=subject.workload, translated=translated, means=means, jobs=jobs or ())
    result = pipeline.offline(inquiry) if servers is None else pipeline.against(inquiry, servers, others)
    found = Explanation(
        subject=subject,
        notes=(*notes, *result.notes),
        obstacle=subject.obstacle or result.obstacle,
        values=result.translated.values,
        hints=result.translated.hints,
        lines=result.lines,
        reasons=result.reasons,
        slots=result.slots,
        form=result.translated.form if result.settled else None,
        told=result.translated.told,
        matrices=result.plan.matrices if result.plan is not None else {},
        tries=attempts.tries(result.plan) if result.plan is not None else (),
        preemption=_preemption(inquiry, servers, result, subject, others.claim),
        jobs=jobs,
    )
    if not result.settled:
        return dataclasses.replace(found, notes=(*found.notes, UNSETTLED))
    written = found.obstacle or _written(inquiry, result)
    if isinstance(written, Wait | Reject):
        return dataclasses.replace(found, obstacle=written)
    return dataclasses.replace(found, body=written)


def _parts(subject: ExplainSubject, means: ExplainContext, servers: Servers | None) -> tuple[str, ...]:
    if means.parts is None:
        return ()
    return (parts.note(means.parts, subject.root.namespace, servers.cluster if servers is not None else None),)


def _jobs(subject: ExplainSubject, means: ExplainContext, servers: Servers | None) -> tuple[JobView, ...] | None:
    if servers is None or not subject.exists:
        return None
    owner = records.owner_of(subject.root, means.rules.cluster_id)
    return tuple(cluster_view.jobs(servers.slurm, subject.members, owner, means.ids))


def _preemption(
    inquiry: Inquiry, servers: Servers | None, result: PipelineResult, subject: ExplainSubject, claim: Claim
) -> PreemptionView | None:
    """Only for a workload that exists and waits for nodes: in Slurm, or because hooks leave it none."""
    placed = context.alive(inquiry.jobs)
    held = result.obstacle is not None and result.obstacle.reason == UNSCHEDULABLE
    waits = held if placed is None else placed.state.phase is Phase.PENDING
    if servers is None or result.scene is None or not subject.exists or not waits:
        return None
    return preemption.look(inquiry, servers, result.scene, subject.members, claim)


def _written(inquiry: Inquiry, result: PipelineResult) -> Mapping[str, object] | Reject:
    """The submission, with the owner record and the job id that the scheduler would choose."""
    desired, means, request = inquiry.desired, inquiry.means, result.translated.request
    mark = desired_job.mark(desired, result.plan) if result.plan else f"{desired.intent}:{digest.digest(request)}"
    plan = result.plan.state.text if result.plan else ""
    attempt, members = 0, desired_job.members(desired)
    last = inquiry.jobs[-1] if inquiry.jobs else None
    if last is not None and last.owner is not None:
        # The current attempt, or the next one if the last has ended.
        attempt = last.owner.attempt + (1 if context.alive(inquiry.jobs) is None else 0)
    owner = records.for_attempt(request.owner, attempt, request=mark, plan=plan, members=members)
    job_id = means.ids.choose(owner) if means.ids is not None else None
    try:
        return means.write(dataclasses.replace(request, owner=owner, job_id=job_id))
    except ValueError as mistake:
        return Reject(reason="InvalidRequest", message=str(mistake))
