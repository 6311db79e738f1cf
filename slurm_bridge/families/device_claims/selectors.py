"""Conditions on devices in CEL, as Kubernetes evaluates them, at a bounded cost.

Every user may write a condition. It is bounded in length and words, most of the language is refused that a condition on
a device does not need (`cel`), and a result is kept for all devices of which the condition sees the same. Compiling and
evaluating is bounded in time, for each pass and for all workloads together, of which each namespace has its part. A
condition that fails on a device is not met by it.
"""

import contextlib
import dataclasses
import hashlib
import pkgutil
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, Final, Protocol

import msgspec

from slurm_bridge.model.devices import Device
from slurm_bridge.runtime import caches

#: Letters of a condition, its words, and how deep parentheses may be within each other.
MOST_LETTERS: Final = 2048
MOST_WORDS: Final = 200
MOST_DEPTH: Final = 20

#: Operators `!` and `-` one after the other.
MOST_SIGNS: Final = 2

#: Conditions of which it is known what they see, compiled ones, and results.
_MOST_CONDITIONS: Final = 2048
_MOST_PROGRAMS: Final = 64
MOST_RESULTS: Final = 1 << 16

#: Seconds of one pass after which nothing more is begun.
PASS_SECONDS: Final = 0.04
#: All workloads together have this share of the time, and save up so many seconds. Namespaces that compare at the same
#: time have equal parts of both.
SHARE: Final = 0.1
MOST_SAVED: Final = 0.2
#: What was begun took longer, at most so many seconds of it are paid back.
MOST_OWED: Final = 0.5
#: However many namespaces compare now, after so many seconds it is looked at again.
MOST_PAUSE: Final = 5.0

_WORD: Final = re.compile(r"\"[^\"]*\"|'[^']*'|\w+|\S")
_DIGEST: Final = 16

#: What a condition sees of a device: `attributes` or `capacity`, the domain, and the name.
Field = tuple[str, str, str]


class TooMuch(Exception):
    """More than this pass may do, or all may do in this time; it goes on after `pause` seconds."""

    def __init__(self, pause: float = 0.0) -> None:
        super().__init__()
        self.pause = pause


class _Pass(threading.local):
    """What one thread may still do in a pass; outside of one, what all of them may.

    `until` is set with the first costly thing: each pass does one, so it gets on. `paid` are the seconds of conditions.
    """

    under_way: bool = False
    namespace: str = ""
    until: float | None = None
    begun: bool = False
    evaluations: int = 0
    look_ups: int = 0
    paid: float = 0.0

    def begin(self, now: float) -> None:
        """Compiling or evaluating; raises TooMuch where there is no time for it."""
        if not self.under_way:
            return
        first, self.begun = not self.begun, True
        late = self.late(now)
        self.evaluations -= 1
        if (late and not first) or self.evaluations < 0:
            raise TooMuch

    def late(self, now: float) -> bool:
        """Whether the time of the pass is over."""
        self.until = now + PASS_SECONDS if self.until is None else self.until
        return now > self.until


class _Purse:
    """Seconds of one namespace, filled at a steady rate."""

    def __init__(self, now: float, part: float) -> None:
        self._seconds, self._at = MOST_SAVED * part, now

    def fill(self, now: float, part: float) -> bool:
        """Up to this moment; whether it is full."""
        most = MOST_SAVED * part
        self._seconds = min(most, self._seconds + SHARE * part * max(0.0, now - self._at))
        self._at = now
        return self._seconds >= most

    def pause(self, part: float) -> float:
        """After how many seconds there is something in it, or its part may be larger; 0 where there is now."""
        return 0.0 if self._seconds > 0 else min(MOST_PAUSE, -self._seconds / (SHARE * part) + SHARE)

    def take(self, seconds: float) -> None:
        """What was used."""
        self._seconds = max(-MOST_OWED, self._seconds - seconds)


