"""From a subject to an explanation.

1 translate   the request as the pod and its owners describe it, or what is wrong with that
2 ask         the hooks, in a pass that cannot end in a submission; without a cluster each one by itself, as far as it
              needs none
3 look        at the placeholder that stands for the pod already
4 write       the JSON that a submission would send
"""

import contextlib
import dataclasses
from collections.abc import Callable, Mapping, Sequence

from slurm_bridge import ports
from slurm_bridge.explain import looking, nodes
from slurm_bridge.explain.looking import Sides
from slurm_bridge.explain.nodes import Reasons
from slurm_bridge.explain.subjects import Subject
from slurm_bridge.hooks.attempts import PlanState
from slurm_bridge.hooks.base import Ask, Mode, Phase
from slurm_bridge.hooks.chain import Chain, Plan, Surroundings
from slurm_bridge.hooks.explain import Line
from slurm_bridge.hooks.session import Session, Stopped
from slurm_bridge.hooks.snapshot import EMPTY, ClusterSnapshot
from slurm_bridge.model.job import JobRequest, JobView
from slurm_bridge.model.job import Phase as JobPhase
from slurm_bridge.model.verdict import Obstacle, Reject, Wait
from slurm_bridge.scheduler import records
from slurm_bridge.scheduler import wish as wishes
from slurm_bridge.scheduler.ids import IdRange
from slurm_bridge.translate import digest, translator
from slurm_bridge.translate.rules import Rules
from slurm_bridge.translate.translator import Translated, Value

#: The body of a submission; ValueError says what Slurm would silently have cast.
Write = Callable[[JobRequest], Mapping[str, object]]

