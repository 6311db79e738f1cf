"""From a subject to an explanation.

1 translate   the request as the pods and their owners describe it, or what is wrong with that
2 ask         the hooks, in a pass that cannot end in a submission; without a cluster each one by itself, as far as it
              needs none
3 look        at the placeholder that stands for the pods already
4 write       the JSON that a submission would send
"""

import dataclasses
from collections.abc import Mapping, Sequence

from slurm_bridge.explain import asking, hearing, keeping, looking, preemption, trying
from slurm_bridge.explain.asking import Asked, Means
from slurm_bridge.explain.hearing import Heard
from slurm_bridge.explain.keeping import Others
from slurm_bridge.explain.looking import Sides
from slurm_bridge.explain.nodes import Reasons
from slurm_bridge.explain.preemption import Claim, PreemptionView
from slurm_bridge.explain.slots import Slot
from slurm_bridge.explain.subjects import Subject
from slurm_bridge.explain.trying import Try
from slurm_bridge.hooks.base import Matrix
from slurm_bridge.hooks.explain import UNSCHEDULABLE, Line
from slurm_bridge.model.job import JobView, Phase
from slurm_bridge.model.verdict import Obstacle, Reject, Wait
from slurm_bridge.scheduler import records
from slurm_bridge.scheduler import wish as wishes
from slurm_bridge.translate import digest, translator
from slurm_bridge.translate.shapes import Form
from slurm_bridge.translate.translator import Value

#: What only Slurm's nodes decide.
UNSETTLED = (
    "how one job holds these pods depends on Slurm's nodes: until then it asks for the most that any of them needs"
)

#: What nobody has looked at without a cluster.
UNSEEN = (
    "offline: nodes, Slurm's partitions and limits, and what Slurm has already were not looked at",
    "against a cluster, the time limit of the partition and excluded nodes may be added to the request",
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """`obstacle` None: it would be submitted, as `body`. `jobs` None: nobody has looked.

    `reasons` speak of the nodes for all pods, or for each of `slots` where these differ. `tries` are
    the nodes that Slurm would be offered one after the other, empty where all are offered at once.
    """

    subject: Subject
    notes: tuple[str, ...]
    obstacle: Obstacle | None
    values: tuple[Value, ...] = ()
    hints: Mapping[str, str] = dataclasses.field(default_factory=dict)
    lines: tuple[Line, ...] = ()
    reasons: tuple[Reasons, ...] = ()
    slots: tuple[Slot, ...] = ()
    form: Form | None = None
    told: str = ""
    matrices: Mapping[str, Matrix] = dataclasses.field(default_factory=dict)
    tries: tuple[Try, ...] = ()
    preemption: PreemptionView | None = None
    body: Mapping[str, object] | None = None
    jobs: tuple[JobView, ...] | None = None

    @property
    def held_by(self) -> tuple[str, ...]:
        """The hooks whose answers its user waits for; none where it is no hook."""
        return hearing.holders(self.lines, self.obstacle) if self.obstacle is not None else ()

    @property
    def placeholder(self) -> JobView | None:
        """The job that stands for the pod now."""
        return asking.alive(self.jobs)

    @property
    def status(self) -> int:
        """For scripts: 0 submitted, 3 waits, 4 refused."""
        if self.obstacle is None:
            return 0
        return WAITS if isinstance(self.obstacle, Wait) else REFUSED


WAITS, REFUSED = 3, 4


def explain(subject: Subject, means: Means, sides: Sides | None, others: Others = keeping.ALONE) -> Explanation:
    """All of it; `sides` None: no server is asked. `others` says which workloads there are beside it."""
    jobs, notes = _jobs(subject, means, sides), (*subject.notes, *(UNSEEN if sides is None else ()))
    if subject.workload is None:
        return Explanation(subject=subject, notes=notes, obstacle=subject.obstacle, jobs=jobs)
    translated = translator.translate(subject.workload, means.rules)
    if isinstance(translated, Reject):
        return Explanation(subject=subject, notes=notes, obstacle=translated, jobs=jobs)
    asked = Asked(workload=subject.workload, translated=translated, means=means, jobs=jobs or ())
    heard = hearing.offline(asked) if sides is None else hearing.against(asked, sides, others)
    found = Explanation(
        subject=subject,
        notes=(*notes, *heard.notes),
        obstacle=subject.obstacle or heard.obstacle,
        values=heard.translated.values,
        hints=heard.translated.hints,
        lines=heard.lines,
        reasons=heard.reasons,
        slots=heard.slots,
        form=heard.translated.form if heard.settled else None,
        told=heard.translated.told,
        matrices=heard.plan.matrices if heard.plan is not None else {},
        tries=trying.tries(heard.plan) if heard.plan is not None else (),
        preemption=_preemption(asked, sides, heard, subject, others.claim),
        jobs=jobs,
    )
    if not heard.settled:
        return dataclasses.replace(found, notes=(*found.notes, UNSETTLED))
    written = found.obstacle or _written(asked, heard)
    if isinstance(written, Wait | Reject):
        return dataclasses.replace(found, obstacle=written)
    return dataclasses.replace(found, body=written)


def _jobs(subject: Subject, means: Means, sides: Sides | None) -> tuple[JobView, ...] | None:
    if sides is None or not subject.exists:
        return None
    owner = records.owner_of(subject.root, means.rules.cluster_id)
    return tuple(looking.jobs(sides.slurm, subject.members, owner, means.ids))


def _preemption(
    asked: Asked, sides: Sides | None, heard: Heard, subject: Subject, claim: Claim
) -> PreemptionView | None:
    """Of a workload that exists, and waits for nodes: in Slurm, or because hooks leave it none."""
    placed = asking.alive(asked.jobs)
    held = heard.obstacle is not None and heard.obstacle.reason == UNSCHEDULABLE
    waits = held if placed is None else placed.state.phase is Phase.PENDING
    if sides is None or heard.scene is None or not subject.exists or not waits:
        return None
    return preemption.look(asked, sides, heard.scene, subject.members, claim)


def _written(asked: Asked, heard: Heard) -> Mapping[str, object] | Reject:
    """The submission, with the owner record and the id that the scheduler would give it."""
    wish, means, request = asked.wish, asked.means, heard.translated.request
    mark = wishes.mark(wish, heard.plan) if heard.plan else f"{wish.intent}:{digest.digest(request)}"
    plan = heard.plan.state.text if heard.plan else ""
    attempt, members = _attempt(asked.jobs), wishes.members(wish)
    owner = records.for_attempt(request.owner, attempt, request=mark, plan=plan, members=members)
    job_id = means.ids.choose(owner) if means.ids is not None else None
    try:
        return means.write(dataclasses.replace(request, owner=owner, job_id=job_id))
    except ValueError as mistake:
        return Reject(reason="InvalidRequest", message=str(mistake))


def _attempt(jobs: Sequence[JobView]) -> int:
    """The one that lives, or the one after the last."""
    last = jobs[-1] if jobs else None
    if last is None or last.owner is None:
        return 0
    return last.owner.attempt + (1 if asking.alive(jobs) is None else 0)
