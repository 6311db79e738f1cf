"""Conditions on devices in CEL, as Kubernetes evaluates them, at a bounded cost.

Every user may write a condition. It is bounded in length and words, most of the language is refused that a condition on
a device does not need (`cel`), and a result is kept for all devices of which the condition sees the same. A condition
that fails on a device is not met by it.
"""

import contextlib
import pkgutil
import re
import threading
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, Final, Protocol

from slurm_bridge.model.devices import Device
from slurm_bridge.runtime import caches

#: Letters of a condition, its words, and how deep parentheses may be within each other.
MOST_LETTERS: Final = 2048
MOST_WORDS: Final = 200
MOST_DEPTH: Final = 20

_MOST_CONDITIONS: Final = 512
_MOST_RESULTS: Final = 1 << 17

_WORD: Final = re.compile(r"\"[^\"]*\"|'[^']*'|\w+|\S")

#: What a condition sees of a device: `attributes` or `capacity`, the domain, and the name.
Field = tuple[str, str, str]


class TooMuch(Exception):
    """More evaluations, or results looked up, than this pass may make."""


class _Budget(threading.local):
    """What one thread may still do; None: whatever it wants."""

    evaluations: int | None = None
    look_ups: int = 0

    def spend(self, *, evaluated: bool) -> None:
        """Raises TooMuch where nothing is left."""
        if self.evaluations is None:
            return
        self.look_ups -= 1
        self.evaluations -= evaluated
        if self.evaluations < 0 or self.look_ups < 0:
            raise TooMuch


class UnusableSelector(Exception):
    """A condition that is not evaluated; the message says why."""


class Program(Protocol):
    """A compiled condition. `fields` are all that it sees beside the driver; None: it may see everything."""

    fields: tuple[Field, ...] | None

    def met(self, driver: str, facts: Mapping[Field, Any]) -> bool:
        """Whether a device with this driver, attributes and capacities meets it."""


class Selectors:
    """Compiled conditions and their results. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._programs: MutableMapping[str, Program | str] = caches.bounded(most=_MOST_CONDITIONS)
        self._results: MutableMapping[tuple[object, ...], bool] = caches.bounded(most=_MOST_RESULTS)
        self._budget = _Budget()

    def problem(self, text: str) -> str:
        """Why a condition is not evaluated; "" where it is."""
        found = self._program(text)
        return found if isinstance(found, str) else ""

    def matches(self, text: str, driver: str, device: Device) -> bool:
        """Whether the device meets the condition. Raises TooMuch within `at_most`."""
        program = self._program(text)
        if isinstance(program, str):
            return False
        facts = _facts(driver, device, program.fields)
        key = (text, driver, *sorted(facts.items(), key=lambda one: one[0]))
        with self._lock:
            known = self._results.get(key)
        self._budget.spend(evaluated=known is None)
        if known is None:
            known = program.met(driver, facts)
            with self._lock:
                self._results[key] = known
        return known

    @contextlib.contextmanager
    def at_most(self, evaluations: int, look_ups: int) -> Iterator[None]:
        """Within this no more conditions are evaluated, and no more results looked up, in this thread."""
        self._budget.evaluations, self._budget.look_ups = evaluations, look_ups
        try:
            yield
        finally:
            self._budget.evaluations = None

    def _program(self, text: str) -> Program | str:
        with self._lock:
            found = self._programs.get(text)
            if found is None:
                found = self._programs[text] = _compiled(text)
            return found


def _compiled(text: str) -> Program | str:
    try:
        _bounded(text)
        # The library takes time and memory: it is loaded with the first condition.
        program: Program = pkgutil.resolve_name("slurm_bridge.families.device_claims.cel:CelProgram")(text)
    except UnusableSelector as problem:
        return str(problem)
    return program


def _bounded(text: str) -> None:
    if len(text) > MOST_LETTERS:
        raise UnusableSelector(f"is longer than {MOST_LETTERS} letters")
    if "\\" in text:
        raise UnusableSelector("has a backslash, which is not supported")
    depth = deepest = 0
    words = _WORD.findall(text)
    for word in words:
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
