"""How one hook is called: measured, its answer checked, and a foreign one in a worker that it can only block itself.

Python cannot stop a thread. A foreign hook that exceeds its budget is left behind in its worker and not called while
it is still in there (quarantine): one that was slow once is asked again, one that hangs never is, until the
configuration is loaded anew. The chain counts the workers that it has left behind.
"""

import dataclasses
import enum
import functools
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from slurm_bridge import ports
from slurm_bridge.hooks import answer_checks, base
from slurm_bridge.hooks.base import HookPhase
from slurm_bridge.hooks.lifecycle import ActiveUsage, Capabilities
from slurm_bridge.hooks.needs import Need, View
from slurm_bridge.model.features import Feature
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.verdict import Reject, Wait

#: How long a foreign hook may take to close; hooks that wait for their own threads do not wait longer than this.
CLOSE_SECONDS = 6.0


class OnError(enum.Enum):
    """What a failing hook means for the workload: nothing, that it waits, or that it is refused."""

    SKIP = "skip"
    HOLD = "hold"
    REJECT = "reject"


class Outcome(enum.StrEnum):
    """How a call ended; `slow` answered, but beyond its budget."""

    OK = "ok"
    SLOW = "slow"
    ERROR = "error"
    TIMEOUT = "timeout"
    QUARANTINED = "quarantined"


class Observer(Protocol):
    """Where durations and outcomes are counted."""

    def called(self, hook: str, phase: str, outcome: str, seconds: float) -> None: ...


class Unobserved:
    """Counts nothing."""

    def called(self, hook: str, phase: str, outcome: str, seconds: float) -> None:
        """Nothing to do."""


@dataclasses.dataclass(frozen=True, slots=True)
class PhaseShape:
    """What registration and calls check of a phase: the number of arguments, the answers, one hook only."""

    arguments: int
    answers: tuple[type, ...]
    alone: bool = False


SHAPES: Mapping[HookPhase, PhaseShape] = {
    HookPhase.ADMIT: PhaseShape(2, (base.Admit, Wait, Reject)),
    HookPhase.ORDER: PhaseShape(1, (base.Rank,), alone=True),
    HookPhase.CAPACITY: PhaseShape(2, (base.Admit, Wait, Reject)),
    HookPhase.SAMPLE: PhaseShape(3, (base.Sample, Wait), alone=True),
    HookPhase.FILTER: PhaseShape(3, (base.Denied, Wait)),
    HookPhase.EXPRESS: PhaseShape(2, (base.Fields,)),
    HookPhase.SCORE: PhaseShape(3, (base.Scores,)),
    HookPhase.SUBSET: PhaseShape(4, (base.Subsets,)),
    HookPhase.COMMIT: PhaseShape(2, (base.Admit, Wait, Reject)),
    HookPhase.VERIFY: PhaseShape(3, (base.Admit, base.Deny, Wait, Reject)),
}


class HookFailed(Exception):
    """A hook raised, answered nonsense or took too long; `hook` says which, the message what happened."""

    def __init__(self, hook: "Hook", phase: HookPhase, message: str, outcome: Outcome) -> None:
        super().__init__(message)
        self.hook = hook
        self.phase = phase
        self.outcome = outcome


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hook:
    """A hook as it is configured. Built-in ones run where they are called, foreign ones in a worker of their own."""

    name: str
    hook: object
    on_error: OnError = OnError.HOLD
    budget_seconds: float = 0.2
    needs: frozenset[Need] = frozenset()
    honours: frozenset[Feature] = frozenset()
    #: Keys of annotations that it reads, and that are kept in memory however long they are.
    annotations: frozenset[str] = frozenset()
    worker: "Worker | None" = None

    #: What it has beside its phases.
    can: Capabilities = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "can", Capabilities.of(self.hook, foreign=self.worker is not None))

    @property
    def steady(self) -> bool:
        """What it says follows from a workload without its names and uids, and from the version of the cluster."""
        return self.worker is None and bool(getattr(self.hook, "steady", False))

    @property
    def keeps_exclusive(self) -> bool:
        """Its fields say nothing of whether a job shares its nodes; of hooks of a site that is not believed."""
        return self.worker is None and bool(getattr(self.hook, "keeps_exclusive", False))

    @property
    def phases(self) -> tuple[HookPhase, ...]:
        """Those that it has a method for."""
        return tuple(phase for phase in HookPhase if callable(getattr(self.hook, phase.value, None)))

    def forget(self, workload: WorkloadKey) -> None:
        """No pod of the workload with this root waits any more."""
        if self.can.forgets is not None:
            self.can.forgets.forget(workload)

    def ended(self, workload: WorkloadKey) -> None:
        """The workload with this root keeps nothing in Slurm and on no node."""
        if self.can.counts_ends is not None:
            self.can.counts_ends.ended(workload)

    def restored(self, held: Sequence[ActiveUsage], views: Mapping[Need, View], *, fresh: bool) -> None:
        """These workloads keep something, and no others do."""
        if self.can.restores is not None:
            self.can.restores.restored(held, {need: views[need] for need in self.needs if need in views}, fresh=fresh)

    def close(self) -> None:
        """End what it does beside the passes, and its worker; raises what the hook raises.

        A foreign hook is closed in its worker, and left behind there if it hangs.
        """
        closes = self.can.closes
        try:
            if closes is not None and self.worker is not None:
                self.worker.call(closes.close, (), CLOSE_SECONDS)
            elif closes is not None:
                closes.close()
        finally:
            if self.worker is not None:
                self.worker.close()


