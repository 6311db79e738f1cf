"""The only door to cachetools: what is remembered for a while, bounded in number or in age.

Caches that were measured hot stay plain dictionaries or `functools.lru_cache` beside their use: a look-up in LruCache
takes four times as long as one in `lru_cache`, one in `expiring` eighteen times.
"""

import threading
from collections.abc import Callable, Hashable, MutableMapping
from typing import Generic, TypeVar

import cachetools

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_ONLY = "value"


def bounded(*, most: int) -> MutableMapping[K, V]:
    """A mapping in which the least recently used makes room. Not thread-safe."""
    return cachetools.LRUCache(maxsize=most)


def expiring(*, most: int, seconds: float, now: Callable[[], float]) -> MutableMapping[K, V]:
    """A mapping whose values are gone after so many seconds; the least recently used makes room. Not thread-safe."""
    return cachetools.TTLCache(maxsize=most, ttl=seconds, timer=now)


class ValueCache(Generic[V]):
    """One value that is fetched again when it is older than `ttl` seconds; a `ttl` of 0 keeps nothing."""

    def __init__(self, fetch: Callable[[], V], *, ttl: float, now: Callable[[], float]) -> None:
        self._fetch = fetch
        self._lock = threading.Lock()
        self._values: cachetools.TTLCache[str, V] = cachetools.TTLCache(maxsize=1, ttl=ttl, timer=now)

    def get(self) -> V:
        """The value; failures are not kept, and no thread waits for the fetch of another."""
        with self._lock:
            if _ONLY in self._values:
                return self._values[_ONLY]
        return self.renew()

    def renew(self) -> V:
        """Fetch it now."""
        value = self._fetch()
        with self._lock:
            self._values[_ONLY] = value
        return value


class AnswerCache(Generic[K, V]):
    """Each answer is kept until a time of its own; the least recently used makes room. Safe to use from any thread."""

    def __init__(self, *, most: int) -> None:
        self._lock = threading.Lock()
        self._kept: MutableMapping[K, tuple[float, V]] = bounded(most=most)

    def __len__(self) -> int:
        with self._lock:
            return len(self._kept)

    def recall(self, key: K, *, now: float) -> V | None:
        """The answer, None when there is none or it is too old."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            until, value = found
            if until > now:
                return value
            del self._kept[key]
            return None

    def keep(self, key: K, value: V, *, until: float) -> None:
        """Keep this answer until that time."""
        with self._lock:
            self._kept[key] = (until, value)


class LruCache(Generic[K, V]):
    """Made on demand; the least recently used makes room and is given to `drop`. Safe to use from any thread."""

    def __init__(self, make: Callable[[K], V], *, most: int, drop: Callable[[V], None]) -> None:
        self._make, self._drop = make, drop
        self._lock = threading.Lock()
        self._values = _Lru[K, V](most, drop)

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K) -> V:
        """The value of this key."""
        with self._lock:
            value = self._values.get(key)
            if value is None:
                value = self._values[key] = self._make(key)
            return value

    def clear(self) -> None:
        """Drop all values."""
        with self._lock:
            while self._values:
                self._values.popitem()


class _Lru(cachetools.LRUCache[K, V]):
    def __init__(self, most: int, drop: Callable[[V], None]) -> None:
        super().__init__(most)
        self._drop = drop

    def popitem(self) -> tuple[K, V]:
        key, value = super().popitem()
        self._drop(value)
        return key, value
