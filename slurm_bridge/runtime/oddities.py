"""What a server sent and nobody can read: counted each time, said once in a while for each thing.

Users can write odd things into objects, and each of them is met again with every list. A log line for each thing and
hour is enough to find it; the counter shows how much there is of it.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from loguru import logger

#: The same thing is said again after so many seconds.
_AGAIN: Final = 3600.0
#: So many things are remembered as said: whoever makes more of them does not fill the memory.
_MOST: Final = 1024
#: So many lines in a minute, whatever there is to say.
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
        #: When each thing was said.
        self._said: OrderedDict[tuple[str, str, str], float] = OrderedDict()
        self._began, self._lines = float("-inf"), 0

    def counted_by(self, count: Count) -> None:
        """Count them there from now on."""
        self._count = count

    def met(self, server: str, kind: str, name: str, why: str) -> None:
        """This thing of this kind cannot be read."""
        self._count(server, kind)
        if self._worth_a_line((server, kind, name)):
            logger.warning("{}: {} {} cannot be read and is left out: {}", server, kind, name or "of no name", why)

    def _worth_a_line(self, thing: tuple[str, str, str]) -> bool:
        with self._lock:
            now = self._now()
            if now - self._began >= _MINUTE:
                self._began, self._lines = now, 0
            if now - self._said.get(thing, float("-inf")) < _AGAIN or self._lines >= _LINES:
                return False
            self._said.pop(thing, None)
            self._said[thing] = now
            if len(self._said) > _MOST:
                self._said.popitem(last=False)
            self._lines += 1
            return True
