"""Limits log lines about workloads: a rate per namespace, and a length.

Users with the right to create pods influence how often something is logged about them. Dropped lines are counted, and
the next line says how many there were. Lines about no workload are always written.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Final

#: Lines about workloads are bound to one of these.
SUBJECTS: Final = ("workload", "pod")
#: Lines of one namespace: at once, and per second in the long run.
AT_ONCE: Final = 200
PER_SECOND: Final = 20.0
#: The number of namespaces that are remembered.
_REMEMBERED: Final = 10_000
_MOST: Final = 1024


class Throttle:
    """A filter for loguru; `now` is a clock in seconds."""

    def __init__(self, now: Callable[[], float], *, at_once: int = AT_ONCE, per_second: float = PER_SECOND) -> None:
        self._now, self._at_once, self._per_second = now, at_once, per_second
        self._lock = threading.Lock()
        #: For each namespace: the lines it has left, at which time, and the number dropped since its last line.
        self._left: OrderedDict[str, tuple[float, float, int]] = OrderedDict()

    def __call__(self, record: Any) -> bool:
        """Whether the line is written."""
        about = subject(record["extra"])
        if about is None:
            return True
        now = self._now()
        with self._lock:
            left, since, missing = self._left.get(about, (float(self._at_once), now, 0))
            left = min(float(self._at_once), left + max(0.0, now - since) * self._per_second)
            allowed = left >= 1
            self._left[about] = (left - 1, now, 0) if allowed else (left, now, missing + 1)
            self._left.move_to_end(about)
            while len(self._left) > _REMEMBERED:
                self._left.popitem(last=False)
        if allowed:
            text = record["message"]
            text = text if len(text) <= _MOST else text[: _MOST - 1] + "…"
            record["message"] = f"{text} ({missing} lines about {about} were left out)" if missing else text
        return allowed


def subject(extra: Mapping[str, Any]) -> str | None:
    """The namespace of a line: of `Job team/web`, `team/web` and `Job/team/web/…`; else the workload itself.

    Users choose the name that follows the namespace: it is ignored.
    """
    said = next((str(extra[key]) for key in SUBJECTS if extra.get(key)), None)
    if said is None:
        return None
    before, *after = said.split("/", 2)
    if not after:
        return said[:64]
    # Kinds begin with a capital letter; namespaces never do.
    key = before[:1].isupper() and " " not in before
    return f"namespace {after[0] if key else before.rpartition(' ')[2]}"
