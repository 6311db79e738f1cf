"""Events that are still to be sent: each is said once, the latest of its reason wins; namespaces take turns."""

import threading
from collections import OrderedDict

from slurm_bridge import ports
from slurm_bridge.runtime.turns import Turns

#: Different things said of one object before its memory starts anew.
_MOST_SAID = 64


class EventQueue:
    """Filled from any thread, emptied by one."""

    def __init__(self, *, most: int, remembered: int) -> None:
        self._most = most
        self._remembered = remembered
        self._lock = threading.Lock()
        self._queue: Turns[tuple[str, str], tuple[ports.Note, str]] = Turns(lambda news: news[0].namespace)
        self._said: OrderedDict[str, set[tuple[str, str]]] = OrderedDict()

    def __len__(self) -> int:
        with self._lock:
            return len(self._queue)

    def put(self, note: ports.Note, key: str) -> int:
        """Want this sent, unless it was; how many others had to make room for it."""
        with self._lock:
            said = self._said.setdefault(note.uid, set())
            self._said.move_to_end(note.uid)
            if (note.reason, key) in said:
                return 0
            if len(said) >= _MOST_SAID:
                said.clear()
            said.add((note.reason, key))
            self._queue.put((note.uid, note.reason), (note, key))
            return self._make_room()

    def pop(self) -> tuple[ports.Note, str] | None:
        """The next one."""
        with self._lock:
            return self._queue.pop()

    def lost(self, note: ports.Note, key: str) -> None:
        """It was not sent: when it is said again, it is news."""
        with self._lock:
            self._said.get(note.uid, set()).discard((note.reason, key))

    def clear(self) -> int:
        """Nothing of what is queued is sent; how much that was."""
        with self._lock:
            unsent = self._queue.clear()
        for note, key in unsent:
            self.lost(note, key)
        return len(unsent)

    def forget(self, uid: str) -> None:
        """Nothing more will be said of this object; what is queued is still sent."""
        with self._lock:
            self._said.pop(uid, None)

    def _make_room(self) -> int:
        dropped = 0
        while len(self._queue) > self._most:
            (uid, reason), (_, key) = self._queue.drop()
            self._said.get(uid, set()).discard((reason, key))
            dropped += 1
        while len(self._said) > self._remembered:
            self._said.popitem(last=False)
        return dropped