class _Purses:
    """One for each namespace that has used something, until it is full again. Used under the lock of their owner.

    All of them are looked at once in a while only: there may be many.
    """

    def __init__(self) -> None:
        self._of: dict[str, _Purse] = {}
        self._looked = 0.0

    def pause(self, namespace: str, now: float) -> float:
        """After how many seconds there is something for this namespace; 0 where there is now."""
        if now - self._looked >= 1.0:
            self._looked, part = now, self._part
            self._of = {name: one for name, one in self._of.items() if not one.fill(now, part)}
        purse = self._of.setdefault(namespace, _Purse(now, 1 / (len(self._of) + 1)))
        purse.fill(now, self._part)
        return purse.pause(self._part)

    @property
    def _part(self) -> float:
        return 1 / max(1, len(self._of))

    def take(self, namespace: str, seconds: float) -> None:
        """What was used."""
        if namespace in self._of:
            self._of[namespace].take(seconds)


class UnusableSelector(Exception):
    """A condition that is not evaluated; the message says why."""


class Program(Protocol):
    """A compiled condition. `fields` are all that it sees beside the driver; None: it may see everything."""

    fields: tuple[Field, ...] | None

    def met(self, driver: str, facts: Mapping[Field, Any]) -> bool:
        """Whether a device with this driver, attributes and capacities meets it."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """What stays known of a condition longer than its program: what is wrong with it, or what it sees."""

    digest: bytes
    problem: str = ""
    fields: tuple[Field, ...] | None = None


class Selectors:
    """Compiled conditions and their results. Safe to use from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._read: MutableMapping[str, _Read] = caches.bounded(most=_MOST_CONDITIONS)
        self._programs: MutableMapping[str, Program] = caches.bounded(most=_MOST_PROGRAMS)
        self._results: MutableMapping[bytes, bool] = caches.bounded(most=MOST_RESULTS)
        self._pass = _Pass()
        self._purses = _Purses()

    def problem(self, text: str) -> str:
        """Why a condition is not evaluated; "" where it is. Raises TooMuch."""
        return self._seen(text).problem

    def matches(self, text: str, driver: str, device: Device) -> bool:
        """Whether the device meets the condition. Raises TooMuch."""
        read = self._seen(text)
        if read.problem:
            return False
        facts = _facts(driver, device, read.fields)
        key = _key(read.digest, driver, facts)
        self._pass.look_ups -= 1
        with self._lock:
            known = self._results.get(key)
        if known is None:
            known = self._evaluate(text, driver, facts)
            with self._lock:
                self._results[key] = known
        return known

    @contextlib.contextmanager
    def at_most(self, evaluations: int, look_ups: int, namespace: str = "") -> Iterator[None]:
        """Within this, so much is done in this thread for this namespace, and nothing is begun after `PASS_SECONDS`.

        Within another one, that one counts.
        """
        if self._pass.under_way:
            yield
            return
        self._pass.evaluations, self._pass.look_ups = evaluations, look_ups
        self._pass.under_way, self._pass.until, self._pass.namespace = True, None, namespace
        self._pass.begun = False
        try:
            yield
        finally:
            self._pass.under_way, self._pass.namespace = False, ""

    @contextlib.contextmanager
    def paid_by(self, namespace: str) -> Iterator[None]:
        """Within this, and outside of a pass, what is done in this thread is for this namespace."""
        if self._pass.under_way:
            yield
            return
        self._pass.namespace = namespace
        try:
            yield
        finally:
            self._pass.namespace = ""

    @contextlib.contextmanager
    def judging(self) -> Iterator[None]:
        """A look at all devices of a node, which costs time also where no condition is evaluated; may raise TooMuch.

        Each pass gets to one at least.
        """
        if not self._pass.under_way:
            yield
            return
        began, paid = self._begun(), self._pass.paid
        if self._pass.look_ups <= 0 or self._pass.late(began):
            raise TooMuch
        try:
            yield
        finally:
            # Conditions are paid for already.
            self._pay(self._clock() - began - (self._pass.paid - paid))

    def _seen(self, text: str) -> _Read:
        with self._lock:
            found = self._read.get(text)
        return found or self._compile(text)[0]

    def _evaluate(self, text: str, driver: str, facts: Mapping[Field, Any]) -> bool:
        with self._lock:
            program = self._programs.get(text)
        if program is None:
            program = self._compile(text)[1]
        with self._paid():
            return program is not None and program.met(driver, facts)

    def _compile(self, text: str) -> tuple[_Read, Program | None]:
        """Outside the lock: other conditions are looked up meanwhile."""
        digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=_DIGEST).digest()
        program: Program | None = None
        try:
            _bounded(text)
            made = _language()
            with self._paid():
                program = made(text)
            read = _Read(digest=digest, fields=program.fields)
        except UnusableSelector as problem:
            read = _Read(digest=digest, problem=str(problem))
        with self._lock:
            if len(text) <= MOST_LETTERS:
                self._read[text] = read
            if program is not None:
                self._programs[text] = program
        return read, program

    @contextlib.contextmanager
    def _paid(self) -> Iterator[None]:
        """Something costly, if there is still time for it."""
        began = self._begun()
        self._pass.begin(began)
        try:
            yield
        finally:
            seconds = self._clock() - began
            self._pass.paid += seconds
            self._pay(seconds)

    def _begun(self) -> float:
        """The time; raises TooMuch where the namespace has to wait."""
        now = self._clock()
        with self._lock:
            pause = self._purses.pause(self._pass.namespace, now)
        if pause:
            raise TooMuch(pause)
        return now

    def _pay(self, seconds: float) -> None:
        with self._lock:
            self._purses.take(self._pass.namespace, seconds)


