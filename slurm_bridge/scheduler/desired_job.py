"""What a workload wants of Slurm: its request as translated, and, where it is to be sent, as the hooks shaped it."""

import dataclasses
import json
from collections.abc import Iterator, Mapping

import msgspec

from slurm_bridge.hooks import component_shares
from slurm_bridge.hooks.attempts import PlanState
from slurm_bridge.hooks.chain import Plan
from slurm_bridge.model import names
from slurm_bridge.model.job import JobView
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.model.workload import Workload
from slurm_bridge.runtime import written
from slurm_bridge.scheduler import records
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.state import DesiredJob, Untranslatable
from slurm_bridge.translate import digest, translator

#: Windows and looks are not timed more finely than this.
SOON = 0.1
#: A gang that tries the fewest nodes, and at which Slurm has not looked yet, is looked at so often: each time costs as
#: much as it has members, and when Slurm lacks resources for it the mirror tells.
UNSEEN_FEWEST = 60.0
#: A job that waits in Slurm with nodes excluded for what runs there is looked at so often: not with each pod that comes
#: or goes, because every look may be an update.
MOVED = 30.0

#: Why a job waits that Slurm has tried to start.
_LACKING = "Resources"


#: Bytes of the reason in a note: each may take six letters, and the note has to stay readable.
_MOST_WHY = 512


class Parked(msgspec.Struct, frozen=True):
    """The note by which a pod is parked: after which job, why, and what it asked for then."""

    job: int = 0
    why: str = ""
    intent: str = ""


def read(workload: Workload, context: SchedulerContext) -> DesiredJob | Reject:
    """Translate a workload, by the rules of now; the same objects and rules as last time mean the same wish."""
    rules, state = context.config.rules, context.states.of(workload.root.key)
    known = state.desired
    if known is not None and state.rules is rules and _same(known.workload, workload):
        if isinstance(known, Untranslatable):
            return known.why
        # Claims may have appeared since, or been deleted.
        now = translator.devices_of(workload, rules), translator.class_gres_of(workload, rules)
        if now == (known.translated.devices, known.translated.of_classes):
            return known
    translated = context.translations.translate(workload, rules)
    if isinstance(translated, Reject):
        state.desired, state.rules = Untranslatable(workload=workload, why=translated), rules
        return translated
    wanted = DesiredJob(workload=workload, translated=translated, intent=digest.intent(translated, retry(workload)))
    state.desired, state.rules = wanted, rules
    return wanted


def _same(one: Workload, other: Workload) -> bool:
    """Pods are compared by identity: what a watch has not replaced has not changed."""
    pods = zip(one.pods, other.pods, strict=True) if len(one.pods) == len(other.pods) else [(None, other)]
    alike = (one.gang, one.suspended, one.sources) == (other.gang, other.suspended, other.sources)
    alike = alike and one.parts == other.parts
    return alike and one.deadline == other.deadline and all(mine is theirs for mine, theirs in pods)


def retry(workload: Workload) -> str:
    """What users change, on any of the objects, when they want another try although nothing else has changed."""
    speakers = [*(pod.metadata.annotations for pod in workload.pods), *(one.annotations for one in workload.sources)]
    return "\n".join(sorted({said for one in speakers if (said := one.get(names.ANNOTATION_RETRY))}))


def members(wanted: DesiredJob) -> str:
    """What the owner record says about the members; for a single pod its uid is enough."""
    return records.members_of(wanted.workload.pods) if wanted.workload.gang is not None else ""


def plan(wanted: DesiredJob, context: SchedulerContext, placeholder: Placeholder | None) -> Plan | Wait | Reject:
    """Let the hooks, and Slurm's own limits, shape the request."""
    if placeholder is None or not placeholder.alive:
        return _anew(wanted, context, placeholder)
    state = context.states.of(wanted.workload.root.key)
    before = state.plan or PlanState.of_running(placeholder.owner.plan)
    planned = _plan(wanted, context, before)
    if not isinstance(planned, Plan):
        return planned
    moved = _advanced(wanted, planned, context, placeholder)
    if moved is not before:
        state.plan = moved
    if moved.attempt != planned.state.attempt:
        following = _plan(wanted, context, moved)
        if isinstance(following, Plan):
            # The chain may have gone on past an attempt that has no room: the next look begins where this one ends.
            state.plan = following.state
        return following
    return dataclasses.replace(planned, state=moved) if moved is not planned.state else planned


def is_crowded_out(wanted: DesiredJob, context: SchedulerContext, placeholder: Placeholder) -> bool:
    """Whether it would have a plan if nothing were cleared for others."""
    if not context.cleared(wanted.workload):
        return False
    before = context.states.of(wanted.workload.root.key).plan or PlanState.of_running(placeholder.owner.plan)
    return isinstance(_plan(wanted, context, before, avoid=context.shunned(wanted.workload)), Plan)


def due(planned: Plan, context: SchedulerContext) -> float | None:
    """In how many seconds the next attempt may have come, or other nodes be right; None when neither is to come."""
    window, seen = planned.window_seconds, planned.state.seen
    if window is None:
        return MOVED if planned.moving else None
    left = seen + window - context.clock.wall() if seen is not None else 0.0
    if left > 0:
        return max(SOON, min(window, left))
    if seen is not None:
        # Its time is over, and yet it goes on: Slurm has not looked at it since.
        return context.limits.attempt_period
    most = planned.course.attempts[planned.state.attempt].most
    few = most is not None and most < planned.request.tasks
    return UNSEEN_FEWEST if few else context.limits.attempt_period


