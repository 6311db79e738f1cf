"""What to do next with one workload: a pure function of the facts about its pods, its job and its timers.

The facts choose a view, and each view has its rows: the first row that applies names the action. `ROWS` is the complete
table, and docs/decisions-table.md is generated from it. In short, without the rows for exceptions:

              NONE     MAYBE    PENDING  STARTING RUNNING  STOPPED  ENDED    GONE     UNKNOWN
    WAITING   SUBMIT   SUBMIT   KEEP     WAIT     BIND     WAIT     ASK_WHY  ASK_WHY  WAIT
    JOINING   LOOK_UP  LOOK_UP  REGAIN   REST     JOIN     REST     END      DOUBT    REST
    BOUND     LOOK_UP  LOOK_UP  REGAIN   REST     REST     REST     END      DOUBT    REST
    LEAVING   LOOK_UP  LOOK_UP  LEAVE    LEAVE    LEAVE    LEAVE    LEAVE    LEAVE    LEAVE
    OVER      FORGET   WITHDRAW WITHDRAW WITHDRAW WITHDRAW WITHDRAW FORGET   FORGET   WITHDRAW

Unknown is not gone: no pod ends for a job state that the bridge does not know, and a job that Slurm does not know is
doubted before its pods end.
"""

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from slurm_bridge.model.job import Phase
from slurm_bridge.model.placeholder import Certainty, Placeholder
from slurm_bridge.model.workload import MemberLost
from slurm_bridge.scheduler.workload_pods import PodState, WorkloadPods

#: Why the rest of a heterogeneous job is cancelled.
TORN: Final = "a component of it has ended"
#: Why a job is cancelled whose workload belongs elsewhere, or starts anew.
ELSEWHERE: Final = "its pod waits as part of another workload now"
ANEW: Final = "its pods are gone, and the group starts anew"
OTHER_REQUEST: Final = "the pods that come now ask for something else"


class Pods(enum.Enum):
    """The pods of a workload, in one word."""

    WAITING = "alive, of our scheduler, and without nodes"
    JOINING = "some are on the nodes of the placeholder, others have no node"
    BOUND = "on the nodes of the placeholder"
    LEAVING = "on their nodes, and all of them are being deleted"
    OVER = "finished, deleted, deleted before they had nodes, or bound by another scheduler"


class PlaceholderFact(enum.Enum):
    """The placeholder, in one word."""

    NONE = "there is none"
    MAYBE = "a submit was not answered: there may be one"
    PENDING = "in Slurm's queue"
    STARTING = "Slurm prepares its nodes"
    RUNNING = "it holds its nodes"
    STOPPED = "it holds its nodes, and Slurm has suspended it"
    ENDED = "Slurm says that it has ended"
    GONE = "Slurm does not know it"
    UNKNOWN = "Slurm reports a state that the bridge does not know"


#: A cancel would end something.
CANCELLABLE: Final = frozenset(
    {
        PlaceholderFact.MAYBE,
        PlaceholderFact.PENDING,
        PlaceholderFact.STARTING,
        PlaceholderFact.RUNNING,
        PlaceholderFact.STOPPED,
    }
)
#: It has not ended, as far as the bridge knows.
ALIVE: Final = CANCELLABLE | {PlaceholderFact.UNKNOWN}


class Stray(enum.Enum):
    """A job whose workload has no pods, by what its owner record says that it stands for."""

    NO = "a workload"
    CHECK = "a check of the installation"
    OTHER = "something that a later version of the bridge makes"


class MembersFact(enum.Enum):
    """The workload as gathered from its pods and owners."""

    UNREAD = "not asked for"
    COMPLETE = "all members are there, and their request is translated"
    MISSING = "members are missing"
    UNREADABLE = "an owner cannot be read"
    BLOCKED = "the pod has to wait"
    REJECTED = "the request cannot be met as it is"


