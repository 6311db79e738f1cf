"""A token bucket."""

from typing import Final

#: Filling in small steps may end a little below one.
_ALMOST: Final = 1e-9


class TokenBucket:
    """Fills with `per_second` tokens up to `burst`. Its caller gives the time. Not safe to use from several threads."""

    def __init__(self, *, per_second: float, burst: float, now: float) -> None:
        self._per_second = per_second
        self._burst = burst
        self._tokens = burst
        self._filled = now

    def ready_in(self, now: float) -> float:
        """Seconds until a token may be taken, 0 when one may be taken now."""
        grown = max(0.0, now - self._filled) * self._per_second
        self._tokens = min(self._burst, self._tokens + grown)
        self._filled = max(self._filled, now)
        missing = 1.0 - self._tokens
        return missing / self._per_second if missing > _ALMOST else 0.0

    def take(self) -> None:
        """Takes a token; the caller has checked `ready_in` before."""
        self._tokens = max(0.0, self._tokens - 1.0)
