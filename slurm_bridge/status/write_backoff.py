"""Counts the writes of conditions and events, and pauses all of them after a failure."""

import random
from collections.abc import Callable

from loguru import logger

from slurm_bridge import errors, ports
from slurm_bridge.runtime.backoff import Backoff

#: Called with what was written ("condition", "event", "group") and how that ended ("ok", "same", "stale", "failed",
#: "dropped").
Count = Callable[[str, str], None]


class WriteBackoff:
    """One for all writers of a process: a failure of one is likely to be met by the others, too."""

    def __init__(self, clock: ports.Clock, dice: random.Random, count: Count) -> None:
        self._clock = clock
        self._count = count
        self._backoff = Backoff(dice)
        self._paused_until = clock.now()

    @property
    def paused_until(self) -> float:
        """Nothing is written before this time."""
        return self._paused_until

    def worked(self, what: str, outcome: str) -> None:
        """A write was answered by the server."""
        self._backoff.reset()
        self._count(what, outcome)

    def saved(self, what: str, outcome: str) -> None:
        """No write was needed."""
        self._count(what, outcome)

    def failed(self, what: str, target: tuple[str, str], error: errors.BridgeError) -> None:
        """A write failed: the next one waits, whichever it is."""
        wish = error.retry_after if isinstance(error, errors.TryLater) else None
        seconds = self._backoff.next(at_least=wish)
        self._paused_until = self._clock.now() + seconds
        self._count(what, "failed")
        namespace, name = target
        # A replica that has lost the lead keeps what it could not write; a warning of each try would flood the log.
        level = "DEBUG" if isinstance(error, errors.NotLeading) else "WARNING"
        logger.bind(pod=f"{namespace}/{name}").log(level, "{} not written, pause of {:.1f} s: {}", what, seconds, error)

    def dropped(self, what: str, number: int) -> None:
        """So many were dropped to make room for others."""
        for _ in range(number):
            self._count(what, "dropped")
