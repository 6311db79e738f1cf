"""List, then watch, for ever: keeps a store equal to the API server through every failure of either.

    nothing known ──list──► known ──watch──► follow changes ──stream ends──► watch again from the last version
         ▲                                        │
         └────────────── Expired ─────────────────┘      any other error: the same step again, after a pause

Pauses grow with every failure and are forgotten as soon as the server says anything new. A stop ends a pause, and a
watch, at once.
"""

import contextlib
import dataclasses
import random
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from loguru import logger

from slurm_bridge import errors, ports
from slurm_bridge.informers.store import Change, Store
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Object
from slurm_bridge.runtime import backoff

T = TypeVar("T", bound=Object)

#: Called with (old, new) in the order of changes; what it raises stops the reflector.
Handler = Callable[[T | None, T | None], None]

#: A watch that lived this long was a working connection, even if nothing happened on it.
LIVED = 30.0
#: A watch that ends sooner and silently is a failure, or its repetition would be a busy loop.
AT_ONCE = 1.0


@dataclasses.dataclass(slots=True)
class WatchCounters:
    """What has happened so far; written by the reflector's thread only."""

    lists: int = 0
    watches: int = 0
    events: int = 0
    bookmarks: int = 0
    failures: int = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReflectorSubject(Generic[T]):
    """What to reflect, and where from."""

    cluster: ports.Cluster
    kind: Kind[T]
    scope: ports.Scope = ports.EVERYWHERE


class Reflector(Generic[T]):
    """Runs in one thread, and is the only writer of its store."""

    def __init__(
        self,
        subject: ReflectorSubject[T],
        store: Store[T],
        *,
        handlers: tuple[Handler[T], ...],
        clock: ports.Clock,
        dice: random.Random,
    ) -> None:
        self._subject = subject
        self._store = store
        self._handlers = handlers
        self._clock = clock
        self._backoff = backoff.Backoff(dice)
        self._lock = threading.Lock()
        self._running: ports.Changes[T] | None = None
        self._listed = float("-inf")
        self.counters = WatchCounters()

    def run(self, stop: threading.Event) -> None:
        """Until stop is set; `interrupt` makes it look."""
        while not stop.is_set():
            try:
                if not self._store.resource_version:
                    self._list()
                self._watch(stop)
            except errors.BridgeError as problem:
                self._pause(problem, stop)

    def interrupt(self) -> None:
        """End the running watch, so that a stop set before is seen at once."""
        with self._lock:
            if self._running is not None:
                self._running.close()

    def _list(self) -> None:
        listing = self._subject.cluster.list(self._subject.kind, self._subject.scope)
        self.counters.lists += 1
        self._listed = self._clock.now()
        self._tell(self._store.replace(listing))
        self._store.mark_synced()

    def _watch(self, stop: threading.Event) -> None:
        """One watch, from where we are to its end."""
        began, seen = self._clock.now(), self._progress
        try:
            self._follow(stop)
        finally:
            lived = self._clock.now() - began
            if lived >= LIVED:
                self._backoff.reset()
        if lived < AT_ONCE and self._progress == seen and not stop.is_set():
            raise errors.Unavailable("the watch ended as soon as it began")

    def _follow(self, stop: threading.Event) -> None:
        since = self._store.resource_version
        with contextlib.closing(self._subject.cluster.watch(self._subject.kind, since, self._subject.scope)) as changes:
            self.counters.watches += 1
            with self._lock:
                self._running = changes
            try:
                # A stop that came while connecting found nothing to interrupt.
                if not stop.is_set():
                    self._take_all(changes, stop)
            finally:
                with self._lock:
                    self._running = None

    def _take_all(self, changes: ports.Changes[T], stop: threading.Event) -> None:
        for change in changes:
            self._backoff.reset()
            if isinstance(change, ports.Bookmark):
                self.counters.bookmarks += 1
            else:
                self.counters.events += 1
            self._tell(self._store.take(change))
            if stop.is_set():
                return

    def _tell(self, changes: tuple[Change[T], ...]) -> None:
        for change in changes:
            for handler in self._handlers:
                handler(change.old, change.new)

    def _pause(self, problem: errors.BridgeError, stop: threading.Event) -> None:
        if stop.is_set():
            return
        self.counters.failures += 1
        if isinstance(problem, errors.Expired):
            self._store.expire()
            if self._clock.now() - self._listed >= LIVED:
                # The answer of a healthy server that has forgotten: it says "list", not "later".
                self._backoff.reset()
        wish = problem.retry_after if isinstance(problem, errors.TryLater) else None
        seconds = self._backoff.next(at_least=wish)
        logger.bind(kind=self._subject.kind.plural).warning("lost touch, next try in {:.1f} s: {}", seconds, problem)
        self._clock.wait(stop, seconds)

    @property
    def _progress(self) -> int:
        return self.counters.events + self.counters.bookmarks
