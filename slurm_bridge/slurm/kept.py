"""Answers that may be stale for a moment: asked once for many readers."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

import cachetools

T = TypeVar("T")

_ONLY = "value"


class Kept(Generic[T]):
    """One value that is fetched again when it is older than `ttl` seconds; a `ttl` of 0 keeps nothing."""

    def __init__(self, fetch: Callable[[], T], *, ttl: float, now: Callable[[], float]) -> None:
        self._fetch = fetch
        self._lock = threading.Lock()
        self._values: cachetools.TTLCache[str, T] = cachetools.TTLCache(maxsize=1, ttl=ttl, timer=now)

    def get(self) -> T:
        """The value; failures are not kept, and nobody waits for somebody else's fetch."""
        with self._lock:
            if _ONLY in self._values:
                return self._values[_ONLY]
        return self.renew()

    def renew(self) -> T:
        """Fetch it now."""
        value = self._fetch()
        with self._lock:
            self._values[_ONLY] = value
        return value
