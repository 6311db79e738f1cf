"""Things that a server sent and that cannot be read: each is counted every time, and logged once an hour.

Users can write such things into objects, and each of them comes again with every list. One log line an hour is enough
to find a thing; the counter shows how many there are.
"""

import threading
from collections.abc import Callable, MutableMapping
from typing import Final

from loguru import logger

from slurm_bridge.runtime import caches

#: The same thing is logged again after so many seconds.
_AGAIN: Final = 3600.0
#: So many logged things are remembered, so that they do not fill the memory.
_MOST: Final = 1024
#: The most lines in a minute.
_LINES: Final = 20
_MINUTE: Final = 60.0

#: Called with the server and the kind of the thing.
Count = Callable[[str, str], None]


class Oddities:
    """Safe to use from any thread."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._count: Count = lambda _server, _kind: None
        self._lock = threading.Lock()
        #: What was logged within the last hour.
        self._said: MutableMapping[tuple[str, str, str], None] = caches.expiring(most=_MOST, seconds=_AGAIN, now=now)
        self._began, self._lines = float("-inf"), 0

    def counted_by(self, count: Count) -> None:
        """Call `count` for each of them from now on."""
        self._count = count

    def met(self, server: str, kind: str, name: str, why: str) -> None:
        """Count a thing of this kind that cannot be read, and log it when that is due."""
        self._count(server, kind)
        thing = (server, kind, name)
        with self._lock:
            now = self._now()
            if now - self._began >= _MINUTE:
                self._began, self._lines = now, 0
            if thing in self._said or self._lines >= _LINES:
                return
            self._said[thing] = None
            self._lines += 1
        logger.warning("{}: {} {} cannot be read and is left out: {}", server, kind, name or "of no name", why)
