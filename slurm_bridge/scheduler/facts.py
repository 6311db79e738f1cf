"""The facts about one workload: read from its pods, its jobs, its timers and its request, for `decide`.

Reading changes nothing. What is costly is read only for the view that needs it.
"""

import dataclasses

import msgspec

from slurm_bridge.mirror import table
from slurm_bridge.model import kinds
from slurm_bridge.model.job import Phase
from slurm_bridge.model.names import JobId, WorkloadKey
from slurm_bridge.model.placeholder import Certainty, Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Obstacle, Reject, Wait
from slurm_bridge.model.workload import MemberLost, Workload
from slurm_bridge.scheduler import current_job, decide, desired_job, records, timers
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.decide import DecisionTable, Facts, MembersFact, PlaceholderFact, Pods, Stray
from slurm_bridge.scheduler.effects import bind, job_users
from slurm_bridge.scheduler.state import DesiredJob
from slurm_bridge.scheduler.workload_pods import ENDED, PLACED, PodState, WorkloadPods, job_id_of
from slurm_bridge.workloads import kind_table
from slurm_bridge.workloads.gangs import INCOMPLETE

#: A job that stands for a check of the installation and not for pods.
CHECK = "Check"
#: Seconds after which the job of a check counts as left behind by a check that was interrupted.
CHECK_SECONDS = 60.0
#: The reason of the obstacle of a workload whose owner cannot be read.
UNREADABLE = "OwnerUnreadable"
#: Why a pending job is cancelled for a workload that an eviction makes room for.
MADE_ROOM = "its queue makes room for"


@dataclasses.dataclass(slots=True, kw_only=True)
class Subject:
    """A workload while it is looked at: its pods and jobs, and, once they are gathered, its members and its request.

    `named` are the jobs that its pods name; `turn` says that it may submit now.
    """

    key: WorkloadKey
    workload_pods: WorkloadPods | None
    placeholders: tuple[Placeholder, ...]
    placeholder: Placeholder | None
    named: frozenset[JobId]
    surplus: tuple[Placeholder, ...]
    turn: bool
    gathered: Workload | Obstacle | None = None
    desired: DesiredJob | None = None
    obstacle: Obstacle | None = None

    @property
    def pods(self) -> WorkloadPods:
        """The pods; only where there are some."""
        assert self.workload_pods is not None
        return self.workload_pods

    @property
    def job(self) -> Placeholder:
        """The placeholder; only where there is one."""
        assert self.placeholder is not None
        return self.placeholder

    @property
    def wanted(self) -> DesiredJob:
        """What the members ask for; only where that could be read."""
        assert self.desired is not None
        return self.desired


def subject(ctx: SchedulerContext, key: WorkloadKey, *, turn: bool) -> Subject:
    """The workload of this key, as it is known now."""
    workload_pods, placeholders = ctx.pod_index.workload(key), ctx.table.of(key)
    placeholder, named = current_job.relevant(workload_pods, placeholders)
    return Subject(
        key=key,
        workload_pods=workload_pods,
        placeholders=placeholders,
        placeholder=placeholder,
        named=named,
        surplus=table.surplus(placeholders, placeholder, named),
        turn=turn,
    )


def glance(ctx: SchedulerContext, subject: Subject) -> Facts:
    """What pods, jobs and timers tell."""
    pods, workload_pods = decide.pods_of(subject.workload_pods), subject.workload_pods
    if ctx.unanswered(subject.key):
        return Facts(pods=pods, job=decide.job_of(subject.placeholder), unanswered=True)
    if workload_pods is None or pods is Pods.OVER:
        return _of_ended(ctx, subject, pods)
    if pods is not Pods.WAITING and subject.placeholder is None:
        subject.placeholder = _robbed(ctx, workload_pods)
    known = subject.placeholder
    facts = Facts(
        pods=pods,
        job=decide.job_of(known),
        surplus=bool(subject.surplus),
        watch_left=_watch_left(ctx, workload_pods),
        turn=subject.turn,
        bound=workload_pods.count(PodState.BOUND) > 0,
        wanting=workload_pods.count(PodState.WANTING) > 0,
        torn=known is not None and known.torn,
        left_behind=pods is Pods.JOINING and current_job.left_behind(workload_pods, known, subject.placeholders),
        outlived=pods is Pods.WAITING and known is not None and _outlived(ctx, workload_pods, known),
    )
    match decide.view(facts):
        case DecisionTable.PLACED if known is not None:
            return _of_placed(ctx, facts, workload_pods, known)
        case DecisionTable.JOINING if known is not None:
            return _of_joining(ctx, facts, workload_pods, known)
        case DecisionTable.WAITING:
            return _of_waiting(ctx, facts, workload_pods, known)
    return facts


