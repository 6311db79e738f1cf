"""The strict reader of one map of the document: every field by name and kind, and an unknown field is a problem.

A field that cannot be read is noted and taken for one that is left out, so that all of them are found at once.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from slurm_bridge import errors
from slurm_bridge.families.yunikorn.queues import amounts, quantities
from slurm_bridge.families.yunikorn.queues.config import old_keys
from slurm_bridge.families.yunikorn.queues.config.problems import QueueProblem

_PLAIN = re.compile(r"[A-Za-z0-9_-]+")

QUANTITY = "use digits with at most one of k M G T P E Ki Mi Gi Ti Pi Ei, m for vcore, up to 2^63 - 1"

#: A text that is written as a number belongs into quotes, or YAML makes a number of it.
TEXT = "a text (one of digits stands in quotes)"

#: Deeper than any real tree of queues: an alias within its own anchor has no end.
DEEPEST = 100

_SHOWN = 60


def field(where: str, key: object) -> str:
    """The place of a key below a place: `a.b`, or `a["b.c"]` where the key has more than letters."""
    name = str(key)
    if _PLAIN.fullmatch(name):
        return f"{where}.{name}" if where else name
    return f'{where}["{name}"]'


class ConfigRecord:
    """One map of the document and where it stands; what is wrong with it goes into `problems`."""

    def __init__(self, value: object, where: str, problems: list[QueueProblem], depth: int = 0) -> None:
        self.where = where
        self._problems = problems
        self._depth = depth
        self._known: dict[str, None] = {}
        self._fields: Mapping[Any, Any] = {}
        if depth > DEEPEST:
            self.note("wrong_type", where, f"is {depth} levels deep", f"at most {DEEPEST} are allowed")
        elif isinstance(value, Mapping):
            self._fields = value
        elif value is not None:
            self._wrong(where, value, "a map of fields")

    def text(self, key: str) -> str:
        """A text, empty where there is none."""
        value = self._take(key)
        if value is None or isinstance(value, str):
            return value or ""
        self._wrong(field(self.where, key), value, TEXT)
        return ""

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts."""
        found: list[str] = []
        for where, one in self._list(key, "a list of texts"):
            if isinstance(one, str):
                found.append(one)
            else:
                self._wrong(where, one, TEXT)
        return tuple(found)

    def flag(self, key: str, *, default: bool = False) -> bool:
        """True or false."""
        value = self._take(key)
        if value is None or isinstance(value, bool):
            return default if value is None else value
        self._wrong(field(self.where, key), value, "true or false")
        return default

    def count(self, key: str) -> int:
        """A whole number that is not negative, 0 where there is none."""
        value = self._take(key)
        if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
            return value or 0
        self._wrong(field(self.where, key), value, "a whole number, 0 or more")
        return 0

    def record(self, key: str) -> "ConfigRecord | None":
        """A map within this one, None where there is none."""
        value = self._take(key)
        return None if value is None else ConfigRecord(value, field(self.where, key), self._problems, self._depth + 1)

    def records(self, key: str) -> "tuple[ConfigRecord, ...]":
        """A list of maps."""
        listed = self._list(key, "a list of maps")
        return tuple(ConfigRecord(one, where, self._problems, self._depth + 1) for where, one in listed)

    def number(self, where: str, value: object) -> float:
        """One number of those that `items` gave, 0 where it is none."""
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
        self._wrong(where, value, "a number")
        return 0.0

    def items(self) -> Iterator[tuple[str, str, object]]:
        """Every key, which is data here, with its place and its value."""
        for key, value in self._fields.items():
            self._known[key] = None
            yield str(key), field(self.where, key), value

    def amount(self, key: str, *, signed: bool = False) -> amounts.Known:
        """Amounts by type, None where there are none; `signed` leaves it to others to object to negative ones."""
        listed = self.record(key)
        if listed is None:
            return None
        read = {kind: listed.quantity(kind, where, value, signed=signed) for kind, where, value in listed.items()}
        return {kind: one for kind, one in read.items() if one is not None} or None

    def quantity(self, kind: str, where: str, value: object, *, signed: bool) -> int | None:
        """One amount of a type; None is noted."""
        text = str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""
        negative = signed and text.startswith("-")
        try:
            size = quantities.parse(kind, text.removeprefix("-") if negative else text)
        except errors.BadConfiguration:
            self.note("invalid_quantity", where, f"{_short(value)} is no amount of {kind}", QUANTITY)
            return None
        return -size if negative else size

    def note(self, code: str, where: str, there: str, allowed: str, *, warning: bool = False) -> None:
        """One more problem, or warning."""
        self._problems.append(QueueProblem(code=code, field=where, there=there, allowed=allowed, warning=warning))

    def is_noted(self, key: str) -> bool:
        """There is a problem with this field itself."""
        return any(one.field == field(self.where, key) for one in self._problems)

    def finish(self) -> None:
        """All fields that this record may have were taken: whatever is left is unknown."""
        for key, value in self._fields.items():
            if key in old_keys.IGNORED:
                there, allowed = "is not read", "YuniKorn does not read it any more either: remove it"
                self.note("field_ignored", field(self.where, key), there, allowed, warning=True)
            elif key not in self._known:
                hint = old_keys.HINTS.get(key)
                code = "seed_spelling" if hint else "unknown_field"
                there = "is an old name" if hint else f"is no field here, with {_short(value)}"
                self.note(code, field(self.where, key), there, hint or f"there are {', '.join(self._known)}")
                self._problems.extend(old_keys.within(value, field(self.where, key)))

    def _take(self, key: str) -> Any:
        self._known[key] = None
        return self._fields.get(key)

    def _list(self, key: str, allowed: str) -> Iterator[tuple[str, Any]]:
        value, where = self._take(key), field(self.where, key)
        if isinstance(value, Sequence) and not isinstance(value, str | bytes):
            yield from ((f"{where}[{place}]", one) for place, one in enumerate(value))
        elif isinstance(value, Mapping) and key in old_keys.LISTS:
            self.note("seed_spelling", where, "is a map of names", old_keys.LISTS[key])
            self._problems.extend(old_keys.within(value, where))
        elif value is not None:
            self._wrong(where, value, allowed)

    def _wrong(self, where: str, value: object, allowed: str) -> None:
        self.note("wrong_type", where, f"is {_short(value)}", f"use {allowed}")


def _short(value: object) -> str:
    """What is there, for a message: no message carries half a document."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
