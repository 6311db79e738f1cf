"""Events that are still to be sent: each once, and the latest of each reason; namespaces take turns."""

import threading
from collections.abc import MutableMapping

from slurm_bridge import ports
from slurm_bridge.runtime import caches
from slurm_bridge.runtime.turns import Turns

#: How many different events of one object are remembered; then its memory is cleared.
_MOST_REMEMBERED = 64


class EventQueue:
    """Filled from any thread, emptied by one thread."""

    def __init__(self, *, most: int, remembered: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._queue: Turns[tuple[str, str], tuple[ports.Note, str]] = Turns(lambda queued: queued[0].namespace)
        self._sent: MutableMapping[str, set[tuple[str, str]]] = caches.bounded(most=remembered)

    def __len__(self) -> int:
        with self._lock:
            return len(self._queue)

    def put(self, note: ports.Note, key: str) -> int:
        """Queues an event, unless it was sent before; returns how many others were dropped for it."""
        with self._lock:
            sent = self._sent.setdefault(note.uid, set())
            if (note.reason, key) in sent:
                return 0
            if len(sent) >= _MOST_REMEMBERED:
                sent.clear()
            sent.add((note.reason, key))
            self._queue.put((note.uid, note.reason), (note, key))
            dropped = 0
            while len(self._queue) > self._most:
                (uid, reason), (_, lost) = self._queue.drop()
                self._sent.get(uid, set()).discard((reason, lost))
                dropped += 1
            return dropped

    def pop(self) -> tuple[ports.Note, str] | None:
        """The next event and its key."""
        with self._lock:
            return self._queue.pop()

    def lost(self, note: ports.Note, key: str) -> None:
        """The event was not sent: it is queued when it is asked for again."""
        with self._lock:
            self._sent.get(note.uid, set()).discard((note.reason, key))

    def clear(self) -> int:
        """Drops all queued events; returns how many."""
        with self._lock:
            unsent = self._queue.clear()
        for note, key in unsent:
            self.lost(note, key)
        return len(unsent)

    def forget(self, uid: str) -> None:
        """No more events of this object will follow; those that are queued are still sent."""
        with self._lock:
            self._sent.pop(uid, None)
