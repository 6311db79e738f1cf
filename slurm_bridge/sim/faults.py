"""Injected faults: which call of a pocket server fails, and how.

A test plans a fault for a chosen call (by method, by a pattern over path and query, by its number) or with seeded dice.
The HTTP server asks here before and after it acts, so that "the answer was lost" and "nothing was done" differ, as they
do in reality. Every call is in the journal, because the number of calls is often what a test asserts.
"""

import collections
import dataclasses
import random
import re
import threading
from collections.abc import Callable

#: Enough for any test; a demo that runs for days must not grow.
JOURNAL_LENGTH = 200_000


@dataclasses.dataclass(frozen=True, slots=True)
class Delay:
    """Act and answer, but this many real seconds later."""

    seconds: float


@dataclasses.dataclass(frozen=True, slots=True)
class Meanwhile:
    """Run an action just before the call is handled: a race at an exact place."""

    action: Callable[[], object]


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """Answer this without acting: an overloaded server, or the page of a proxy."""

    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Hang:
    """Never answer, until `Faults.release` (or the end of the server); `acted` says whether it acts first."""

    acted: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Reset:
    """Reset the connection; `acted` says whether it acts first."""

    acted: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Drop:
    """Act, then close the connection without an answer."""


@dataclasses.dataclass(frozen=True, slots=True)
class Garble:
    """Act, then send this instead of the true body; with the true status unless another one is given.

    A function makes the new body from the true one.
    """

    body: bytes | Callable[[bytes], bytes]
    content_type: str = "application/json"
    status: int = 0

    def sent(self, true: object) -> bytes:
        """The body that is sent instead."""
        if isinstance(self.body, bytes):
            return self.body
        return self.body(true if isinstance(true, bytes) else b"")


@dataclasses.dataclass(frozen=True, slots=True)
class Truncate:
    """Act, announce the whole answer, send this many bytes of it and close."""

    after: int = 20


@dataclasses.dataclass(frozen=True, slots=True)
class Cut:
    """Send this many pieces of a stream, then close the connection in the middle of it."""

    after: int = 1


Fault = Delay | Meanwhile | Answer | Hang | Reset | Drop | Garble | Truncate | Cut


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call as it was seen; status 0 means that no answer was sent."""

    method: str
    target: str
    status: int


@dataclasses.dataclass(slots=True, kw_only=True)
class _Plan:
    fault: Fault
    method: str
    pattern: re.Pattern[str]
    left: int
    skip: int = 0
    dice: random.Random | None = None
    probability: float = 1.0

    def strikes(self, method: str, target: str) -> bool:
        if not self.left or self.method not in ("*", method) or not self.pattern.search(target):
            return False
        if self.dice is not None and self.dice.random() >= self.probability:
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.left -= 1
        return True


class Faults:
    """The planned faults, and the journal of all calls. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._released = threading.Condition(self._lock)
        self._plans: list[_Plan] = []
        self._calls: collections.deque[Call] = collections.deque(maxlen=JOURNAL_LENGTH)
        #: The number of calls, of faults that struck, and of releases; none of them ever decreases.
        self.calls = self.struck = self.releases = 0

    def plan(self, fault: Fault, *, method: str = "*", target: str = "", nth: int = 1, times: int = 1) -> None:
        """Strike the nth matching call from now on, and `times` in a row; `target` is searched in path and query."""
        plan = _Plan(fault=fault, method=method, pattern=re.compile(target), skip=nth - 1, left=times)
        with self._lock:
            self._plans.append(plan)

    def at_random(
        self,
        fault: Fault,
        *,
        probability: float,
        seed: int,
        method: str = "*",
        target: str = "",
        times: int = 1_000_000,
    ) -> None:
        """Strike matching calls by seeded dice."""
        dice = random.Random(seed)
        pattern = re.compile(target)
        plan = _Plan(fault=fault, method=method, pattern=pattern, left=times, dice=dice, probability=probability)
        with self._lock:
            self._plans.append(plan)

    def clear(self) -> None:
        """Drop all plans and release hanging calls; the journal stays."""
        with self._lock:
            self._plans.clear()
        self.release()

    def release(self) -> None:
        """Release every hanging call; its connection is closed without an answer."""
        with self._lock:
            self.releases += 1
            self._released.notify_all()

    def hang(self, releases: int) -> None:
        """Wait until the number of releases exceeds this one."""
        with self._lock:
            self._released.wait_for(lambda: self.releases > releases)

    def strike(self, method: str, target: str) -> Fault | None:
        """The fault for this call, if there is one; the first plan that matches wins."""
        with self._lock:
            plan = next((plan for plan in self._plans if plan.strikes(method, target)), None)
            self._plans = [plan for plan in self._plans if plan.left]
            self.struck += plan is not None
            return plan.fault if plan else None

    def note(self, call: Call) -> None:
        """Add a call to the journal."""
        with self._lock:
            self.calls += 1
        self._calls.append(call)

    @property
    def pending(self) -> int:
        """The number of plans that have not struck yet."""
        with self._lock:
            return len(self._plans)

    @property
    def journal(self) -> tuple[Call, ...]:
        """All calls so far. A call is added just before its answer is sent, or when it ends without one."""
        return tuple(self._calls)

    def count(self, *, method: str = "*", target: str = "") -> int:
        """The number of matching calls so far."""
        pattern = re.compile(target)
        return sum(method in (call.method, "*") for call in self.journal if pattern.search(call.target))

    def forget(self) -> None:
        """Begin a new journal."""
        self._calls.clear()
