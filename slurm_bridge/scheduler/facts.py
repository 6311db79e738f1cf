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
from slurm_bridge.scheduler import decide, records, relevant, timers
from slurm_bridge.scheduler import wish as wishes
from slurm_bridge.scheduler.decide import Facts, Job, Members, Pods, Stray, View
from slurm_bridge.scheduler.effects import bind, job_users
from slurm_bridge.scheduler.members import ENDED, PLACED, Crew, Standing, job_id_of
from slurm_bridge.scheduler.state import Wish
from slurm_bridge.scheduler.tools import Tools
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
    crew: Crew | None
    placeholders: tuple[Placeholder, ...]
    placeholder: Placeholder | None
    named: frozenset[JobId]
    surplus: tuple[Placeholder, ...]
    turn: bool
    gathered: Workload | Obstacle | None = None
    wish: Wish | None = None
    obstacle: Obstacle | None = None

    @property
    def pods(self) -> Crew:
        """The pods; only where there are some."""
        assert self.crew is not None
        return self.crew

    @property
    def job(self) -> Placeholder:
        """The placeholder; only where there is one."""
        assert self.placeholder is not None
        return self.placeholder

    @property
    def wanted(self) -> Wish:
        """What the members ask for; only where that could be read."""
        assert self.wish is not None
        return self.wish


def subject(ctx: Tools, key: WorkloadKey, *, turn: bool) -> Subject:
    """The workload of this key, as it is known now."""
    crew, placeholders = ctx.census.crew(key), ctx.table.of(key)
    placeholder, named = relevant.relevant(crew, placeholders)
    return Subject(
        key=key,
        crew=crew,
        placeholders=placeholders,
        placeholder=placeholder,
        named=named,
        surplus=table.surplus(placeholders, placeholder, named),
        turn=turn,
    )


def glance(ctx: Tools, subject: Subject) -> Facts:
    """What pods, jobs and timers tell."""
    pods, crew = decide.pods_of(subject.crew), subject.crew
    if ctx.unanswered(subject.key):
        return Facts(pods=pods, job=decide.job_of(subject.placeholder), unanswered=True)
    if crew is None or pods is Pods.OVER:
        return _of_ended(ctx, subject, pods)
    if pods is not Pods.WAITING and subject.placeholder is None:
        subject.placeholder = _robbed(ctx, crew)
    known = subject.placeholder
    facts = Facts(
        pods=pods,
        job=decide.job_of(known),
        surplus=bool(subject.surplus),
        watch_left=_watch_left(ctx, crew),
        turn=subject.turn,
        bound=crew.count(Standing.BOUND) > 0,
        wanting=crew.count(Standing.WANTING) > 0,
        torn=known is not None and known.torn,
        left_behind=pods is Pods.JOINING and relevant.left_behind(crew, known, subject.placeholders),
        outlived=pods is Pods.WAITING and known is not None and _outlived(ctx, crew, known),
    )
    match decide.view(facts):
        case View.PLACED if known is not None:
            return _of_placed(ctx, facts, crew, known)
        case View.JOINING if known is not None:
            return _of_joining(ctx, facts, crew, known)
        case View.WAITING:
            return _of_waiting(ctx, facts, crew, known)
    return facts


def _watch_left(ctx: Tools, crew: Crew) -> float | None:
    """Seconds to wait until the watch reports the bindings that were made; None when it has reported them all."""
    state = ctx.states.get(crew.root.key)
    if state is None or not state.sent:
        return None
    now, still = ctx.clock.now(), {pod.uid for pod in crew.pods(Standing.WANTING)}
    waits = any(since + bind.ECHO > now for uid, since in list(state.sent.items()) if uid in still)
    return bind.LOOK_AGAIN if waits else None


def _can_be_restored(ctx: Tools, known: Placeholder) -> bool:
    """Slurm has forgotten the job, and gives it the same id again."""
    return known.lost and known.certainty is Certainty.GONE and ctx.limits.ids is not None


def _robbed(ctx: Tools, crew: Crew) -> Placeholder | None:
    """The job of these pods, where its id is another job's now."""
    state = ctx.states.get(crew.root.key)
    found = state.robbed if state is not None else None
    return found if found is not None and found.job_id in crew.named else None


def _of_ended(ctx: Tools, subject: Subject, pods: Pods) -> Facts:
    known, stray = subject.placeholder, Stray.NO
    if subject.crew is None and known is not None and known.owner.kind not in kind_table.NAMES:
        stray = Stray.CHECK if known.owner.kind == CHECK else Stray.OTHER
    root = ctx.census.root_of(known.owner.uid) if known is not None else None
    return Facts(
        pods=pods,
        job=decide.job_of(known),
        surplus=bool(subject.surplus),
        stray=stray,
        check_left=known.since + CHECK_SECONDS - ctx.clock.now() if known is not None else 0.0,
        half_alive=any(one.torn and one.certainty is Certainty.SEEN for one in subject.placeholders),
        elsewhere=root not in (None, subject.key),
    )


def _outlived(ctx: Tools, crew: Crew, known: Placeholder) -> bool:
    return relevant.outlived(crew, known) and not _undone(ctx, crew, known)