class HookAnswer(NamedTuple):
    """What a hook said, and how long it took."""

    value: Any
    seconds: float


#: In one step: a hook answers about two dozen times for each workload.
_answered: Callable[[tuple[Any, float]], HookAnswer] = functools.partial(tuple.__new__, HookAnswer)


@dataclasses.dataclass(frozen=True, slots=True)
class HookCaller:
    """Calls hooks, and tells the observer."""

    clock: ports.Clock
    observer: Observer

    def call(self, hook: Hook, phase: HookPhase, *arguments: object) -> HookAnswer:
        """The answer, of a type that the phase allows; HookFailed otherwise."""
        method, worker, now = getattr(hook.hook, phase), hook.worker, self.clock.now
        began = now()
        try:
            value = method(*arguments) if worker is None else worker.call(method, arguments, hook.budget_seconds)
            answer_checks.check(value, SHAPES[phase].answers)
        except Exception as error:  # a hook is foreign code: whatever it raises is its own failure, and on_error rules
            outcome = _OUTCOMES.get(type(error), Outcome.ERROR)
            self.observer.called(hook.name, phase, outcome, self.clock.now() - began)
            message = str(error) if type(error) in _OUTCOMES else f"{type(error).__name__}: {error}"
            raise HookFailed(hook, phase, message, outcome) from error
        seconds = now() - began
        self.observer.called(hook.name, phase, Outcome.SLOW if seconds > hook.budget_seconds else Outcome.OK, seconds)
        return _answered((value, seconds))


class OverBudget(Exception):
    """The hook did not answer in time."""


class Quarantined(Exception):
    """The hook did not answer in time, and has not answered to this moment."""


#: How a call ended that failed in a worker; all other errors are those of the hook.
_OUTCOMES: Mapping[type[Exception], Outcome] = {OverBudget: Outcome.TIMEOUT, Quarantined: Outcome.QUARANTINED}

_Reply = tuple[object, BaseException | None]
_Job = tuple[Callable[..., object], tuple[object, ...], "queue.SimpleQueue[_Reply]"]
_Jobs = queue.SimpleQueue[_Job | None]


class Left:
    """Threads that were left behind in a hook. Chains come and go with the configuration; these threads stay."""

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []

    def add(self, thread: threading.Thread) -> None:
        """One more, until its hook returns after all."""
        self._threads = [one for one in self._threads if one.is_alive()] + [thread]

    @property
    def count(self) -> int:
        """How many have not come back to this day."""
        return sum(thread.is_alive() for thread in self._threads)


class Worker:
    """One thread for one foreign hook, started with the first call; callers take turns."""

    def __init__(self, name: str, left: Left) -> None:
        self._name = name
        self._left = left
        self._behind: threading.Thread | None = None
        self._turn = threading.Lock()
        self._jobs: _Jobs | None = None
        self._thread: threading.Thread | None = None

    def call(self, method: Callable[..., object], arguments: tuple[object, ...], seconds: float) -> object:
        """The hook's answer or its exception; OverBudget when there is none in time."""
        with self._turn:
            if self._behind is not None and self._behind.is_alive():
                raise Quarantined("has not come back from an earlier question, and is not asked until it has")
            reply: queue.SimpleQueue[_Reply] = queue.SimpleQueue()
            if self._jobs is None:
                self._jobs = queue.SimpleQueue()
                name = f"hook-{self._name}"
                self._thread = threading.Thread(target=_work, args=(self._jobs,), name=name, daemon=True)
                self._thread.start()
            self._jobs.put((method, arguments, reply))
            try:
                value, error = reply.get(timeout=seconds)
            except queue.Empty:
                self._behind = self._thread
                if self._thread is not None:
                    self._left.add(self._thread)
                self._dismiss()
                raise OverBudget(f"did not answer within {seconds * 1000:.0f} ms") from None
        if error is None:
            return value
        if isinstance(error, Exception):
            raise error
        raise RuntimeError(f"tried to end its thread with {type(error).__name__}") from error

    def close(self) -> None:
        """Let the thread end once it is idle; a later call would start another."""
        with self._turn:
            self._dismiss()

    def _dismiss(self) -> None:
        if self._jobs is not None:
            self._jobs.put(None)
            self._jobs = self._thread = None


def _work(jobs: _Jobs) -> None:
    while (job := jobs.get()) is not None:
        method, arguments, reply = job
        try:
            reply.put((method(*arguments), None))
        except BaseException as error:  # noqa: BLE001 - handed to the caller, where it is the hook's failure
            reply.put((None, error))
