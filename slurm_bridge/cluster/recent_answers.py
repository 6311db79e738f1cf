"""A bounded memory that forgets what was asked for longest ago."""

import threading
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """At most so many values by key; used from any thread."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._known: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """The value, which thereby is the youngest."""
        with self._lock:
            value = self._known.pop(key, None)
            if value is not None:
                self._known[key] = value
            return value

    def put(self, key: K, value: V) -> None:
        """Remember it, in the place of the oldest one where there is no room."""
        with self._lock:
            self._known.pop(key, None)
            while len(self._known) >= self._most:
                del self._known[next(iter(self._known))]
            self._known[key] = value