def _anew(wanted: DesiredJob, context: SchedulerContext, placeholder: Placeholder | None) -> Plan | Wait | Reject:
    """For a new job. What is remembered is of one that is over.

    A job of several components was given back so that the next attempt could follow it, and that is this one.
    """
    state = context.states.of(wanted.workload.root.key)
    before = state.plan
    last = PlanState.of_running(placeholder.owner.plan) if placeholder is not None else None
    if before is not None and last is not None and component_shares.follows(before, last):
        following = dataclasses.replace(before, started=context.clock.wall(), seen=None, read=None)
        planned = _plan(wanted, context, following)
        if isinstance(planned, Plan) and planned.request.components:
            state.plan = planned.state
            return planned
    state.plan = None
    return _plan(wanted, context, None)


def _plan(
    wanted: DesiredJob, context: SchedulerContext, before: PlanState | None, *, avoid: Mapping[str, str] | None = None
) -> Plan | Wait | Reject:
    return context.config.chain.plan(
        wanted.workload,
        wanted.translated,
        context.keeper.snapshot(),
        now=context.clock.wall(),
        previous=before,
        avoid=context.avoid(wanted.workload) if avoid is None else avoid,
    )


def _advanced(wanted: DesiredJob, planned: Plan, context: SchedulerContext, placeholder: Placeholder) -> PlanState:
    """An attempt counts from Slurm's first look at the job after it was written."""
    view = placeholder.view
    if view is None:
        return planned.state
    state = _read_back(wanted, planned, placeholder, view)
    if planned.course.attempts[state.attempt].lacking and view.reason != _LACKING:
        # It waits for its turn, and another job would begin to wait anew.
        return state
    return context.config.chain.advance(
        dataclasses.replace(planned, state=state) if state is not planned.state else planned,
        now=context.clock.wall(),
        last_evaluation=view.last_evaluation,
        updated_at=_written(state, view),
    )


def _read_back(wanted: DesiredJob, planned: Plan, placeholder: Placeholder, view: JobView) -> PlanState:
    """The attempt, with what Slurm's clock said when the job told of it for the first time.

    An attempt at nodes that the job has already is not written: then the job's request tells of it.
    """
    state, owner = planned.state, placeholder.owner
    if state.read is not None or (owner.plan != state.text and owner.request != mark(wanted, planned)):
        return state
    return dataclasses.replace(state, read=view.last_evaluation)


def _written(state: PlanState, view: JobView) -> float:
    """A moment before which Slurm had not looked at this attempt.

    Our clock may be ahead of Slurm's: then every look seems to be an old one, and the job would stay with its few nodes
    for as long as the clocks differ. A look after the one that was known when the attempt was read back is new anyway.
    """
    # Slurm counts in whole seconds, and the second of the submission counts as a look though there was none. A job
    # that was submitted so and lacks resources was looked at.
    if state.attempt == 0 and view.reason == _LACKING and view.submit_time >= int(state.started):
        return view.submit_time - 1
    return state.started if state.read is None else min(state.started, state.read)


def mark(wanted: DesiredJob, planned: Plan) -> str:
    """What the owner record says of the request: enough to see later what has changed."""
    # Scores move with every pod that comes and goes: a tier that was written stays until its turn is over.
    tier = f".{planned.tier}" if planned.tier else ""
    fixed, shape = digest.digest(planned.basis).split(":")
    place = f"+{planned.place}" if planned.place else ""
    return f"{wanted.intent}:{fixed}{place}:{shape}{tier}"


def parked(wanted: DesiredJob) -> bool:
    """A note on a pod says that this very request was cancelled in Slurm, and nothing has changed since."""
    return any(note.intent == wanted.intent for note in _park_notes(wanted))


def noted(wanted: DesiredJob) -> bool:
    """Some pod says that some request of it was parked, be it another one."""
    return any(True for _ in _park_notes(wanted))


def answered(wanted: DesiredJob, placeholder: Placeholder) -> bool:
    """The pod was parked for the end of just this job: what the user has changed since is meant for the next one."""
    return any(note.job == placeholder.job_id for note in _park_notes(wanted))


def why_parked(wanted: DesiredJob) -> str:
    """What the pods say about it."""
    return next((note.why for note in _park_notes(wanted)), "")


def note_of(wanted: DesiredJob) -> str:
    """The note by which the workload is parked, as some pod carries it."""
    texts = (pod.metadata.annotations.get(names.ANNOTATION_PARKED, "") for pod in wanted.workload.pods)
    return next((text for text in texts if (note := _read(text)) and note.intent == wanted.intent), "")


def without(wanted: DesiredJob, note: str) -> tuple[Pod, ...]:
    """The pods that do not carry this note."""
    pods = wanted.workload.pods
    return tuple(pod for pod in pods if note and pod.metadata.annotations.get(names.ANNOTATION_PARKED) != note)


def _park_notes(wanted: DesiredJob) -> Iterator[Parked]:
    """Equal texts are read once: every member of a gang says the same."""
    texts = (pod.metadata.annotations.get(names.ANNOTATION_PARKED) for pod in wanted.workload.pods)
    yield from (note for text in dict.fromkeys(texts) if text and (note := _read(text)) is not None)


def _read(text: str) -> Parked | None:
    """Users can write it: a note that is not readable, or is empty, parks no workload."""
    note = written.read(text, Parked) if text else None
    return note if isinstance(note, Parked) and note != Parked() else None


def park_note(wanted: DesiredJob, placeholder: Placeholder | None, why: str) -> str:
    """What the pod says from then on."""
    job_id = placeholder.job_id if placeholder is not None else 0
    # The request of the job that was ended: pods that have changed since ask for another one.
    asked = placeholder.owner.request.partition(":")[0] if placeholder is not None else ""
    said = why.encode()[:_MOST_WHY].decode(errors="ignore")
    return json.dumps({"job": job_id, "why": said, "intent": asked or wanted.intent}, separators=(",", ":"))
