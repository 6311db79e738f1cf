"""Several calls at once, for a caller that goes on when all of them are over."""

import concurrent.futures
import threading
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Each(Protocol):
    """What came of each, in their order. An exception is raised once nothing is under way any more."""

    def __call__(self, do: Callable[[T], R], things: Sequence[T], /) -> list[R]: ...


def in_turn(do: Callable[[T], R], things: Sequence[T], /) -> list[R]:
    """One after the other, in the caller's thread."""
    return [do(thing) for thing in things]


class _Work(Generic[T, R]):
    """Things to be done, taken one by one by the next free thread, until one of them fails."""

    def __init__(self, do: Callable[[T], R], things: Sequence[T], closed: threading.Event) -> None:
        self._do, self._things, self._closed = do, things, closed
        self._lock = threading.Lock()
        self._next = 0
        self.done: dict[int, R] = {}

    def take_part(self) -> None:
        """One hand's share."""
        number = self._take()
        while number is not None:
            try:
                self.done[number] = self._do(self._things[number])
            finally:
                if number not in self.done:
                    with self._lock:
                        self._next = len(self._things)
            number = self._take()

    def _take(self) -> int | None:
        with self._lock:
            self._next += 1
            return self._next - 1 if self._next <= len(self._things) and not self._closed.is_set() else None


class Hands:
    """So many threads, shared by all callers; each of them begins what comes next in its order."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._closed = threading.Event()
        self._pool = concurrent.futures.ThreadPoolExecutor(number, thread_name_prefix="hand")

    def each(self, do: Callable[[T], R], things: Sequence[T], /) -> list[R]:
        """Implements Each. After an exception nothing more is begun; after the end of all hands, the rest is left."""
        if self._closed.is_set():
            return []
        work = _Work(do, things, self._closed)
        shares = [self._pool.submit(work.take_part) for _ in things[: self._number]]
        concurrent.futures.wait(shares)
        for share in shares:
            share.result()
        return [work.done[number] for number in sorted(work.done)]

    def close(self) -> None:
        """Nothing new is begun."""
        self._closed.set()
        self._pool.shutdown(wait=False)