#: What nobody has looked at without a cluster.
UNSEEN = (
    "offline: nodes, Slurm's partitions and limits, and what Slurm has already were not looked at",
    "against a cluster, the time limit of the partition and excluded nodes may be added to the request",
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What an explanation is made with: the configuration as the daemon uses it."""

    rules: Rules
    chain: Chain
    around: Surroundings
    ids: IdRange | None
    write: Write
    clock: ports.Clock


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """`obstacle` None: it would be submitted, as `body`. `jobs` None: nobody has looked."""

    subject: Subject
    notes: tuple[str, ...]
    obstacle: Obstacle | None
    values: tuple[Value, ...] = ()
    hints: Mapping[str, str] = dataclasses.field(default_factory=dict)
    lines: tuple[Line, ...] = ()
    reasons: Reasons | None = None
    body: Mapping[str, object] | None = None
    jobs: tuple[JobView, ...] | None = None

    @property
    def placeholder(self) -> JobView | None:
        """The job that stands for the pod now."""
        return _alive(self.jobs)

    @property
    def status(self) -> int:
        """For scripts: 0 submitted, 3 waits, 4 refused."""
        if self.obstacle is None:
            return 0
        return WAITS if isinstance(self.obstacle, Wait) else REFUSED


WAITS, REFUSED = 3, 4


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Heard:
    """What came of asking the hooks."""

    obstacle: Obstacle | None
    request: JobRequest
    values: tuple[Value, ...]
    lines: tuple[Line, ...]
    plan: str = ""
    notes: tuple[str, ...] = ()
    reasons: Reasons | None = None


def explain(subject: Subject, means: Means, sides: Sides | None) -> Explanation:
    """All of it; `sides` None: no server is asked."""
    jobs = _jobs(subject, means, sides)
    translated = translator.translate(subject.workload, means.rules)
    if isinstance(translated, Reject):
        return Explanation(subject=subject, notes=_notes(subject, sides), obstacle=translated, jobs=jobs)
    heard = _offline(subject, translated, means) if sides is None else _against(subject, translated, means, sides, jobs)
    written = heard.obstacle or _written(subject, translated, heard, means, jobs)
    return Explanation(
        subject=subject,
        notes=(*_notes(subject, sides), *heard.notes),
        obstacle=written if isinstance(written, Wait | Reject) else None,
        values=heard.values,
        hints=translated.hints,
        lines=heard.lines,
        reasons=heard.reasons,
        body=None if isinstance(written, Wait | Reject) else written,
        jobs=jobs,
    )


def _notes(subject: Subject, sides: Sides | None) -> tuple[str, ...]:
    return (*subject.notes, *(UNSEEN if sides is None else ()))


def _jobs(subject: Subject, means: Means, sides: Sides | None) -> tuple[JobView, ...] | None:
    if sides is None or not subject.exists:
        return None
    owner = records.owner_of(subject.workload.root, means.rules.cluster_id)
    return tuple(looking.jobs(sides.slurm, subject.pod, owner, means.ids))


def _offline(subject: Subject, translated: Translated, means: Means) -> _Heard:
    """Each hook by itself: one that cannot answer without a cluster is left out, and named."""
    ask, lines, notes = _ask(subject, translated), list[Line](), list[str]()
    for hook in means.chain.hooks:
        with Chain((hook,), means.around).session(EMPTY, now=means.clock.wall(), mode=Mode.SIMULATED) as session:
            try:
                session.pass_gate(Phase.ADMIT, ask)
                ask = session.express(ask)
            except Stopped as stopped:
                if not hook.needs or stopped.obstacle.reason != "HookFailed":
                    return _heard(stopped.obstacle, ask, (*lines, *session.lines), notes)
                notes.append(f"hook {hook.name} cannot answer without the cluster: it was not asked")
        lines += session.lines
    return _heard(None, ask, lines, notes)


def _heard(obstacle: Obstacle | None, ask: Ask, lines: Sequence[Line], notes: Sequence[str]) -> _Heard:
    return _Heard(obstacle=obstacle, request=ask.request, values=ask.values, lines=tuple(lines), notes=tuple(notes))


def _ask(subject: Subject, translated: Translated) -> Ask:
    return Ask(workload=subject.workload, request=translated.request, values=translated.values, hints=translated.hints)


def _against(
    subject: Subject, translated: Translated, means: Means, sides: Sides, jobs: Sequence[JobView] | None
) -> _Heard:
    """The whole chain at the cluster as it is, as the daemon would run it now."""
    means.chain.see(looking.views(sides.cluster, means.chain.needs))
    seen, now = looking.snapshot(sides), means.clock.wall()
    planned = means.chain.plan(subject.workload, translated, seen, now=now, previous=_running(jobs))
    lines, reasons = _listen(subject, translated, means, seen)
    if isinstance(planned, Plan):
        parked = _parked(subject, translated)
        return _Heard(
            obstacle=parked or means.chain.commit(subject.workload, planned, seen),
            request=planned.request,
            values=planned.values,
            lines=planned.lines,
            plan=planned.state.text,
            reasons=nodes.within(reasons, seen, planned.request),
        )
    return _Heard(obstacle=planned, request=translated.request, values=translated.values, lines=lines, reasons=reasons)


def _running(jobs: Sequence[JobView] | None) -> PlanState | None:
    """The attempt at nodes that the placeholder stands for, as its owner record says."""
    alive = _alive(jobs)
    return PlanState.parse(alive.owner.plan) if alive is not None and alive.owner is not None else None


def _alive(jobs: Sequence[JobView] | None) -> JobView | None:
    return next((view for view in reversed(jobs or ()) if view.state.phase is not JobPhase.ENDED), None)


def _listen(
    subject: Subject, translated: Translated, means: Means, seen: ClusterSnapshot
) -> tuple[tuple[Line, ...], Reasons]:
    """What hooks say up to the nodes, also where that is the end of it."""
    ask, eligible = _ask(subject, translated), frozenset[str]()
    session = means.chain.session(seen, now=means.clock.wall(), mode=Mode.SIMULATED)
    # Where it stops, the plan has stopped at the same obstacle, and says so.
    with session, contextlib.suppress(Stopped):
        eligible = _sift(session, ask, seen)
    return tuple(session.lines), nodes.reasons(seen.names, eligible, session.denied)


def _sift(session: Session, ask: Ask, seen: ClusterSnapshot) -> frozenset[str]:
    session.pass_gate(Phase.ADMIT, ask)
    session.pass_gate(Phase.CAPACITY, ask)
    return session.filter_nodes(ask, session.sample_nodes(ask, seen.names))


def _parked(subject: Subject, translated: Translated) -> Wait | None:
    """Somebody cancelled just this request, and nobody has changed it since."""
    wish = _wish(subject, translated)
    return Wait(reason="Parked", message=wishes.why_parked(wish)) if wishes.parked(wish) else None


def _wish(subject: Subject, translated: Translated) -> wishes.Wish:
    workload = subject.workload
    intent = digest.intent(translated.request, wishes.retry(workload))
    return wishes.Wish(workload=workload, translated=translated, intent=intent)


def _written(
    subject: Subject, translated: Translated, heard: _Heard, means: Means, jobs: Sequence[JobView] | None
) -> Mapping[str, object] | Reject:
    """The submission, with the owner record and the id that the scheduler would give it."""
    mark = f"{_wish(subject, translated).intent}:{digest.digest(heard.request)}"
    owner = records.for_attempt(heard.request.owner, _attempt(jobs), request=mark, plan=heard.plan)
    job_id = means.ids.choose(owner) if means.ids is not None else None
    try:
        return means.write(dataclasses.replace(heard.request, owner=owner, job_id=job_id))
    except ValueError as mistake:
        return Reject(reason="InvalidRequest", message=str(mistake))


def _attempt(jobs: Sequence[JobView] | None) -> int:
    """The one that lives, or the one after the last."""
    last = jobs[-1] if jobs else None
    if last is None or last.owner is None:
        return 0
    return last.owner.attempt + (1 if _alive(jobs) is None else 0)
