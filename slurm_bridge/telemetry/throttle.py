"""Log lines about workloads: so many for each namespace, and none longer than people read.

Users who may create pods influence how often something is logged about them. Lines that are left out are counted, and
the next line says how many they were. Lines that are about no workload are always written.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Final

#: What lines about workloads are bound to.
SUBJECTS: Final = ("workload", "pod")
#: Lines of one namespace at once, and in a second in the long run.
AT_ONCE: Final = 200
PER_SECOND: Final = 20.0
#: So many namespaces are remembered.
_REMEMBERED: Final = 10_000
_MOST: Final = 1024


class Throttle:
    """A filter of loguru's; `now` is a clock in seconds."""

    def __init__(self, now: Callable[[], float], *, at_once: int = AT_ONCE, per_second: float = PER_SECOND) -> None:
        self._now, self._at_once, self._per_second = now, at_once, per_second
        self._lock = threading.Lock()
        #: How many lines are left to each namespace, when that was, and how many were left out since the last line.
        self._left: OrderedDict[str, tuple[float, float, int]] = OrderedDict()

    def __call__(self, record: Any) -> bool:
        """Whether the line is written."""
        whose = subject(record["extra"])
        if whose is None:
            return True
        allowed, missing = self._take(whose)
        if allowed:
            text = record["message"]
            text = text if len(text) <= _MOST else text[: _MOST - 1] + "…"
            record["message"] = f"{text} ({missing} lines about {whose} were left out)" if missing else text
        return allowed

    def _take(self, whose: str) -> tuple[bool, int]:
        now = self._now()
        with self._lock:
            left, since, missing = self._left.get(whose, (float(self._at_once), now, 0))
            left = min(float(self._at_once), left + max(0.0, now - since) * self._per_second)
            allowed = left >= 1
            self._left[whose] = (left - 1, now, 0) if allowed else (left, now, missing + 1)
            self._left.move_to_end(whose)
            while len(self._left) > _REMEMBERED:
                self._left.popitem(last=False)
        return allowed, missing


def subject(extra: Mapping[str, Any]) -> str | None:
    """The namespace that a line is about: of `Job team/web`, `team/web` and `Job/team/web/…`; else the workload itself.

    What follows the namespace is a name, and users write these: whatever it looks like, it says nothing here.
    """
    said = next((str(extra[key]) for key in SUBJECTS if extra.get(key)), None)
    if said is None:
        return None
    before, *after = said.split("/", 2)
    if not after:
        return said[:64]
    # Kinds begin with a capital letter, and no namespace does.
    key = before[:1].isupper() and " " not in before
    return f"namespace {after[0] if key else before.rpartition(' ')[2]}"