class DecisionTable(enum.Enum):
    """The table that a workload is looked up in."""

    OVER = "no pod needs the job any more"
    PLACED = "pods have nodes"
    JOINING = "pods without nodes belong to a job that runs"
    WAITING = "pods wait for nodes"


class Action(enum.Enum):
    """What the scheduler does."""

    SEARCH = "find the job of a submit that was not answered"
    CANCEL_SURPLUS = "cancel all jobs of the workload but one"
    AWAIT_WATCH = "wait until the watch reports the bindings"
    # For pods without nodes.
    SETTLE = "wait for more members"
    TELL = "tell the pods what keeps them from a job, and wait"
    TELL_FOR_A_WHILE = "tell the pods what is wrong with them, and keep their job for a while"
    TELL_AND_REPLACE = "tell the pods what keeps them from their job, and cancel it"
    SPREAD_NOTE = "write the note of the parked pods on those that lack it"
    TELL_PARKED = "tell the pods that they are parked or suspended"
    PARK = "park the pods"
    LINE_UP = "queue for a turn to submit"
    SUBMIT = "plan the request, and submit it"
    KEEP = "plan the request again, and update the pending job where it differs"
    AWAIT_SLURM = "tell the pods the state of the job, and wait"
    ASK_WHY = "find out why the job ended: submit again, or park the pods"
    REFUSE_USER = "cancel the job: its user is a system account"
    REPLACE = "cancel the job; the next one takes its place"
    BIND = "bind the pods to the nodes of the job"
    # For pods that join a job that runs.
    FINISH_START = "bind the rest of the members"
    JOIN = "bind the new members to what the job has left"
    UNDO_START = "end the members that are bound: the others could not be bound in time"
    TELL_MEMBERS = "tell the pods without nodes what keeps them from being bound, and wait"
    AWAIT_GROUP = "tell the pods that they start with the whole group next time"
    # For pods with nodes.
    LOOK_UP = "read the job that the pods name"
    LEAVE = "wait until the pods are deleted"
    REGAIN = "wait until the job gets the nodes of its pods again"
    RESTORE = "submit the job that Slurm has forgotten again"
    DOUBT = "end the pods when it is certain that Slurm does not know their job"
    END = "end the pods: their job has ended"
    END_SHRUNK = "end the pods whose nodes the job no longer holds"
    RESTART = "end all members: one was lost"
    ANNOUNCE = "tell the group's object that enough members are bound"
    REST = "nothing"
    # For pods that are over.
    IGNORE = "leave the job of another version alone"
    WITHDRAW = "cancel the jobs of the workload"
    FORGET = "drop all that is known of the workload"


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """All that a decision depends on. Times are seconds that are left, None where nothing is timed.

    What the workload's view does not need keeps its default, and is not worked out.
    """

    pods: Pods
    job: PlaceholderFact
    # The workload as a whole.
    unanswered: bool = False
    surplus: bool = False
    watch_left: float | None = None
    # Pods that are over.
    stray: Stray = Stray.NO
    check_left: float = 0.0
    torn: bool = False
    half_alive: bool = False
    elsewhere: bool = False
    # Pods with nodes.
    outlived: bool = False
    left_behind: bool = False
    bound: bool = False
    wanting: bool = False
    shrunk: bool = False
    restorable: bool = False
    lost: bool = False
    restarts: bool = False
    unannounced: bool = False
    # Pods that join.
    start_left: float | None = None
    policy: MemberLost | None = None
    starting: bool = False
    on_job: bool = True
    same_request: bool = True
    # Pods without nodes.
    members: MembersFact = MembersFact.UNREAD
    obstacle: str = ""
    retry_left: float | None = None
    never_started: bool = False
    settle_left: float | None = None
    incomplete_left: float = 0.0
    cancelled: bool = False
    suspended: str = ""
    parked: bool = False
    unspread: bool = False
    improper_user: bool = False
    taken_back: str = ""
    anew: bool = False
    held: str = ""
    noted: bool = False
    turn: bool = False
    explained: bool = False


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """The action, why, where the action cancels or parks, and after how many seconds to look again at the latest."""

    action: Action
    why: str = ""
    after: float | None = None


