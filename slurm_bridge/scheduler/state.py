"""What the scheduler knows of each workload beside its pods and its placeholders: one record, in one dictionary.

A record has parts, and a part says what ends it. A restart loses all of them: what has to outlive the process is
written on the pods or in the job.
"""

import dataclasses
import enum
import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator

from slurm_bridge.cluster.snapshot import NodeFacts
from slurm_bridge.hooks.attempts import PlanState
from slurm_bridge.model.names import JobId, WorkloadKey
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.model.verdict import Reject
from slurm_bridge.model.workload import Workload
from slurm_bridge.scheduler.eviction.cases import EvictionState, NodeHold
from slurm_bridge.scheduler.reservations.cases import ReservationState
from slurm_bridge.translate.rules import Rules
from slurm_bridge.translate.translator import Translated


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DesiredJob:
    """`intent` is a digest of what the user asked for: the same whatever nodes there are."""

    workload: Workload
    translated: Translated
    intent: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Untranslatable:
    """Remembered like a wish: the same objects are refused again at no cost."""

    workload: Workload
    why: Reject


@dataclasses.dataclass(frozen=True, slots=True)
class RefusedRequest:
    """What Slurm, or a rule, refused, and until when just the same is not asked again."""

    what: str
    until: float


@dataclasses.dataclass(frozen=True, slots=True)
class ToldReason:
    """The reason that its pods show; `parked`: nothing but a change by a user or an administrator helps."""

    reason: str
    parked: bool = False


@dataclasses.dataclass(slots=True)
class Search:
    """For the job of a submit that was not answered and has no id of ours."""

    not_before: float
    scans: int = 0


@dataclasses.dataclass(slots=True)
class Scans:
    """The last scan of all jobs for submits that were not answered; one at a time."""

    lock: threading.Lock = dataclasses.field(default_factory=threading.Lock)
    last: float = float("-inf")


@dataclasses.dataclass(slots=True, kw_only=True)
class Leadership:
    """What was measured and decided in one leadership; the next one begins anew."""

    #: The job whose nodes are kept until other pods have left them, claims are bound, or hooks agree; and since when
    #: for each of these: a reason of the bridge, or "" for all reasons of hooks.
    occupied: tuple[JobId, dict[str, float]] | None = None
    #: Since when members are missing although there is a job.
    incomplete_since: float | None = None
    #: Since when members have come one after the other.
    settling_since: float | None = None
    #: The job whose pods are bound one after the other, and since when.
    starting: tuple[JobId, float] | None = None
    #: The job whose pods were taken back: no pod is bound by it any more.
    undone: JobId | None = None
    #: What the owner record is to say of nodes that are kept for the workload.
    reserved: str = ""


@dataclasses.dataclass(slots=True, kw_only=True)
class CurrentState:
    """What a look reads and leaves for the next one; a new one begins after `drop`.

    Written while the workload is looked at, by one thread at a time; its watch writes `sent` and `starting`, too.
    """

    #: The workload is being looked at, or its action is under way.
    in_flight: bool = False

    #: Why its pods wait, as they were told last; None once they have nodes.
    told: ToldReason | None = None
    #: As translated last, and by which rules.
    desired: DesiredJob | Untranslatable | None = None
    rules: Rules | None = None
    #: At which attempt of its plan it is, where that is not what the record of its job says.
    plan: PlanState | None = None
    #: The request that Slurm refused, the intent whose user was refused, and the change of a pending job likewise.
    declined: RefusedRequest | None = None
    user_refused: RefusedRequest | None = None
    update_refused: str = ""
    #: Slurm may have a job that no table knows.
    search: Search | None = None
    #: The job that its namespace gives back to those below their share of the window.
    returned: JobId | None = None
    #: Pods that were bound when, and of which no watch has told yet.
    sent: dict[str, float] = dataclasses.field(default_factory=dict)
    #: Pods that count on their nodes since they were placed, and whose binding has not been tried since.
    claimed: dict[str, None] = dataclasses.field(default_factory=dict)
    #: Its object was told that enough of its pods have nodes.
    announced: bool = False
    #: Since when each of its pods has been leaving; how many there were at the last look, and when the next is due.
    leaving: dict[str, float] = dataclasses.field(default_factory=dict)
    leaving_looked: tuple[int, float] | None = None
    #: The job of its bound pods, where the id is another job's now: the table has one entry for an id.
    robbed: Placeholder | None = None
    #: Its job was forgotten by Slurm, was submitted again, and may not hold its nodes yet: its number among those.
    regaining: int | None = None
    leadership: Leadership = dataclasses.field(default_factory=Leadership)


