"""A budget of calls for each namespace: one that has used up its budget waits, and the others do not."""

import threading
from collections import OrderedDict
from typing import Final

#: So many namespaces are kept; the one that asked longest ago is dropped first.
_REMEMBERED: Final = 10_000
#: The shortest pause in seconds, because many pods wait for the same budget.
_PAUSE: Final = 1.0


class NamespaceBudget:
    """`at_once` calls in a row, and `per_second` in the long run. Safe to use from any thread."""

    def __init__(self, *, at_once: int, per_second: float) -> None:
        self._at_once, self._per_second = at_once, per_second
        self._lock = threading.Lock()
        #: How many calls each namespace had left, and when.
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, namespace: str, now: float) -> float:
        """Takes one call; 0 when the budget covers it, else the seconds after which to ask again."""
        with self._lock:
            left, since = self._left.get(namespace, (float(self._at_once), now))
            left = min(float(self._at_once), left + max(0.0, now - since) * self._per_second)
            allowed = left >= 1
            self._left[namespace] = (left - 1 if allowed else left, now)
            self._left.move_to_end(namespace)
            while len(self._left) > _REMEMBERED:
                self._left.popitem(last=False)
        return 0.0 if allowed else max(_PAUSE, (1 - left) / self._per_second)
