"""What is still to be done, by key: namespaces take turns, and within a namespace the oldest is the next."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Turns(Generic[K, V]):
    """Not thread-safe: its user has a lock. `namespace` is called with a value; it stays the same for a key."""

    def __init__(self, namespace: Callable[[V], str]) -> None:
        self._namespace = namespace
        self._whose: dict[K, str] = {}
        self._lines: OrderedDict[str, OrderedDict[K, V]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._whose)

    def __contains__(self, key: K) -> bool:
        return key in self._whose

    def get(self, key: K) -> V | None:
        """What is to be done under this key."""
        whose = self._whose.get(key)
        return None if whose is None else self._lines[whose][key]

    def put(self, key: K, value: V) -> None:
        """The latest under a key counts, in the place of the one before."""
        whose = self._whose.setdefault(key, self._namespace(value))
        self._lines.setdefault(whose, OrderedDict())[key] = value

    def heads(self) -> Iterator[V]:
        """The next value of each namespace."""
        return (next(iter(line.values())) for line in self._lines.values())

    def pop(self, ripe: Callable[[V], bool] = lambda _value: True) -> V | None:
        """The next value of the first namespace whose next value is `ripe`; that namespace is last then."""
        for whose, line in self._lines.items():
            if ripe(next(iter(line.values()))):
                _, value = self._take(whose)
                return value
        return None

    def drop(self) -> tuple[K, V]:
        """Remove and return the oldest of the namespace that has most; not to be called when empty."""
        return self._take(max(self._lines, key=lambda whose: len(self._lines[whose])))

    def clear(self) -> list[V]:
        """Remove and return all values."""
        left = [value for line in self._lines.values() for value in line.values()]
        self._whose.clear()
        self._lines.clear()
        return left

    def discard(self, key: K) -> None:
        """Remove the value under this key."""
        whose = self._whose.pop(key, None)
        if whose is not None:
            line = self._lines[whose]
            del line[key]
            if not line:
                del self._lines[whose]

    def _take(self, whose: str) -> tuple[K, V]:
        line = self._lines[whose]
        key, value = line.popitem(last=False)
        del self._whose[key]
        if line:
            self._lines.move_to_end(whose)
        else:
            del self._lines[whose]
        return key, value
