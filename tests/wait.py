"""Waiting for what real servers do in their own time."""

import threading
import time
from collections.abc import Callable
from typing import Final

#: Seconds for what takes a moment, on a machine that is busy with something else.
PATIENCE: Final = 20.0


def until(condition: Callable[[], object], what: str, seconds: float = 60.0, *, every: float = 0.1) -> None:
    """Wait until it holds, or say what did not come; what is expensive to ask is asked less often."""
    end, pause = time.monotonic() + seconds, threading.Event()
    while not condition():
        assert time.monotonic() < end, f"no {what} within {seconds} s"
        pause.wait(every)


def next_second() -> None:
    """What is created after this is newer for every client: API servers write whole seconds."""
    now = int(time.time())
    until(lambda: int(time.time()) > now, "next second", every=0.01)