class DecisionRow(NamedTuple):
    """One line of the table: in words, as a condition, and what follows. `why` and `after` are taken from the facts."""

    says: str
    applies: Callable[[Facts], bool]
    action: Action
    why: Callable[[Facts], str] = lambda _: ""
    after: Callable[[Facts], float | None] = lambda _: None


def _sooner(facts: Facts) -> float:
    left = facts.incomplete_left
    return left if facts.retry_left is None else min(left, facts.retry_left)


def _stops(facts: Facts) -> bool:
    return bool(facts.suspended) or facts.parked


def _why_stopped(facts: Facts) -> str:
    return f"{facts.suspended} is suspended" if facts.suspended else "the pods are parked"


def _asks(facts: Facts) -> bool:
    """A job may be submitted: there is none, or it is known why the last one ended."""
    return facts.job in (PlaceholderFact.NONE, PlaceholderFact.MAYBE) or (
        facts.job in (PlaceholderFact.ENDED, PlaceholderFact.GONE) and facts.explained
    )


def _is_cancellable(facts: Facts) -> bool:
    return facts.job in ALIVE or facts.half_alive


def _lacks_members(facts: Facts) -> bool:
    return facts.members in (MembersFact.MISSING, MembersFact.UNREADABLE)


def _is_incomplete(facts: Facts) -> bool:
    """A job is there for members that are missing."""
    return facts.members is MembersFact.MISSING and facts.job in ALIVE


def _is_spoilt(facts: Facts) -> bool:
    """A job holds nodes for pods that cannot be bound as they are."""
    return facts.members is MembersFact.REJECTED and facts.job is PlaceholderFact.RUNNING


