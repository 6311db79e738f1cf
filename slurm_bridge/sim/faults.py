"""Failures on order: which call of a pocket server goes wrong, and how.

A test plans a fault for a chosen call (by method, by a pattern over path and query, by its number) or with seeded dice.
The HTTP server asks here before and after it acts, so that "the answer was lost" and "nothing was done" are different
things, as they are in the world. Every call is journalled, because how often somebody called is often what a test asks.
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
    """Let something happen just before the call is acted on: a race, at an exact place."""

    action: Callable[[], object]


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """Answer this without acting: an overloaded server, a proxy's page, anything."""

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
    """Act, then close the connection without a word."""


@dataclasses.dataclass(frozen=True, slots=True)
class Garble:
    """Act, then send this in place of the true body, under the true status unless another one is given.

    A function makes it from the true body.
    """

    body: bytes | Callable[[bytes], bytes]
    content_type: str = "application/json"
    status: int = 0

    def sent(self, true: object) -> bytes:
        """What goes out in place of this."""
        if isinstance(self.body, bytes):
            return self.body
        return self.body(true if isinstance(true, bytes) else b"")


@dataclasses.dataclass(frozen=True, slots=True)
class Truncate:
    """Act, promise the whole answer, send this many bytes of it and close."""

    after: int = 20


@dataclasses.dataclass(frozen=True, slots=True)
class Cut:
    """Let this many pieces of a stream through, then close the connection in the middle of it."""

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
    """The faults that wait for their call, and the journal of all calls; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._released = threading.Condition(self._lock)
        self._plans: list[_Plan] = []
        self._calls: collections.deque[Call] = collections.deque(maxlen=JOURNAL_LENGTH)
        #: How many calls there were, how many of them went wrong on order, and how many releases; all only grow.
        self.calls = self.struck = self.releases = 0

    def plan(self, fault: Fault, *, method: str = "*", target: str = "", nth: int = 1, times: int = 1) -> None:
        """Strike the nth matching call from now on, and so many in a row; `target` is searched in path and query."""
        self._add(_Plan(fault=fault, method=method, pattern=re.compile(target), skip=nth - 1, left=times))

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
        self._add(_Plan(fault=fault, method=method, pattern=pattern, left=times, dice=dice, probability=probability))

    def _add(self, plan: _Plan) -> None:
        with self._lock:
            self._plans.append(plan)

    def clear(self) -> None:
        """Forget what is planned, and let what hangs go on; the journal stays."""
        with self._lock:
            self._plans.clear()
        self.release()

    def release(self) -> None:
        """Let every hanging call go on (its connection is closed without an answer)."""
        with self._lock:
            self.releases += 1
            self._released.notify_all()

    def hang(self, releases: int) -> None:
        """Wait until there were more releases than these."""
        with self._lock:
            self._released.wait_for(lambda: self.releases > releases)

    def strike(self, method: str, target: str) -> Fault | None:
        """The fault for this call, if one waits for it; the first plan that strikes wins."""
        with self._lock:
            plan = next((plan for plan in self._plans if plan.strikes(method, target)), None)
            self._plans = [plan for plan in self._plans if plan.left]
            self.struck += plan is not None
            return plan.fault if plan else None

    def note(self, call: Call) -> None:
        """Write a call into the journal."""
        with self._lock:
            self.calls += 1
        self._calls.append(call)

    @property
    def pending(self) -> int:
        """How many plans still wait for their call."""
        with self._lock:
            return len(self._plans)

    @property
    def journal(self) -> tuple[Call, ...]:
        """All calls so far; one is written down just before its answer is sent, or when it is left without one."""
        return tuple(self._calls)

    def count(self, *, method: str = "*", target: str = "") -> int:
        """How many calls so far match."""
        pattern = re.compile(target)
        return sum(method in (call.method, "*") for call in self.journal if pattern.search(call.target))

    def forget(self) -> None:
        """Begin a new journal."""
        self._calls.clear()
