"""Events that are still to be sent: each once, and the latest of each reason; namespaces take turns."""

import threading
from collections import OrderedDict

from slurm_bridge import ports
from slurm_bridge.runtime.turns import Turns

#: How many different events of one object are remembered; then its memory is cleared.
_MOST_REMEMBERED = 64


class EventQueue:
    """Filled from any thread, emptied by one thread."""

    def __init__(self, *, most: int, remembered: int) -> None:
        self._most = most
        self._remembered = remembered
        self._lock = threading.Lock()
        self._queue: Turns[tuple[str, str], tuple[ports.Note, str]] = Turns(lambda queued: queued[0].namespace)
        self._sent: OrderedDict[str, set[tuple[str, str]]] = OrderedDict()

    def __len__(self) -> int:
        with self._lock:
            return len(self._queue)

    def put(self, note: ports.Note, key: str) -> int:
        """Queues an event, unless it was sent before; returns how many others were dropped for it."""
        with self._lock:
            sent = self._sent.setdefault(note.uid, set())
            self._sent.move_to_end(note.uid)
            if (note.reason, key) in sent:
                return 0
            if len(sent) >= _MOST_REMEMBERED:
                sent.clear()
            sent.add((note.reason, key))
            self._queue.put((note.uid, note.reason), (note, key))
            return self._make_room()

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

    def _make_room(self) -> int:
        dropped = 0
        while len(self._queue) > self._most:
            (uid, reason), (_, key) = self._queue.drop()
            self._sent.get(uid, set()).discard((reason, key))
            dropped += 1
        while len(self._sent) > self._remembered:
            self._sent.popitem(last=False)
        return dropped
