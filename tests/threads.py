"""What the system can refuse: threads."""

import contextlib
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def refused_to(starter: threading.Thread) -> Iterator[None]:
    """Threads that this one starts; servers of other cases, which live in the same process, start theirs."""
    start = threading.Thread.start

    def started(thread: threading.Thread) -> None:
        if threading.current_thread() is starter:
            raise RuntimeError("can't start new thread")
        start(thread)

    threading.Thread.start = started  # type: ignore[method-assign]
    try:
        yield
    finally:
        threading.Thread.start = start  # type: ignore[method-assign]