def _watch_left(ctx: SchedulerContext, workload_pods: WorkloadPods) -> float | None:
    """Seconds to wait until the watch reports the bindings that were made; None when it has reported them all."""
    state = ctx.states.get(workload_pods.root.key)
    if state is None or not state.sent:
        return None
    now, still = ctx.clock.now(), {pod.uid for pod in workload_pods.pods(PodState.WANTING)}
    waits = any(since + bind.ECHO > now for uid, since in list(state.sent.items()) if uid in still)
    return bind.LOOK_AGAIN if waits else None


def _can_be_restored(ctx: SchedulerContext, known: Placeholder) -> bool:
    """Slurm has forgotten the job, and gives it the same id again."""
    return known.lost and known.certainty is Certainty.GONE and ctx.limits.ids is not None


def _robbed(ctx: SchedulerContext, workload_pods: WorkloadPods) -> Placeholder | None:
    """The job of these pods, where its id is another job's now."""
    state = ctx.states.get(workload_pods.root.key)
    found = state.robbed if state is not None else None
    return found if found is not None and found.job_id in workload_pods.named else None


def _of_ended(ctx: SchedulerContext, subject: Subject, pods: Pods) -> Facts:
    known, stray = subject.placeholder, Stray.NO
    if subject.workload_pods is None and known is not None and known.owner.kind not in kind_table.NAMES:
        stray = Stray.CHECK if known.owner.kind == CHECK else Stray.OTHER
    root = ctx.pod_index.root_of(known.owner.uid) if known is not None else None
    return Facts(
        pods=pods,
        job=decide.job_of(known),
        surplus=bool(subject.surplus),
        stray=stray,
        check_left=known.since + CHECK_SECONDS - ctx.clock.now() if known is not None else 0.0,
        half_alive=any(one.torn and one.certainty is Certainty.SEEN for one in subject.placeholders),
        elsewhere=root not in (None, subject.key),
    )


def _outlived(ctx: SchedulerContext, workload_pods: WorkloadPods, known: Placeholder) -> bool:
    return current_job.outlived(workload_pods, known) and not _undone(ctx, workload_pods, known)


def _undone(ctx: SchedulerContext, workload_pods: WorkloadPods, known: Placeholder) -> bool:
    """The pods that were bound by this job were ended, because the others could not be bound."""
    return ctx.states.of(workload_pods.root.key).leadership.undone == known.job_id


def _of_placed(ctx: SchedulerContext, facts: Facts, workload_pods: WorkloadPods, known: Placeholder) -> Facts:
    if facts.job is PlaceholderFact.GONE:
        return msgspec.structs.replace(facts, restorable=facts.bound and _can_be_restored(ctx, known))
    if (
        facts.job in (PlaceholderFact.NONE, PlaceholderFact.MAYBE, PlaceholderFact.ENDED, PlaceholderFact.PENDING)
        or not facts.bound
    ):
        return facts
    shrunk = bool(current_job.shrunk(workload_pods, known))
    if shrunk or facts.wanting:
        return msgspec.structs.replace(facts, shrunk=shrunk)
    state = ctx.states.of(workload_pods.root.key)
    untold = workload_pods.root.kind in kind_table.ANNOUNCED and not state.announced
    return msgspec.structs.replace(facts, lost=_lost(workload_pods, known), unannounced=untold)


def _of_joining(ctx: SchedulerContext, facts: Facts, workload_pods: WorkloadPods, known: Placeholder) -> Facts:
    leadership = ctx.states.of(workload_pods.root.key).leadership
    return msgspec.structs.replace(
        facts,
        shrunk=bool(current_job.shrunk(workload_pods, known)),
        start_left=timers.start_left(leadership, workload_pods, known, ctx.clock.now(), ctx.limits),
    )


def _of_waiting(ctx: SchedulerContext, facts: Facts, workload_pods: WorkloadPods, known: Placeholder | None) -> Facts:
    if known is not None and (known.started or known.torn):
        return facts
    leadership = ctx.states.of(workload_pods.root.key).leadership
    left = timers.settling_left(leadership, workload_pods, ctx.clock.now(), ctx.limits)
    return msgspec.structs.replace(facts, settle_left=left) if left is not None else facts


