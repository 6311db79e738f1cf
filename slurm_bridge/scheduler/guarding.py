"""One workload that surprises us must not stop the others: that is said loudly, counted, and tried later and later.

What the outside refuses (errors.BridgeError) is no surprise, and the caller's.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from loguru import logger

from slurm_bridge import errors, ports

T = TypeVar("T")

#: The first pause after a surprise, and the longest.
FIRST: Final = 1.0
LONGEST: Final = 300.0
#: So many surprises are remembered: whoever makes more of them does not fill the memory.
_MOST: Final = 4096


class Count(Protocol):
    """Told of each surprise, by the loop that met it."""

    def surprise(self, where: str) -> None: ...


class Guard:
    """By loop and workload: how often in a row it could not be dealt with, and when it may be tried again."""

    def __init__(self, clock: ports.Clock, count: Count) -> None:
        self._clock, self._count = clock, count
        self._pauses: OrderedDict[tuple[str, str], tuple[int, float]] = OrderedDict()

    def one(self, where: str, workload: str, act: Callable[[], T]) -> T | None:
        """Do it for this workload, where it is not put off; None when it was, or when nothing came of it."""
        return None if self._clock.now() < self._due(where, workload) else self.always(where, workload, act)

    def always(self, where: str, workload: str, act: Callable[[], T]) -> T | None:
        """Likewise, for what has to be tried each time: what is said of it in the log still gets rarer."""
        try:
            found = act()
        except errors.BridgeError:
            raise
        except Exception as surprise:  # noqa: BLE001 - whatever it is, it is one workload's
            self._caught(where, workload, surprise)
            return None
        if self._pauses:
            self._pauses.pop((where, workload), None)
        return found

    def _due(self, where: str, workload: str) -> float:
        return self._pauses.get((where, workload), (0, float("-inf")))[1] if self._pauses else float("-inf")

    def _caught(self, where: str, workload: str, surprise: Exception) -> None:
        now = self._clock.now()
        self._count.surprise(where)
        tries, due = self._pauses.pop((where, workload), (0, now))
        if now >= due:
            text = "{}: {} could not be dealt with, the others go on"
            logger.bind(workload=workload).opt(exception=surprise).error(text, where, workload or "it")
            tries, due = tries + 1, now + min(LONGEST, FIRST * (1 << min(tries, 16)))
        self._pauses[where, workload] = tries, due
        while len(self._pauses) > _MOST:
            self._pauses.popitem(last=False)
