"""A token bucket: so many at once, so many per second."""

from typing import Final

#: Filling in small steps may end a hair below one.
_HAIR: Final = 1e-9


class TokenBucket:
    """Fills with time up to `burst`; what is taken is gone. Its user gives the time, and is alone."""

    def __init__(self, *, per_second: float, burst: float, now: float) -> None:
        self._per_second = per_second
        self._burst = burst
        self._tokens = burst
        self._filled = now

    def ready_in(self, now: float) -> float:
        """Seconds until one may be taken, 0 when one may be taken now."""
        self._fill(now)
        missing = 1.0 - self._tokens
        return missing / self._per_second if missing > _HAIR else 0.0

    def take(self) -> None:
        """One less; whoever takes has asked `ready_in` before."""
        self._tokens = max(0.0, self._tokens - 1.0)

    def _fill(self, now: float) -> None:
        grown = max(0.0, now - self._filled) * self._per_second
        self._tokens = min(self._burst, self._tokens + grown)
        self._filled = max(self._filled, now)
