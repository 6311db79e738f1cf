"""Pieces of work on a few threads at a time, all of them done when it returns."""

import collections
import threading
from collections.abc import Callable, Iterable

Piece = Callable[[], None]


def run(pieces: Iterable[Piece], parallelism: int) -> None:
    """Each piece once; a piece keeps its own result and its own failure.

    The threads end with the work. A piece that hangs blocks only its caller, and not the end of the process.
    """
    waiting = collections.deque(pieces)
    threads = [
        threading.Thread(target=_work, args=(waiting,), name=f"priorities-{number}", daemon=True)
        for number in range(min(parallelism, len(waiting)) - 1)
    ]
    for thread in threads:
        thread.start()
    _work(waiting)
    for thread in threads:
        thread.join()


def _work(waiting: collections.deque[Piece]) -> None:
    while True:
        try:
            piece = waiting.popleft()
        except IndexError:
            return
        piece()