def _undone(ctx: Tools, crew: Crew, known: Placeholder) -> bool:
    """The pods that were bound by this job were ended, because the others could not be bound."""
    return ctx.states.of(crew.root.key).leadership.undone == known.job_id


def _of_placed(ctx: Tools, facts: Facts, crew: Crew, known: Placeholder) -> Facts:
    if facts.job is Job.GONE:
        return msgspec.structs.replace(facts, restorable=facts.bound and _can_be_restored(ctx, known))
    if facts.job in (Job.NONE, Job.MAYBE, Job.ENDED, Job.PENDING) or not facts.bound:
        return facts
    shrunk = bool(relevant.shrunk(crew, known))
    if shrunk or facts.wanting:
        return msgspec.structs.replace(facts, shrunk=shrunk)
    state = ctx.states.of(crew.root.key)
    untold = crew.root.kind in kind_table.ANNOUNCED and not state.announced
    return msgspec.structs.replace(facts, lost=_lost(crew, known), unannounced=untold)


def _of_joining(ctx: Tools, facts: Facts, crew: Crew, known: Placeholder) -> Facts:
    leadership, tools = ctx.states.of(crew.root.key).leadership, ctx
    return msgspec.structs.replace(
        facts,
        shrunk=bool(relevant.shrunk(crew, known)),
        start_left=timers.start_left(leadership, crew, known, tools.clock.now(), tools.limits),
    )


def _of_waiting(ctx: Tools, facts: Facts, crew: Crew, known: Placeholder | None) -> Facts:
    if known is not None and (known.started or known.torn):
        return facts
    leadership, tools = ctx.states.of(crew.root.key).leadership, ctx
    left = timers.settling_left(leadership, crew, tools.clock.now(), tools.limits)
    return msgspec.structs.replace(facts, settle_left=left) if left is not None else facts


def of_members(ctx: Tools, facts: Facts, subject: Subject) -> Facts:
    """The same facts, and what the members that were gathered tell."""
    gathered, where = subject.gathered, decide.view(facts)
    if where is View.PLACED and facts.job is not Job.GONE:
        gang = gathered.gang if isinstance(gathered, Workload) else None
        return msgspec.structs.replace(facts, restarts=gang is not None and gang.member_lost is MemberLost.RESTART)
    read = wishes.read(gathered, ctx) if isinstance(gathered, Workload) else gathered
    if isinstance(read, Wish):
        subject.wish = read
    else:
        subject.obstacle = read
    if where is View.PLACED:
        return msgspec.structs.replace(facts, restorable=subject.wish is not None)
    if where is View.JOINING:
        return _members_joining(ctx, facts, subject)
    return _members_waiting(ctx, facts, subject)


def _members_joining(ctx: Tools, facts: Facts, subject: Subject) -> Facts:
    crew, known, wish = subject.pods, subject.job, subject.wish
    if wish is not None:
        subject.obstacle = ctx.config.chain.unhonoured(wish.translated)
    if wish is None or subject.obstacle is not None:
        return msgspec.structs.replace(facts, members=_members(subject))
    gang, lost = wish.workload.gang, _lost(crew, known)
    policy = gang.member_lost if gang is not None else None
    # A start goes on although other members have come meanwhile.
    begun = facts.start_left is not None and (policy is MemberLost.KEEP or not lost)
    return msgspec.structs.replace(
        facts,
        members=Members.COMPLETE,
        policy=policy,
        lost=lost,
        anew=_anew(ctx, wish.workload, crew, known),
        on_job=crew.on(known.job_id) > 0,
        same_request=known.owner.request.startswith(f"{wish.intent}:"),
        starting=gang is not None and (begun or records.stands_for(known.owner, _all_of(crew, known))),
    )


def _members_waiting(ctx: Tools, facts: Facts, subject: Subject) -> Facts:
    crew, known, wish, tools = subject.pods, subject.placeholder, subject.wish, ctx
    is_whole = isinstance(subject.gathered, Workload)
    never_started = is_whole and known is not None and known.job_id not in crew.served
    if wish is None or (facts.torn and not never_started):
        leadership = tools.states.of(crew.root.key).leadership
        obstacle = subject.obstacle
        return msgspec.structs.replace(
            facts,
            members=_members(subject),
            obstacle=obstacle.message if obstacle is not None else "",
            retry_left=obstacle.retry_after if isinstance(obstacle, Wait) else None,
            never_started=never_started,
            incomplete_left=timers.incomplete_left(leadership, tools.clock.now(), tools.limits),
        )
    facts = msgspec.structs.replace(facts, members=Members.COMPLETE, never_started=never_started)
    return _of_wish(ctx, facts, subject, wish)


def is_cancelled(ctx: Tools, subject: Subject, some: Workload | Obstacle | None) -> bool:
    """An administrator has cancelled the job while members are missing, as `some` of the members show."""
    known, wish = subject.job, wishes.read(some, ctx) if isinstance(some, Workload) else None
    if not isinstance(wish, Wish) or wishes.answered(wish, known) or not relevant.is_unexplained(wish, known):
        return False
    subject.wish = wish
    return True