A = Action
#: Before any view.
FIRST: Final = (
    DecisionRow("a submit was not answered", lambda f: f.unanswered, A.SEARCH),
    DecisionRow(
        "several jobs live",
        lambda f: f.surplus and f.pods is not Pods.OVER,
        A.CANCEL_SURPLUS,
    ),
    DecisionRow(
        "the watch has not reported a binding",
        lambda f: f.watch_left is not None and f.pods is not Pods.OVER,
        A.AWAIT_WATCH,
        after=lambda f: f.watch_left,
    ),
)
_OVER: Final = (
    DecisionRow("the job stands for something of a later version", lambda f: f.stray is Stray.OTHER, A.IGNORE),
    DecisionRow(
        "a check is under way",
        lambda f: f.stray is Stray.CHECK and f.job in ALIVE and f.check_left > 0,
        A.REST,
        after=lambda f: f.check_left,
    ),
    DecisionRow(
        "a check was interrupted, and its job lives", lambda f: f.stray is Stray.CHECK and f.job in ALIVE, A.WITHDRAW
    ),
    DecisionRow("a check was interrupted", lambda f: f.stray is Stray.CHECK, A.FORGET),
    DecisionRow(
        "the job lives, and its pod belongs to another workload",
        lambda f: _is_cancellable(f) and f.elsewhere,
        A.REPLACE,
        why=lambda _: ELSEWHERE,
    ),
    DecisionRow("the job, or a component of it, lives", _is_cancellable, A.WITHDRAW),
    DecisionRow("otherwise", lambda _: True, A.FORGET),
)
_PLACED: Final = (
    DecisionRow("the job is not known", lambda f: f.job in (PlaceholderFact.NONE, PlaceholderFact.MAYBE), A.LOOK_UP),
    DecisionRow("all pods with nodes are being deleted", lambda f: not f.bound, A.LEAVE),
    DecisionRow("the job has ended", lambda f: f.job is PlaceholderFact.ENDED, A.END),
    DecisionRow(
        "Slurm has forgotten the job, and ids can be chosen",
        lambda f: f.job is PlaceholderFact.GONE and f.restorable,
        A.RESTORE,
    ),
    DecisionRow("Slurm does not know the job", lambda f: f.job is PlaceholderFact.GONE, A.DOUBT),
    DecisionRow("the job pends again", lambda f: f.job is PlaceholderFact.PENDING, A.REGAIN),
    DecisionRow("the job no longer holds all nodes of its pods", lambda f: f.shrunk, A.END_SHRUNK),
    DecisionRow("other members have no node", lambda f: f.wanting, A.REST),
    DecisionRow("a member was lost, and the group restarts", lambda f: f.lost and f.restarts, A.RESTART),
    DecisionRow("the group's object has not been told", lambda f: f.unannounced and not f.lost, A.ANNOUNCE),
    DecisionRow("otherwise", lambda _: True, A.REST),
)
_JOINING: Final = (
    DecisionRow("the job no longer holds all nodes of its pods", lambda f: f.shrunk, A.END_SHRUNK),
    DecisionRow("the start takes too long", lambda f: f.start_left is not None and f.start_left <= 0, A.UNDO_START),
    DecisionRow(
        "something keeps the members from being bound", lambda f: f.members is not MembersFact.COMPLETE, A.TELL_MEMBERS
    ),
    DecisionRow("all members are new, and the group starts anew", lambda f: f.anew, A.REPLACE, why=lambda _: ANEW),
    DecisionRow(
        "no member is on the job, and the members ask for something else",
        lambda f: not f.on_job and not f.same_request,
        A.REPLACE,
        why=lambda _: OTHER_REQUEST,
    ),
    DecisionRow("the workload is a single pod", lambda f: f.policy is None, A.REST),
    DecisionRow("the start is under way", lambda f: f.starting, A.FINISH_START),
    DecisionRow("members may be replaced one by one", lambda f: f.policy is MemberLost.KEEP or not f.lost, A.JOIN),
    DecisionRow("a member was lost, and the group restarts", lambda f: f.policy is MemberLost.RESTART, A.RESTART),
    DecisionRow("otherwise", lambda _: True, A.AWAIT_GROUP),
)
_WAITING: Final = (
    DecisionRow("more members may come", lambda f: f.settle_left is not None, A.SETTLE, after=lambda f: f.settle_left),
    DecisionRow(
        "a component has ended, and pods have run on the job or cannot be gathered",
        lambda f: f.torn and not f.never_started,
        A.REPLACE,
        why=lambda _: TORN,
    ),
    DecisionRow(
        "members are missing, and the job was cancelled",
        lambda f: _lacks_members(f) and f.cancelled,
        A.ASK_WHY,
        after=lambda f: f.retry_left,
    ),
    DecisionRow(
        "members have been missing for too long, and there is a job",
        lambda f: _is_incomplete(f) and f.incomplete_left <= 0,
        A.TELL_AND_REPLACE,
        why=lambda f: f.obstacle,
    ),
    DecisionRow("members are missing, and there is a job", _is_incomplete, A.TELL_FOR_A_WHILE, after=_sooner),
    DecisionRow(
        "the pods have kept the nodes of the job unused for too long",
        lambda f: _is_spoilt(f) and f.incomplete_left <= 0,
        A.TELL_AND_REPLACE,
        why=lambda f: f.obstacle,
    ),
    DecisionRow(
        "the pods cannot use the nodes of the job", _is_spoilt, A.TELL_FOR_A_WHILE, after=lambda f: f.incomplete_left
    ),
    DecisionRow("something keeps the pods from a job", lambda f: f.members is not MembersFact.COMPLETE, A.TELL),
    DecisionRow(
        "the pods may not have a job, and part of it lives",
        lambda f: _stops(f) and f.torn,
        A.REPLACE,
        why=lambda _: TORN,
    ),
    DecisionRow("some pods lack the note", lambda f: f.parked and not f.suspended and f.unspread, A.SPREAD_NOTE),
    DecisionRow(
        "the pods may not have a job", lambda f: _stops(f) and f.job in CANCELLABLE, A.REPLACE, why=_why_stopped
    ),
    DecisionRow("the pods are suspended or parked", _stops, A.TELL_PARKED),
    DecisionRow("the user of the job is a system account", lambda f: f.improper_user and f.job in ALIVE, A.REFUSE_USER),
    DecisionRow(
        "the job has to make way",
        lambda f: bool(f.taken_back) and f.job in CANCELLABLE,
        A.REPLACE,
        why=lambda f: f.taken_back,
    ),
    DecisionRow(
        "the controller is held after a time limit",
        lambda f: _asks(f) and bool(f.held) and not f.noted,
        A.PARK,
        why=lambda f: f.held,
    ),
    DecisionRow("it is not the turn of the workload", lambda f: _asks(f) and not f.turn, A.LINE_UP),
    DecisionRow("it is the turn of the workload", _asks, A.SUBMIT),
    DecisionRow("the job has ended", lambda f: f.job in (PlaceholderFact.ENDED, PlaceholderFact.GONE), A.ASK_WHY),
    DecisionRow(
        "the job runs, and the group starts anew",
        lambda f: f.job is PlaceholderFact.RUNNING and f.anew,
        A.REPLACE,
        why=lambda _: ANEW,
    ),
    DecisionRow("the job runs", lambda f: f.job is PlaceholderFact.RUNNING, A.BIND),
    DecisionRow("the job pends", lambda f: f.job is PlaceholderFact.PENDING, A.KEEP),
    DecisionRow("otherwise", lambda _: True, A.AWAIT_SLURM),
)
ROWS: Final[Mapping[DecisionTable, Sequence[DecisionRow]]] = {
    DecisionTable.OVER: _OVER,
    DecisionTable.PLACED: _PLACED,
    DecisionTable.JOINING: _JOINING,
    DecisionTable.WAITING: _WAITING,
}


