"""How long to wait before the next try: growing with each failure, never in step with others."""

import random

FIRST = 0.2
MOST = 30.0

#: A server, or a proxy before it, may ask for patience, but not for a day.
LONGEST_WISH = 120.0

#: Beyond so many doublings every limit is reached, and larger powers only overflow.
_DOUBLINGS = 30


def pause(failures: int, *, first: float, most: float) -> float:
    """Seconds before the next try: `first`, doubled for each failure before, up to `most`."""
    return min(most, first * 2.0 ** min(failures, _DOUBLINGS))


class Backoff:
    """Counts the failures in a row; the dice take up to half of each pause away."""

    def __init__(self, dice: random.Random, *, first: float = FIRST, most: float = MOST) -> None:
        self._dice = dice
        self._first = first
        self._most = most
        self._failures = 0

    def next(self, *, at_least: float | None = None) -> float:
        """Seconds until the next try; what the server wishes is not undercut."""
        full = pause(self._failures, first=self._first, most=self._most)
        self._failures += 1
        return max(full * self._dice.uniform(0.5, 1.0), min(at_least or 0.0, LONGEST_WISH))

    def reset(self) -> None:
        """It worked."""
        self._failures = 0