def _language() -> Callable[[str], Program]:
    """The library takes time and memory: it is loaded with the first condition."""
    found: Callable[[str], Program] = pkgutil.resolve_name("slurm_bridge.families.device_claims.cel:CelProgram")
    return found


def _key(digest: bytes, driver: str, facts: Mapping[Field, Any]) -> bytes:
    """A few bytes, whatever a driver says of its devices."""
    said = msgspec.msgpack.encode((digest, driver, sorted(facts.items(), key=_field)))
    return hashlib.blake2b(said, digest_size=_DIGEST).digest()


def _field(fact: tuple[Field, Any]) -> Field:
    return fact[0]


def _bounded(text: str) -> None:
    if len(text) > MOST_LETTERS:
        raise UnusableSelector(f"is longer than {MOST_LETTERS} letters")
    if "\\" in text:
        raise UnusableSelector("has a backslash, which is not supported")
    depth = deepest = signs = 0
    words = _WORD.findall(text)
    for word in words:
        signs = signs + 1 if word in ("!", "-") else 0
        if signs > MOST_SIGNS:
            raise UnusableSelector(f"has more than {MOST_SIGNS} operators ! or - in a row")
        depth += (word in ("(", "[")) - (word in (")", "]"))
        deepest = max(deepest, depth)
    if len(words) > MOST_WORDS or deepest > MOST_DEPTH:
        raise UnusableSelector(f"has more than {MOST_WORDS} words, or parentheses deeper than {MOST_DEPTH}")


def _facts(driver: str, device: Device, fields: tuple[Field, ...] | None) -> dict[Field, Any]:
    """What a condition may see. A name without a domain is of the driver's."""
    if fields is None:
        return {
            (what, *_qualified(driver, name)): value
            for what, entries in (("attributes", device.attributes), ("capacity", device.capacity))
            for name, value in entries.items()
        }
    found: dict[Field, Any] = {}
    for what, domain, name in fields:
        entries: Mapping[str, Any] = device.attributes if what == "attributes" else device.capacity
        value = entries.get(f"{domain}/{name}")
        if value is None and domain == driver:
            value = entries.get(name)
        if value is not None:
            found[what, domain, name] = value
    return found


def _qualified(driver: str, name: str) -> tuple[str, str]:
    domain, _, bare = name.rpartition("/")
    return domain or driver, bare