def view(facts: Facts) -> DecisionTable:
    """The table in which the facts are looked up."""
    if facts.pods is Pods.OVER:
        return DecisionTable.OVER
    if facts.pods is Pods.WAITING:
        return DecisionTable.JOINING if facts.outlived else DecisionTable.WAITING
    if facts.pods is Pods.JOINING and facts.left_behind:
        return DecisionTable.WAITING
    joining = facts.pods is Pods.JOINING and facts.bound and facts.job is PlaceholderFact.RUNNING
    return DecisionTable.JOINING if joining else DecisionTable.PLACED


def decide(facts: Facts) -> Decision:
    """The action of the first row that applies."""
    row = next(one for one in (*FIRST, *ROWS[view(facts)]) if one.applies(facts))
    return Decision(action=row.action, why=row.why(facts), after=row.after(facts))


_PHASES = {
    Phase.PENDING: PlaceholderFact.PENDING,
    Phase.STARTING: PlaceholderFact.STARTING,
    Phase.RUNNING: PlaceholderFact.RUNNING,
    Phase.STOPPED: PlaceholderFact.STOPPED,
    Phase.ENDED: PlaceholderFact.ENDED,
    Phase.UNKNOWN: PlaceholderFact.UNKNOWN,
}


def pods_of(workload_pods: WorkloadPods | None) -> Pods:
    """The pods of a workload, in one word."""
    if workload_pods is None:
        return Pods.OVER
    if workload_pods.count(PodState.BOUND, PodState.LEAVING):
        if workload_pods.count(PodState.WANTING):
            return Pods.JOINING
        return Pods.BOUND if workload_pods.count(PodState.BOUND) else Pods.LEAVING
    return Pods.WAITING if workload_pods.count(PodState.WANTING) else Pods.OVER


def job_of(placeholder: Placeholder | None) -> PlaceholderFact:
    """A placeholder, in one word."""
    if placeholder is None:
        return PlaceholderFact.NONE
    if placeholder.certainty is Certainty.SEEN:
        return PlaceholderFact.ENDED if placeholder.torn else _PHASES[placeholder.phase]
    return PlaceholderFact.MAYBE if placeholder.certainty is Certainty.MAYBE else PlaceholderFact.GONE
