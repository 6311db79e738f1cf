"""Loops over workloads go on when one raises: the exception is logged and counted, and that one is tried again later.

What a server refuses (errors.BridgeError) is expected; the caller handles it.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from loguru import logger

from slurm_bridge import errors, ports
from slurm_bridge.runtime import backoff

T = TypeVar("T")

#: The first pause after a surprise, and the longest.
FIRST: Final = 1.0
LONGEST: Final = 300.0
#: So many failed workloads are remembered, so that they do not fill the memory.
_MOST: Final = 4096


class Count(Protocol):
    """Counts unexpected exceptions by loop."""

    def surprise(self, where: str) -> None: ...


class Guard:
    """Knows by loop and workload how often in a row it has failed, and when it may be tried again."""

    def __init__(self, clock: ports.Clock, count: Count) -> None:
        self._clock, self._count = clock, count
        self._pauses: OrderedDict[tuple[str, str], tuple[int, float]] = OrderedDict()

    def one(self, where: str, workload: str, act: Callable[[], T]) -> T | None:
        """Call `act` unless this workload is put off; None when it is, or when `act` raises unexpectedly."""
        if self._pauses and self._clock.now() < self._pauses.get((where, workload), (0, float("-inf")))[1]:
            return None
        return self.always(where, workload, act)

    def always(self, where: str, workload: str, act: Callable[[], T]) -> T | None:
        """Likewise, also while the workload is put off; only its log lines get rarer."""
        try:
            found = act()
        except errors.BridgeError:
            raise
        except Exception as surprise:  # noqa: BLE001 - whatever it is, it is one workload's
            now = self._clock.now()
            self._count.surprise(where)
            tries, due = self._pauses.pop((where, workload), (0, now))
            if now >= due:
                text = "{}: {} could not be dealt with, the others go on"
                logger.bind(workload=workload).opt(exception=surprise).error(text, where, workload or "it")
                tries, due = tries + 1, now + backoff.pause(tries, first=FIRST, most=LONGEST)
            self._pauses[where, workload] = tries, due
            while len(self._pauses) > _MOST:
                self._pauses.popitem(last=False)
            return None
        if self._pauses:
            self._pauses.pop((where, workload), None)
        return found
