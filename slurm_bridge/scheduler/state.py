"""What the scheduler knows of each workload beside its pods and its placeholders: one record, dropped as a whole.

A restart loses all of it: what has to outlive the process is written on the pods or in the job.
"""

import dataclasses
import threading
from collections import OrderedDict

from slurm_bridge.hooks.attempts import PlanState
from slurm_bridge.model.names import JobId, WorkloadKey
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.model.verdict import Reject
from slurm_bridge.model.workload import Workload
from slurm_bridge.translate.rules import Rules
from slurm_bridge.translate.translator import Translated

#: How many groups are remembered by their last attempt.
MOST_ATTEMPTS = 10_000


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

    #: Since when the workload waits for other pods to leave its nodes.
    occupied_since: float | None = None
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
class WorkloadState:
    """Written while the workload is looked at, by one thread at a time; its watch writes `sent` and `starting`, too."""

    #: The workload is being looked at, or its action is under way.
    in_flight: bool = False

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
    claimed: set[str] = dataclasses.field(default_factory=set)
    #: Its object was told that enough of its pods have nodes.
    announced: bool = False
    #: Since when each of its pods has been leaving; how many there were at the last look, and when the next is due.
    leaving: dict[str, float] = dataclasses.field(default_factory=dict)
    leaving_looked: tuple[int, float] | None = None
    #: The job of its bound pods, where the id is another job's now: the table has one entry for an id.
    robbed: Placeholder | None = None
    leadership: Leadership = dataclasses.field(default_factory=Leadership)


class WorkloadStore:
    """The records by workload; any thread. Ask for a record each time: it may have been dropped meanwhile."""

    def __init__(self) -> None:
        self._states: dict[WorkloadKey, WorkloadState] = {}
        #: Workloads whose job was forgotten by Slurm, was submitted again, and may not hold its nodes yet.
        self.regaining: set[WorkloadKey] = set()
        #: The last attempt of groups, which may start anew: Slurm remembers the jobs of earlier attempts for a while.
        self.attempts: OrderedDict[WorkloadKey, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._states)

    def get(self, key: WorkloadKey) -> WorkloadState | None:
        """The record of this workload, None where nothing is known of it."""
        return self._states.get(key)

    def of(self, key: WorkloadKey) -> WorkloadState:
        """The record of this workload, to write in."""
        found = self._states.get(key)
        return self._states.setdefault(key, WorkloadState()) if found is None else found

    def desired(self, key: WorkloadKey) -> DesiredJob | None:
        """What this workload wanted when it was translated last."""
        state = self._states.get(key)
        return state.desired if state is not None and isinstance(state.desired, DesiredJob) else None

    def waiting(self) -> tuple[WorkloadKey, ...]:
        """The workloads with pods that wait, as far as they have been translated."""
        return tuple(key for key, state in tuple(self._states.items()) if state.desired is not None)

    def arrived(self, key: WorkloadKey, pod_uid: str) -> None:
        """The watch has reported the binding of this pod."""
        state = self._states.get(key)
        if state is not None:
            state.sent.pop(pod_uid, None)

    def begin_look(self, key: WorkloadKey) -> None:
        """The workload is looked at from now on, and its record is written by that look alone."""
        state = self.of(key)
        assert not state.in_flight, f"workload {key} is looked at twice at the same time"
        state.in_flight = True

    def end_look(self, key: WorkloadKey) -> None:
        """The look is over; its record may have been dropped by it."""
        state = self._states.get(key)
        if state is not None:
            state.in_flight = False

    def settle(self, key: WorkloadKey) -> None:
        """No pod of this workload waits any more: what it wanted is of no use now."""
        state = self._states.get(key)
        if state is not None:
            state.desired = state.rules = state.plan = None

    def drop(self, key: WorkloadKey) -> None:
        """The workload is over."""
        self._states.pop(key, None)
        self.regaining.discard(key)

    def remember_attempt(self, key: WorkloadKey, attempt: int) -> None:
        """The group has a job of this attempt; of many groups, the attempts of the latest are known."""
        self.attempts[key] = attempt
        while len(self.attempts) > MOST_ATTEMPTS:
            self.attempts.popitem(last=False)

    def begin(self) -> None:
        """A leadership begins: how long something lasted in an earlier one is no measure of it now."""
        for state in tuple(self._states.values()):
            state.leadership = Leadership()
