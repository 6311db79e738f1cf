"""Progress lines: which part, what it does, how long it took; whole lines also when parts work in parallel."""

import contextlib
import threading
import time
from collections.abc import Iterator

_lock = threading.Lock()


def say(part: str, text: str) -> None:
    """One line."""
    with _lock:
        print(f"{part:<24} {text}", flush=True)


@contextlib.contextmanager
def timed(part: str, doing: str, done: str = "done") -> Iterator[None]:
    """Say what begins, and how long it took when it went well; an error tells its own story."""
    say(part, f"{doing} …")
    begin = time.monotonic()
    yield
    say(part, f"{done} ({time.monotonic() - begin:.1f} s)")
