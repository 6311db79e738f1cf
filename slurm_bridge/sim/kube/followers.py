"""How controllers follow the store: the changes of a resource, and a timer."""

import heapq
import itertools
from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

from slurm_bridge import ports
from slurm_bridge.sim.kube.resources import Resource
from slurm_bridge.sim.kube.store import Compacted, Event, ObjectStore

T = TypeVar("T")


class Reconciler(Protocol):
    """A controller: makes the state follow the objects."""

    def settle(self) -> bool:
        """Do what is due at this moment; returns whether there was anything."""

    def next_due(self) -> float | None:
        """The next time (by the clock's `now`) at which it has to act although nothing changes."""


def each(store: ObjectStore, act: Callable[[T], bool], items: Iterable[T]) -> bool:
    """Act on each item, under the lock of the store; returns whether any act did anything."""
    acted = False
    for item in items:
        with store.changed:
            acted |= act(item)
    return acted


class Tail:
    """The changes of a resource since the last look."""

    def __init__(self, store: ObjectStore, resource: Resource) -> None:
        self._store = store
        self._resource = resource
        self._since = 0

    def news(self) -> list[Event]:
        """The changes; after a compaction, and at first, every object that exists."""
        with self._store.changed:
            try:
                events = self._store.events(self._resource, self._since)
            except Compacted:
                items = self._store.snapshot(self._resource).items
                events = [Event(version=item.version, new=item, old=None) for item in items]
            self._since = self._store.version
            return events


class Agenda:
    """A timer for many entries; equal entries are kept once, with their earliest time."""

    def __init__(self, clock: ports.Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, Any]] = []
        self._known: set[Any] = set()
        self._order = itertools.count()

    def add(self, seconds: float, what: Any) -> None:
        """Make it due after so many seconds."""
        if what not in self._known:
            self._known.add(what)
            heapq.heappush(self._heap, (self._clock.now() + seconds, next(self._order), what))

    def ready(self) -> list[Any]:
        """What is due now."""
        due = []
        while self._heap and self._heap[0][0] <= self._clock.now():
            due.append(heapq.heappop(self._heap)[2])
        self._known.difference_update(due)
        return due

    def next_due(self) -> float | None:
        """The earliest time."""
        return self._heap[0][0] if self._heap else None
