"""Several calls at once, for somebody who goes on when all of them are over."""

import concurrent.futures
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Each(Protocol):
    """What came of each, in their order. The first exception is raised once nothing is under way any more."""

    def __call__(self, do: Callable[[T], R], things: Sequence[T], /) -> list[R]: ...


def in_turn(do: Callable[[T], R], things: Sequence[T], /) -> list[R]:
    """One after the other, by whoever asks."""
    return [do(thing) for thing in things]


class Hands:
    """So many threads, shared by all who ask; each of them begins what comes next in its order."""

    def __init__(self, number: int) -> None:
        self._pool = concurrent.futures.ThreadPoolExecutor(number, thread_name_prefix="hand")

    def each(self, do: Callable[[T], R], things: Sequence[T], /) -> list[R]:
        """Implements Each. After an exception nothing more is begun."""
        begun = [self._pool.submit(do, thing) for thing in things]
        try:
            concurrent.futures.wait(begun, return_when=concurrent.futures.FIRST_EXCEPTION)
        finally:
            for one in begun:
                one.cancel()
            concurrent.futures.wait(begun)
        # Begun in order: before the one that failed none was left out.
        return [one.result() for one in begun]

    def close(self) -> None:
        """Nothing new is begun."""
        self._pool.shutdown(wait=False, cancel_futures=True)
