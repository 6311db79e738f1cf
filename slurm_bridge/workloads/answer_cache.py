"""A cache of answers: bounded in age and in number, safe to use from any thread."""

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class AnswerCache(Generic[K, V]):
    """A full cache drops the least recently used answer; an answer that is too old is not returned."""

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def __len__(self) -> int:
        with self._lock:
            return len(self._kept)

    def recall(self, key: K, *, now: float) -> V | None:
        """The answer, None when there is none or it is too old."""
        with self._lock:
            until, value = self._kept.get(key, (now, None))
            if until <= now:
                self._kept.pop(key, None)
                return None
            self._kept.move_to_end(key)
            return value

    def keep(self, key: K, value: V, *, until: float) -> None:
        """Keep this answer until that time."""
        with self._lock:
            self._kept[key] = (until, value)
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
