"""How long to wait before the next try: growing, never in step with others, forgotten after success."""

import random

FIRST = 0.2
MOST = 30.0

#: A server, or a proxy before it, may ask for patience, but not for a day.
LONGEST_WISH = 120.0


class Backoff:
    """Doubles with each failure up to a limit; the dice take up to half of it away."""

    def __init__(self, dice: random.Random, *, first: float = FIRST, most: float = MOST) -> None:
        self._dice = dice
        self._first = first
        self._most = most
        self._failures = 0

    def next(self, *, at_least: float | None = None) -> float:
        """Seconds until the next try; what the server wishes is not undercut."""
        # Beyond 2**20 every limit is reached, and larger powers only overflow.
        full = min(self._most, self._first * (1 << min(self._failures, 20)))
        self._failures += 1
        return max(full * self._dice.uniform(0.5, 1.0), min(at_least or 0.0, LONGEST_WISH))

    def reset(self) -> None:
        """It worked."""
        self._failures = 0