def of_members(ctx: SchedulerContext, facts: Facts, subject: Subject) -> Facts:
    """The same facts, and what the members that were gathered tell."""
    gathered, where = subject.gathered, decide.view(facts)
    if where is DecisionTable.PLACED and facts.job is not PlaceholderFact.GONE:
        gang = gathered.gang if isinstance(gathered, Workload) else None
        return msgspec.structs.replace(facts, restarts=gang is not None and gang.member_lost is MemberLost.RESTART)
    read = desired_job.read(gathered, ctx) if isinstance(gathered, Workload) else gathered
    if isinstance(read, DesiredJob):
        subject.desired = read
    else:
        subject.obstacle = read
    if where is DecisionTable.PLACED:
        return msgspec.structs.replace(facts, restorable=subject.desired is not None)
    if where is DecisionTable.JOINING:
        return _members_joining(ctx, facts, subject)
    return _members_waiting(ctx, facts, subject)


def _members_joining(ctx: SchedulerContext, facts: Facts, subject: Subject) -> Facts:
    workload_pods, known, desired = subject.pods, subject.job, subject.desired
    if desired is not None:
        subject.obstacle = ctx.config.chain.unhonoured(desired.translated)
    if desired is None or subject.obstacle is not None:
        return msgspec.structs.replace(facts, members=_members(subject))
    gang, lost = desired.workload.gang, _lost(workload_pods, known)
    policy = gang.member_lost if gang is not None else None
    # A start goes on although other members have come meanwhile.
    begun = facts.start_left is not None and (policy is MemberLost.KEEP or not lost)
    return msgspec.structs.replace(
        facts,
        members=MembersFact.COMPLETE,
        policy=policy,
        lost=lost,
        anew=_anew(ctx, desired.workload, workload_pods, known),
        on_job=workload_pods.on(known.job_id) > 0,
        same_request=known.owner.request.startswith(f"{desired.intent}:"),
        starting=gang is not None and (begun or records.stands_for(known.owner, _all_of(workload_pods, known))),
    )


def _members_waiting(ctx: SchedulerContext, facts: Facts, subject: Subject) -> Facts:
    workload_pods, known, desired = subject.pods, subject.placeholder, subject.desired
    is_whole = isinstance(subject.gathered, Workload)
    never_started = is_whole and known is not None and known.job_id not in workload_pods.served
    if desired is None or (facts.torn and not never_started):
        leadership = ctx.states.of(workload_pods.root.key).leadership
        obstacle = subject.obstacle
        return msgspec.structs.replace(
            facts,
            members=_members(subject),
            obstacle=obstacle.message if obstacle is not None else "",
            retry_left=obstacle.retry_after if isinstance(obstacle, Wait) else None,
            never_started=never_started,
            incomplete_left=timers.incomplete_left(leadership, ctx.clock.now(), ctx.limits),
        )
    facts = msgspec.structs.replace(facts, members=MembersFact.COMPLETE, never_started=never_started)
    return _of_wish(ctx, facts, subject, desired)


def is_cancelled(ctx: SchedulerContext, subject: Subject, some: Workload | Obstacle | None) -> bool:
    """An administrator has cancelled the job while members are missing, as `some` of the members show."""
    known, desired = subject.job, desired_job.read(some, ctx) if isinstance(some, Workload) else None
    if (
        not isinstance(desired, DesiredJob)
        or desired_job.answered(desired, known)
        or not current_job.is_unexplained(desired, known)
    ):
        return False
    subject.desired = desired
    return True


def _of_wish(ctx: SchedulerContext, facts: Facts, subject: Subject, desired: DesiredJob) -> Facts:
    workload, known = desired.workload, subject.placeholder
    parked = desired_job.parked(desired)
    if workload.suspended or parked:
        unspread = not workload.suspended and bool(desired_job.without(desired, desired_job.note_of(desired)))
        return msgspec.structs.replace(facts, suspended=workload.suspended, parked=parked, unspread=unspread)
    if known is not None and facts.job in decide.ALIVE:
        return _of_living(ctx, facts, subject, desired, known)
    explained = known is not None and not facts.torn
    if known is not None and explained and facts.job in (PlaceholderFact.ENDED, PlaceholderFact.GONE):
        explained = desired_job.answered(desired, known) or not current_job.is_unexplained(desired, known)
    return msgspec.structs.replace(
        facts, explained=explained, held=_held(ctx, workload), noted=desired_job.noted(desired)
    )