class Place(enum.Enum):
    """Where a workload is in the queue: in one place at a time."""

    NONE = "on its way to another place"
    URGENT = "it is looked at before others"
    WANTING = "it lines up to be submitted"
    FLYING = "it is being looked at"
    WAITING = "until it is woken, or until a time"


@dataclasses.dataclass(slots=True)
class QueueEntry:
    """A workload in the queue. Its number is new in each place, and never used again."""

    key: WorkloadKey
    namespace: str
    place: Place = Place.NONE
    number: int = -1
    #: It was woken while it was being looked at.
    again: bool = False
    #: When it waits no longer.
    until: float | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Bad:
    """One experience with a node. `holds` says of the node as it is now whether the reason is still to be seen.

    It has been made so many `times` in a row.
    """

    why: str
    until: float
    holds: Callable[[NodeFacts | None], bool]
    times: int = 1


@dataclasses.dataclass(slots=True, kw_only=True)
class AvoidedNodes:
    """What went wrong on which nodes. Part `number` of its roll, like the next two."""

    number: int
    nodes: dict[str, Bad] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(slots=True, kw_only=True)
class Stumbles:
    """How often something went wrong since the last success."""

    number: int
    count: int = 0


@dataclasses.dataclass(slots=True, kw_only=True)
class Held:
    """Why the pods of this object do not get another job by themselves."""

    number: int
    why: str


@dataclasses.dataclass(slots=True, kw_only=True)
class WorkloadState:
    """All that is known of one workload, in parts; a record without parts is removed.

    A part is put in and taken out under the lock of the store. What is in it is written by its owner alone.
    """

    #: Of a workload that is looked at; it ends with `drop`.
    current: CurrentState | None = None
    #: Until the queue is told to forget it.
    queued: QueueEntry | None = None
    #: Why it lines up, as its pods were told.
    notice: str | None = None
    #: Bad experiences of it, or of the controller of workloads: the latest ones of a bounded number of records.
    avoided: AvoidedNodes | None = None
    stumbles: Stumbles | None = None
    #: As long as the object is there; likewise bounded.
    held: Held | None = None
    #: Nodes that others keep away from for its sake: until the part of the scheduler that holds them ends that.
    holds: tuple[NodeHold, ...] = ()
    #: Holds for others leave it no node: until the next one ends.
    crowded_out: bool = False
    #: Pods leave for it, or it leaves itself: until it is over, and nothing is under way.
    eviction: EvictionState | None = None
    #: Nodes are kept for it: until nothing is left to know of that, or the leadership ends.
    reservation: ReservationState | None = None

    @property
    def empty(self) -> bool:
        """It has no part."""
        return (
            self.queued is None
            and self.current is None
            and self.notice is None
            and self.avoided is None
            and self.stumbles is None
            and self.held is None
            and not self.holds
            and not self.crowded_out
            and self.eviction is None
            and self.reservation is None
        )


class Roll:
    """Which records have a certain part, the latest last: an order, and no second place for what is known of them.

    Each part has its number in the roll. Used under the lock of the store.
    """

    def __init__(self) -> None:
        self._keys: OrderedDict[int, WorkloadKey] = OrderedDict()
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[WorkloadKey]:
        """As it is now."""
        return iter(tuple(self._keys.values()))

    def enter(self, key: WorkloadKey, before: int | None = None) -> int:
        """The number of this record, now at the end; `before`: the one that it had."""
        if before is not None:
            del self._keys[before]
        number = next(self._numbers)
        self._keys[number] = key
        return number

    def leave(self, number: int) -> None:
        """The record has no such part any more."""
        del self._keys[number]

    def beyond(self, most: int) -> Iterator[WorkloadKey]:
        """Take off the first ones until no more than `most` are left."""
        while len(self._keys) > most:
            yield self._keys.popitem(last=False)[1]


