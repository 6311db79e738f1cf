"""What is used by one at a time and taken again and again: of several the one that was used last comes first."""

import threading
from collections import deque
from collections.abc import Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class Idle(Generic[T]):
    """May be used by any thread. A thread that finds something takes no lock, which is nearly always so."""

    def __init__(self, every: Iterable[T]) -> None:
        self._free = deque(every)
        self._changed = threading.Condition()
        #: How many wait. A thread counts itself before it looks, and a giving thread looks here after it gave.
        self._waiting = 0

    def take(self, seconds: float) -> T | None:
        """One for the caller alone, waited for if there is none; None after so many seconds."""
        one = self._taken()
        return self._waited(seconds) if one is None else one

    def give(self, one: T) -> None:
        """It is not used any more."""
        self._free.append(one)
        if self._waiting:
            with self._changed:
                self._changed.notify()

    def _taken(self) -> T | None:
        try:
            return self._free.pop()
        except IndexError:
            return None

    def _waited(self, seconds: float) -> T | None:
        found: list[T] = []

        def taken() -> bool:
            one = self._taken()
            found.extend([] if one is None else [one])
            return bool(found)

        with self._changed:
            self._waiting += 1
            try:
                self._changed.wait_for(taken, seconds)
            finally:
                self._waiting -= 1
        return found[0] if found else None
