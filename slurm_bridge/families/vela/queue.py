"""The sampling queue: pods in the order of the sort plugin, each at most once."""

import dataclasses
import heapq
import itertools
import threading
from typing import Any, Generic, TypeVar

from slurm_bridge.families.vela.sample_order import Moment, SortPlugin

T = TypeVar("T")


class Empty(Exception):
    """Nothing came in time."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Entry(Generic[T]):
    """A pod that waits under its key `NAMESPACE.NAME`, and what the thread that takes it needs to know."""

    key: str
    priority: int | None
    created: Moment
    item: T


class SamplingQueue(Generic[T]):
    """From any thread. An entry that is replaced stays in the heap until its turn, and is then passed over."""

    def __init__(self, sort: SortPlugin) -> None:
        self._sort = sort
        self._changed = threading.Condition()
        self._heap: list[tuple[Any, int, str]] = []
        self._entries: dict[str, tuple[int, Entry[T]]] = {}
        self._numbers = itertools.count()
        self._closed = False

    def __len__(self) -> int:
        return len(self._entries)

    def enqueue(self, entry: Entry[T]) -> None:
        """Let it wait, in place of any other with its key; after `close` nothing happens."""
        with self._changed:
            if self._closed:
                return
            number = next(self._numbers)
            self._entries[entry.key] = (number, entry)
            heapq.heappush(self._heap, (self._sort.key(entry.priority, entry.created), number, entry.key))
            self._changed.notify()

    def dequeue(self, seconds: float | None = None) -> Entry[T] | None:
        """The first one, waited for if there is none; None once the queue is closed, Empty after so many seconds."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._closed or self._entries, seconds):
                raise Empty
            return None if self._closed else self._first()

    def close(self) -> None:
        """Threads that wait here get None."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _first(self) -> Entry[T]:
        while True:
            _, number, key = heapq.heappop(self._heap)
            known = self._entries.get(key)
            if known is not None and known[0] == number:
                return self._entries.pop(key)[1]