class WorkloadStore:
    """The records by workload; any thread. Ask for a record each time: it may have been dropped meanwhile."""

    def __init__(self) -> None:
        #: Of the parts; the queue waits on it, too. What is known of a workload is found without it.
        self.lock = threading.RLock()
        self._states: dict[WorkloadKey, WorkloadState] = {}
        #: The whole record of a workload, None where nothing is known of it. A method would take twice as long.
        self.find: Callable[[WorkloadKey], WorkloadState | None] = self._states.get
        self._regaining = Roll()

    def __len__(self) -> int:
        return len(self._states)

    def open(self, key: WorkloadKey) -> WorkloadState:
        """The whole record, for a new part; under the lock, until the part is there."""
        found = self._states.get(key)
        if found is None:
            found = self._states[key] = WorkloadState()
        return found

    def close(self, key: WorkloadKey) -> None:
        """A part was taken out, under the lock: the record goes with the last one."""
        if self._states[key].empty:
            del self._states[key]

    def get(self, key: WorkloadKey) -> CurrentState | None:
        """What a look has left, None where there was none."""
        state = self._states.get(key)
        return state.current if state is not None else None

    def of(self, key: WorkloadKey) -> CurrentState:
        """What a look has left, to write in."""
        state = self._states.get(key)
        current = state.current if state is not None else None
        if current is not None:
            return current
        with self.lock:
            state = self.open(key)
            if state.current is None:
                state.current = CurrentState()
            return state.current

    def desired(self, key: WorkloadKey) -> DesiredJob | None:
        """What this workload wanted when it was translated last."""
        current = self.get(key)
        return current.desired if current is not None and isinstance(current.desired, DesiredJob) else None

    def waiting(self) -> tuple[WorkloadKey, ...]:
        """The workloads with pods that wait, as far as they have been translated."""
        states = self.all()
        return tuple(key for key, one in states if (current := one.current) is not None and current.desired is not None)

    def all(self) -> tuple[tuple[WorkloadKey, WorkloadState], ...]:
        """Every record, at one moment."""
        with self.lock:
            return tuple(self._states.items())

    def arrived(self, key: WorkloadKey, pod_uid: str) -> None:
        """The watch has reported the binding of this pod."""
        current = self.get(key)
        if current is not None:
            current.sent.pop(pod_uid, None)

    def begin_look(self, key: WorkloadKey) -> None:
        """The workload is looked at from now on, and its record is written by that look alone."""
        current = self.of(key)
        assert not current.in_flight, f"workload {key} is looked at twice at the same time"
        current.in_flight = True

    def end_look(self, key: WorkloadKey) -> None:
        """The look is over; its record may have been dropped by it."""
        current = self.get(key)
        if current is not None:
            current.in_flight = False

    def settle(self, key: WorkloadKey) -> None:
        """No pod of this workload waits any more: what it wanted is of no use now."""
        current = self.get(key)
        if current is not None:
            current.told = current.desired = current.rules = current.plan = None

    def drop(self, key: WorkloadKey) -> None:
        """The workload is over; parts that have an end of their own stay until then."""
        with self.lock:
            state = self._states.get(key)
            if state is not None and state.current is not None:
                self._stop_regaining(state.current)
                state.current = None
                self.close(key)

    @property
    def regaining(self) -> tuple[WorkloadKey, ...]:
        """Workloads whose job was forgotten by Slurm, was submitted again, and may not hold its nodes yet."""
        if not len(self._regaining):
            return ()
        with self.lock:
            return tuple(self._regaining)

    def begin_regaining(self, key: WorkloadKey) -> None:
        """It is one of those from now on."""
        with self.lock:
            current = self.of(key)
            if current.regaining is None:
                current.regaining = self._regaining.enter(key)

    def end_regaining(self, key: WorkloadKey) -> None:
        """Its job has nodes, or is over."""
        with self.lock:
            current = self.get(key)
            if current is not None:
                self._stop_regaining(current)

    def _stop_regaining(self, current: CurrentState) -> None:
        if current.regaining is not None:
            self._regaining.leave(current.regaining)
            current.regaining = None

    def begin(self) -> None:
        """A leadership begins: how long something lasted in an earlier one is no measure of it now."""
        with self.lock:
            for state in self._states.values():
                if state.current is not None:
                    state.current.leadership = Leadership()
