"""How writing goes: what was written is counted, and after a failure everybody waits a while."""

import random
from collections.abc import Callable

from loguru import logger

from slurm_bridge import errors, ports
from slurm_bridge.runtime.backoff import Backoff

#: Called with what was written ("condition", "event", "group") and how that ended ("ok", "same", "stale", "failed",
#: "dropped").
Count = Callable[[str, str], None]


class Pace:
    """One for all writers of a process: what one of them met, the others would meet too."""

    def __init__(self, clock: ports.Clock, dice: random.Random, count: Count) -> None:
        self._clock = clock
        self._count = count
        self._backoff = Backoff(dice)
        self._paused_until = clock.now()

    @property
    def paused_until(self) -> float:
        """Nobody writes before."""
        return self._paused_until

    def worked(self, what: str, outcome: str) -> None:
        """The server answered as it should."""
        self._backoff.reset()
        self._count(what, outcome)

    def saved(self, what: str, outcome: str) -> None:
        """Nobody had to be asked."""
        self._count(what, outcome)

    def failed(self, what: str, whom: tuple[str, str], error: errors.BridgeError) -> None:
        """The next write waits, whichever it is."""
        wish = error.retry_after if isinstance(error, errors.TryLater) else None
        seconds = self._backoff.next(at_least=wish)
        self._paused_until = self._clock.now() + seconds
        self._count(what, "failed")
        namespace, name = whom
        # A replica that has lost the lead keeps what it could not say, and nobody has to hear of each try.
        level = "DEBUG" if isinstance(error, errors.NotLeading) else "WARNING"
        logger.bind(pod=f"{namespace}/{name}").log(level, "{} not written, pause of {:.1f} s: {}", what, seconds, error)

    def dropped(self, what: str, number: int) -> None:
        """So many had to make room for others."""
        for _ in range(number):
            self._count(what, "dropped")