def _of_wish(ctx: Tools, facts: Facts, subject: Subject, wish: Wish) -> Facts:
    workload, known = wish.workload, subject.placeholder
    parked = wishes.parked(wish)
    if workload.suspended or parked:
        unspread = not workload.suspended and bool(wishes.without(wish, wishes.note_of(wish)))
        return msgspec.structs.replace(facts, suspended=workload.suspended, parked=parked, unspread=unspread)
    if known is not None and facts.job in decide.ALIVE:
        return _of_living(ctx, facts, subject, wish, known)
    explained = known is not None and not facts.torn
    if known is not None and explained and facts.job in (Job.ENDED, Job.GONE):
        explained = wishes.answered(wish, known) or not relevant.is_unexplained(wish, known)
    return msgspec.structs.replace(facts, explained=explained, held=_held(ctx, workload), noted=wishes.noted(wish))


def _of_living(ctx: Tools, facts: Facts, subject: Subject, wish: Wish, known: Placeholder) -> Facts:
    improper = job_users.improper(known)
    may_be_cancelled = not improper and facts.job in decide.CANCELLABLE
    taken_back = _taken_back(ctx, wish, known) if may_be_cancelled else ""
    if facts.job is Job.MAYBE and not taken_back:
        return msgspec.structs.replace(facts, held=_held(ctx, wish.workload), noted=wishes.noted(wish))
    return msgspec.structs.replace(
        facts,
        improper_user=improper,
        taken_back=taken_back,
        anew=facts.job is Job.RUNNING and _anew(ctx, wish.workload, subject.pods, known),
    )


def _taken_back(ctx: Tools, wish: Wish, known: Placeholder) -> str:
    """Why the job has to be cancelled for other workloads, "" where it may stay."""
    chain, root = ctx.config.chain, wish.workload.root
    lacking = chain.unhonoured(wish.translated)
    if lacking is not None:
        return lacking.message
    if ctx.states.of(root.key).returned == known.job_id and known.phase is Phase.PENDING:
        return f"namespace {root.namespace} has more than its share of the window, and others wait"
    recall = chain.evicts.recalled(root.key) if chain.evicts is not None else None
    return f"{MADE_ROOM} {recall.cause}" if recall is not None else ""


def _anew(ctx: Tools, workload: Workload, crew: Crew, known: Placeholder) -> bool:
    """The job runs and had pods, all of them have gone, and those without nodes are to start as a new group."""
    gang = workload.gang
    if gang is None or known.job_id not in crew.served or crew.on(known.job_id):
        return False
    if gang.member_lost is MemberLost.KEEP:
        return _undone(ctx, crew, known)
    return not records.stands_for(known.owner, workload.pods)


def _held(ctx: Tools, workload: Workload) -> str:
    """Why the controller of these pods gets no other job for them, "" where it does."""
    makers = [workload.root.object_key] + ([workload.controller.key] if workload.controller else [])
    return next((why for key in makers if (why := ctx.held.get(key)) is not None), "")


def may_be_cancelled(subject: Subject) -> bool:
    """Members are missing and the job has ended: why it ended counts all the same."""
    obstacle, known = subject.obstacle, subject.placeholder
    missing = isinstance(obstacle, Wait) and obstacle.reason == INCOMPLETE and subject.pods.root.kind != kinds.PODS.kind
    return missing and known is not None and not known.alive


def to_gather(facts: Facts) -> tuple[Standing, ...]:
    """The pods whose workload has to be gathered before the decision; none where the facts suffice."""
    if facts.unanswered or facts.pods is Pods.OVER or facts.surplus or facts.watch_left is not None:
        return ()
    match decide.view(facts):
        case View.WAITING:
            return (Standing.WANTING,) if facts.settle_left is None else ()
        case View.JOINING:
            overdue = facts.start_left is not None and facts.start_left <= 0
            return () if facts.shrunk or overdue else (Standing.WANTING, *PLACED)
    return (Standing.BOUND,) if facts.restorable or facts.lost or facts.unannounced else ()


def _members(subject: Subject) -> Members:
    """What keeps the members from a job, in one word."""
    obstacle, crew = subject.obstacle, subject.pods
    if obstacle is None:
        return Members.COMPLETE
    if isinstance(obstacle, Reject):
        return Members.REJECTED
    if crew.root.kind == kinds.PODS.kind:
        return Members.BLOCKED
    return Members.UNREADABLE if obstacle.reason == UNREADABLE else Members.MISSING


def _lost(crew: Crew, known: Placeholder) -> bool:
    """A member that ran by this job has failed or was deleted; one that the watch never reported is not missed."""
    if known.job_id in crew.lost:
        return True
    return any(job_id_of(pod) == known.job_id for pod in crew.pods(Standing.LEAVING, Standing.OVER))


def _all_of(crew: Crew, known: Placeholder) -> list[Pod]:
    """The members without nodes, and those that were bound by this job, the ended ones included."""
    bound = [pod for pod in crew.pods(*PLACED, *ENDED) if job_id_of(pod) == known.job_id]
    return [*crew.pods(Standing.WANTING), *bound]
