"""The objects of one kind as last heard: frozen, by key, written by one thread and read by all."""

import dataclasses
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from slurm_bridge import ports
from slurm_bridge.model.meta import Object

T = TypeVar("T", bound=Object)

Key = tuple[str, str]
#: The values under which an object is found, for example the node it runs on.
Index = Callable[[T], Iterable[str]]


@dataclasses.dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """What happened to one incarnation: appeared (no old), changed, or went (no new)."""

    old: T | None
    new: T | None


class Store(Generic[T]):
    """A name that comes to stand for another uid is told as two changes: one object went, another appeared."""

    def __init__(self, indexes: Mapping[str, Index[T]] | None = None) -> None:
        self._lock = threading.Lock()
        self._objects: dict[Key, T] = {}
        self._indexes = {name: _Indexed(keys) for name, keys in (indexes or {}).items()}
        self._resource_version = ""
        self._version = 0
        self._all: tuple[T, ...] | None = ()
        self._synced = threading.Event()

    @property
    def synced(self) -> bool:
        """A whole list has been taken in at least once; before that, absence means nothing."""
        return self._synced.is_set()

    @property
    def resource_version(self) -> str:
        """How far the server's history has been followed; empty when there is nothing to continue from."""
        with self._lock:
            return self._resource_version

    def wait_synced(self, seconds: float) -> bool:
        """Wait for the first whole list."""
        return self._synced.wait(seconds)

    def get(self, namespace: str, name: str) -> T | None:
        """The object of this name."""
        with self._lock:
            return self._objects.get((namespace, name))

    def where(self, index: str, value: str) -> tuple[T, ...]:
        """The objects that the index files under this value."""
        with self._lock:
            keys = self._indexes[index].files.get(value, ())
            return tuple(self._objects[key] for key in keys)

    def all(self) -> Sequence[T]:
        """Everything; the same sequence again while nothing has changed."""
        with self._lock:
            if self._all is None:
                self._all = tuple(self._objects.values())
            return self._all

    @property
    def version(self) -> int:
        """Moves with every change of an object that is stored."""
        with self._lock:
            return self._version

    def __len__(self) -> int:
        with self._lock:
            return len(self._objects)

    def take(self, change: ports.Put[T] | ports.Gone[T] | ports.Bookmark) -> tuple[Change[T], ...]:
        """Follow one step of a watch."""
        with self._lock:
            match change:
                case ports.Put(new):
                    made = tuple(self._put(new))
                    self._resource_version = new.metadata.resource_version
                case ports.Gone(last):
                    made = tuple(self._drop(last.key, last))
                    self._resource_version = last.metadata.resource_version
                case ports.Bookmark(version):
                    made = ()
                    self._resource_version = version
        return made

    def replace(self, listing: ports.Listing[T]) -> tuple[Change[T], ...]:
        """Become equal to a list; what it does not hold has gone, however we missed it.

        What it holds and cannot be read stays as it was.
        """
        with self._lock:
            listed = {item.key for item in listing.items} | listing.unreadable
            nameless = any(not name for _, name in listing.unreadable)
            gone = [key for key in self._objects if key not in listed] if not nameless else []
            changes = [change for key in gone for change in self._drop(key, None)]
            changes += [change for item in listing.items for change in self._put(item)]
            self._resource_version = listing.resource_version
        return tuple(changes)

    def mark_synced(self) -> None:
        """The first list and all that follows from it has been dealt with."""
        self._synced.set()

    def expire(self) -> None:
        """The server no longer knows the history that we followed; what is stored stays until the next list."""
        with self._lock:
            self._resource_version = ""

    def _put(self, new: T) -> Iterator[Change[T]]:
        old = self._objects.get(new.key)
        if old is not None and old.uid == new.uid:
            if old.metadata.resource_version != new.metadata.resource_version:
                self._file(old, new)
                yield Change(old, new)
            return
        if old is not None:
            yield from self._drop(new.key, None)
        self._file(None, new)
        yield Change(None, new)

    def _drop(self, key: Key, last: T | None) -> Iterator[Change[T]]:
        """Forget an object; handlers get its last shape when the server told it."""
        old = self._objects.get(key)
        if old is not None:
            self._file(old, None)
            yield Change(last if last is not None and last.uid == old.uid else old, None)

    def _file(self, old: T | None, new: T | None) -> None:
        """The only place that changes what is stored, so that all ways of finding it stay equal."""
        self._version += 1
        self._all = None
        if old is not None:
            del self._objects[old.key]
        if new is not None:
            self._objects[new.key] = new
        for index in self._indexes.values():
            index.refile(old, new)


class _Indexed(Generic[T]):
    """Keys of objects under the values that a function finds in them."""

    def __init__(self, values: Index[T]) -> None:
        self._values = values
        self.files: dict[str, dict[Key, None]] = {}

    def refile(self, old: T | None, new: T | None) -> None:
        before = set(self._values(old)) if old is not None else set()
        after = set(self._values(new)) if new is not None else set()
        if old is not None:
            for value in before - after:
                filed = self.files[value]
                del filed[old.key]
                if not filed:
                    del self.files[value]
        if new is not None:
            for value in after - before:
                self.files.setdefault(value, {})[new.key] = None