def _of_living(ctx: SchedulerContext, facts: Facts, subject: Subject, desired: DesiredJob, known: Placeholder) -> Facts:
    improper = job_users.improper(known)
    may_be_cancelled = not improper and facts.job in decide.CANCELLABLE
    taken_back = _taken_back(ctx, desired, known) if may_be_cancelled else ""
    if facts.job is PlaceholderFact.MAYBE and not taken_back:
        return msgspec.structs.replace(facts, held=_held(ctx, desired.workload), noted=desired_job.noted(desired))
    return msgspec.structs.replace(
        facts,
        improper_user=improper,
        taken_back=taken_back,
        anew=facts.job is PlaceholderFact.RUNNING and _anew(ctx, desired.workload, subject.pods, known),
    )


def _taken_back(ctx: SchedulerContext, desired: DesiredJob, known: Placeholder) -> str:
    """Why the job has to be cancelled for other workloads, "" where it may stay."""
    chain, root = ctx.config.chain, desired.workload.root
    lacking = chain.unhonoured(desired.translated)
    if lacking is not None:
        return lacking.message
    if ctx.states.of(root.key).returned == known.job_id and known.phase is Phase.PENDING:
        return f"namespace {root.namespace} has more than its share of the window, and others wait"
    recall = chain.evicts.recalled(root.key) if chain.evicts is not None else None
    return f"{MADE_ROOM} {recall.cause}" if recall is not None else ""


def _anew(ctx: SchedulerContext, workload: Workload, workload_pods: WorkloadPods, known: Placeholder) -> bool:
    """The job runs and had pods, all of them have gone, and those without nodes are to start as a new group."""
    gang = workload.gang
    if gang is None or known.job_id not in workload_pods.served or workload_pods.on(known.job_id):
        return False
    if gang.member_lost is MemberLost.KEEP:
        return _undone(ctx, workload_pods, known)
    return not records.stands_for(known.owner, workload.pods)


def _held(ctx: SchedulerContext, workload: Workload) -> str:
    """Why the controller of these pods gets no other job for them, "" where it does."""
    makers = [workload.root.object_key] + ([workload.controller.key] if workload.controller else [])
    return next((why for key in makers if (why := ctx.held.get(key)) is not None), "")


def may_be_cancelled(subject: Subject) -> bool:
    """Members are missing and the job has ended: why it ended counts all the same."""
    obstacle, known = subject.obstacle, subject.placeholder
    missing = isinstance(obstacle, Wait) and obstacle.reason == INCOMPLETE and subject.pods.root.kind != kinds.PODS.kind
    return missing and known is not None and not known.alive


def to_gather(facts: Facts) -> tuple[PodState, ...]:
    """The pods whose workload has to be gathered before the decision; none where the facts suffice."""
    if facts.unanswered or facts.pods is Pods.OVER or facts.surplus or facts.watch_left is not None:
        return ()
    match decide.view(facts):
        case DecisionTable.WAITING:
            return (PodState.WANTING,) if facts.settle_left is None else ()
        case DecisionTable.JOINING:
            overdue = facts.start_left is not None and facts.start_left <= 0
            return () if facts.shrunk or overdue else (PodState.WANTING, *PLACED)
    return (PodState.BOUND,) if facts.restorable or facts.lost or facts.unannounced else ()


def _members(subject: Subject) -> MembersFact:
    """What keeps the members from a job, in one word."""
    obstacle, workload_pods = subject.obstacle, subject.pods
    if obstacle is None:
        return MembersFact.COMPLETE
    if isinstance(obstacle, Reject):
        return MembersFact.REJECTED
    if workload_pods.root.kind == kinds.PODS.kind:
        return MembersFact.BLOCKED
    return MembersFact.UNREADABLE if obstacle.reason == UNREADABLE else MembersFact.MISSING


def _lost(workload_pods: WorkloadPods, known: Placeholder) -> bool:
    """A member that ran by this job has failed or was deleted; one that the watch never reported is not missed."""
    if workload_pods.of_job(known.job_id).lost:
        return True
    return any(job_id_of(pod) == known.job_id for pod in workload_pods.pods(PodState.LEAVING, PodState.OVER))


def _all_of(workload_pods: WorkloadPods, known: Placeholder) -> list[Pod]:
    """The members without nodes, and those that were bound by this job, the ended ones included."""
    bound = [pod for pod in workload_pods.pods(*PLACED, *ENDED) if job_id_of(pod) == known.job_id]
    return [*workload_pods.pods(PodState.WANTING), *bound]
