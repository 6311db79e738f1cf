"""From a subject to an explanation.

1 translate   the request as the pods and their owners describe it, or what is wrong with that
2 ask         the hooks, in a pass that cannot end in a submission; without a cluster each one by itself, as far as it
              needs none
3 look        at the placeholder that stands for the pods already
4 write       the JSON that a submission would send
"""

import contextlib
import dataclasses
from collections.abc import Callable, Mapping, Sequence

from slurm_bridge import ports
from slurm_bridge.explain import looking, nodes, slots
from slurm_bridge.explain.looking import Sides
from slurm_bridge.explain.nodes import Reasons
from slurm_bridge.explain.slots import Slot
from slurm_bridge.explain.subjects import Subject
from slurm_bridge.hooks import chain as chains
from slurm_bridge.hooks import sieve
from slurm_bridge.hooks.attempts import PlanState
from slurm_bridge.hooks.base import Mode, Phase
from slurm_bridge.hooks.chain import Chain, Plan, Surroundings
from slurm_bridge.hooks.explain import Line
from slurm_bridge.hooks.session import Stopped
from slurm_bridge.hooks.sieve import Sieved
from slurm_bridge.hooks.snapshot import EMPTY, ClusterSnapshot
from slurm_bridge.model.job import JobRequest, JobView
from slurm_bridge.model.job import Phase as JobPhase
from slurm_bridge.model.verdict import Obstacle, Reject, Wait
from slurm_bridge.model.workload import Workload
from slurm_bridge.scheduler import records
from slurm_bridge.scheduler import wish as wishes
from slurm_bridge.scheduler.ids import IdRange
from slurm_bridge.translate import digest, translator
from slurm_bridge.translate.rules import Rules
from slurm_bridge.translate.shapes import Form
from slurm_bridge.translate.translator import Translated, Value

#: What only Slurm's nodes decide.
UNSETTLED = (
    "how one job holds these pods depends on Slurm's nodes: until then it asks for the most that any of them needs"
)

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
    """`obstacle` None: it would be submitted, as `body`. `jobs` None: nobody has looked.

    `reasons` speak of the nodes for all pods, or for each of `slots` where these differ.
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
    """What came of asking the hooks. `settled`: the form of the request is decided."""

    obstacle: Obstacle | None
    translated: Translated
    lines: tuple[Line, ...]
    slots: tuple[Slot, ...]
    plan: str = ""
    notes: tuple[str, ...] = ()
    reasons: tuple[Reasons, ...] = ()
    settled: bool = True


def explain(subject: Subject, means: Means, sides: Sides | None) -> Explanation:
    """All of it; `sides` None: no server is asked."""
    jobs, notes = _jobs(subject, means, sides), (*subject.notes, *(UNSEEN if sides is None else ()))
    if subject.workload is None:
        return Explanation(subject=subject, notes=notes, obstacle=subject.obstacle, jobs=jobs)
    translated = translator.translate(subject.workload, means.rules)
    if isinstance(translated, Reject):
        return Explanation(subject=subject, notes=notes, obstacle=translated, jobs=jobs)
    asked = _Asked(workload=subject.workload, translated=translated, means=means, jobs=jobs or ())
    heard = _offline(asked) if sides is None else _against(asked, sides)
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
        jobs=jobs,
    )
    if not heard.settled:
        return dataclasses.replace(found, notes=(*found.notes, UNSETTLED))
    written = found.obstacle or _written(asked, heard)
    if isinstance(written, Wait | Reject):
        return dataclasses.replace(found, obstacle=written)
    return dataclasses.replace(found, body=written)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What the hooks are asked about, and with what."""

    workload: Workload
    translated: Translated
    means: Means
    jobs: Sequence[JobView]

    @property
    def wish(self) -> wishes.Wish:
        """As the scheduler has it."""
        intent = digest.intent(self.translated, wishes.retry(self.workload))
        return wishes.Wish(workload=self.workload, translated=self.translated, intent=intent)


def _jobs(subject: Subject, means: Means, sides: Sides | None) -> tuple[JobView, ...] | None:
    if sides is None or not subject.exists:
        return None
    owner = records.owner_of(subject.root, means.rules.cluster_id)
    return tuple(looking.jobs(sides.slurm, subject.members, owner, means.ids))


def _offline(asked: _Asked) -> _Heard:
    """Each hook by itself: one that cannot answer without a cluster is left out, and named."""
    ask, lines, notes = chains.asked(asked.workload, asked.translated), list[Line](), list[str]()
    stop: Obstacle | None = None
    means = asked.means
    for hook in means.chain.hooks:
        with Chain((hook,), means.around).session(EMPTY, now=means.clock.wall(), mode=Mode.SIMULATED) as session:
            try:
                session.pass_gate(Phase.ADMIT, ask)
                ask = session.express(ask)
            except Stopped as stopped:
                if not hook.needs or stopped.obstacle.reason != "HookFailed":
                    stop = stopped.obstacle
                else:
                    notes.append(f"hook {hook.name} cannot answer without the cluster: it was not asked")
        lines += session.lines
        if stop is not None:
            break
    translated = dataclasses.replace(asked.translated, request=ask.request, values=ask.values)
    return _Heard(
        obstacle=stop,
        translated=translated,
        lines=tuple(lines),
        slots=slots.of(translated.shapes),
        notes=tuple(notes),
        settled=asked.workload.gang is None,
    )


def _against(asked: _Asked, sides: Sides) -> _Heard:
    """The whole chain at the cluster as it is, as the daemon would run it now."""
    chain, workload = asked.means.chain, asked.workload
    chain.see(looking.views(sides.cluster, chain.needs))
    seen, now = looking.snapshot(sides), asked.means.clock.wall()
    planned = chain.plan(workload, asked.translated, seen, now=now, previous=_running(asked.jobs))
    lines, reasons = _listen(asked, seen)
    if not isinstance(planned, Plan):
        slots_ = _slots(asked.translated, seen, reasons)
        return _Heard(
            obstacle=planned,
            translated=asked.translated,
            lines=lines,
            slots=slots_,
            reasons=reasons,
            settled=asked.workload.gang is None,
        )
    settled = dataclasses.replace(
        asked.translated,
        request=planned.request,
        values=planned.values,
        shapes=planned.shapes or asked.translated.shapes,
        form=planned.form,
        told=planned.told,
    )
    inside = tuple(nodes.within(one, seen, planned.request) for one in reasons)
    return _Heard(
        obstacle=_parked(asked.wish) or chain.commit(workload, planned, seen),
        translated=settled,
        lines=planned.lines,
        slots=_slots(settled, seen, inside),
        plan=planned.state.text,
        reasons=inside,
    )


def _slots(translated: Translated, seen: ClusterSnapshot, reasons: Sequence[Reasons]) -> tuple[Slot, ...]:
    """Where hooks were not asked for each shape, all of them have the same nodes; none where nobody got that far."""
    found = slots.of(translated.shapes)
    eligible = [one.eligible for one in reasons]
    if len(eligible) != len(found):
        eligible = [eligible[0] if eligible else frozenset[str]()] * len(found)
    return slots.fitted(found, seen, eligible, alone=translated.one_per_node)


def _running(jobs: Sequence[JobView]) -> PlanState | None:
    """The attempt at nodes that the placeholder stands for, as its owner record says."""
    alive = _alive(jobs)
    return PlanState.of_running(alive.owner.plan) if alive is not None and alive.owner is not None else None


def _alive(jobs: Sequence[JobView] | None) -> JobView | None:
    return next((view for view in reversed(jobs or ()) if view.state.phase is not JobPhase.ENDED), None)


def _listen(asked: _Asked, seen: ClusterSnapshot) -> tuple[tuple[Line, ...], tuple[Reasons, ...]]:
    """What hooks say up to the nodes, also where that is the end of it."""
    ask, found = chains.asked(asked.workload, asked.translated), tuple[Sieved, ...]()
    session = asked.means.chain.session(seen, now=asked.means.clock.wall(), mode=Mode.SIMULATED)
    # Where it stops, the plan has stopped at the same obstacle, and says so.
    with session, contextlib.suppress(Stopped):
        session.pass_gate(Phase.ADMIT, ask)
        session.pass_gate(Phase.CAPACITY, ask)
        found = sieve.sift(session, ask, {})
    reasons = (nodes.reasons(seen.names, one.nodes, one.denied, one.members) for one in found)
    return tuple(session.lines), tuple(reasons)


def _parked(wish: wishes.Wish) -> Wait | None:
    """Somebody cancelled just this request, and nobody has changed it since."""
    return Wait(reason="Parked", message=wishes.why_parked(wish)) if wishes.parked(wish) else None


def _written(asked: _Asked, heard: _Heard) -> Mapping[str, object] | Reject:
    """The submission, with the owner record and the id that the scheduler would give it."""
    wish, means, request = asked.wish, asked.means, heard.translated.request
    mark = f"{wish.intent}:{digest.digest(request)}"
    owner = records.for_attempt(
        request.owner, _attempt(asked.jobs), request=mark, plan=heard.plan, members=wishes.members(wish)
    )
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
    return last.owner.attempt + (1 if _alive(jobs) is None else 0)
