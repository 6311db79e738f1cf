"""The storage: one version counter for all objects, a log of changes for watches, snapshots for paging.

Objects are kept as JSON, without kind and apiVersion: no caller can change an object that another one holds, an answer
is joined rather than encoded, one object can be served in several versions, and 50 000 of them stay small.
"""

import bisect
import collections
import dataclasses
import threading
from collections.abc import Mapping
from typing import Any

import msgspec

from slurm_bridge.sim.kube import selectors
from slurm_bridge.sim.kube.resources import Resource

Manifest = dict[str, Any]
Key = tuple[str, str]

#: A newly installed cluster has about this version; older versions are unknown.
FIRST_VERSION = 300

#: Paged lists that can be continued at the same time.
_MOST_SNAPSHOTS = 64


class Compacted(Exception):
    """The requested version is no longer known; `oldest` is."""

    def __init__(self, oldest: int) -> None:
        super().__init__(str(oldest))
        self.oldest = oldest


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StoredObject:
    """One object at one version."""

    namespace: str
    name: str
    uid: str
    version: int
    body: bytes
    labels: Mapping[str, str]
    fields: Mapping[str, str]

    @property
    def key(self) -> Key:
        return self.namespace, self.name

    def manifest(self) -> Manifest:
        """A copy that the caller may change."""
        copy: Manifest = msgspec.json.decode(self.body)
        return copy


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One change: `old` is missing for a new object; with `gone`, `new` is its last state."""

    version: int
    new: StoredObject
    old: StoredObject | None
    gone: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StoreSnapshot:
    """All objects of a resource at one version, in order of their keys."""

    version: int
    items: tuple[StoredObject, ...]


class ObjectStore:
    """All objects. `changed` is also the lock: a caller that reads and then writes holds it."""

    def __init__(self, *, history: int = 100_000) -> None:
        self.changed = threading.Condition(threading.RLock())
        self._history = history
        self._version = FIRST_VERSION
        self._reset()

    def _reset(self) -> None:
        self._floor = self._version
        self._objects: dict[str, dict[Key, StoredObject]] = collections.defaultdict(dict)
        self._events: dict[str, list[Event]] = collections.defaultdict(list)
        self._floors: dict[str, int] = {}
        self._snapshots: collections.OrderedDict[tuple[str, int], StoreSnapshot] = collections.OrderedDict()

    @property
    def version(self) -> int:
        """The version of the last change."""
        return self._version

    def get(self, resource: Resource, namespace: str, name: str) -> StoredObject | None:
        """One object."""
        return self._objects[resource.key].get((namespace, name))

    def all(self, resource: Resource, namespace: str | None = None) -> list[StoredObject]:
        """The objects of a resource, unordered."""
        with self.changed:
            everything = list(self._objects[resource.key].values())
        return everything if namespace is None else [item for item in everything if item.namespace == namespace]

    def count(self, resource: Resource) -> int:
        """The number of objects of a resource."""
        return len(self._objects[resource.key])

    def write(self, resource: Resource, manifest: Manifest) -> StoredObject:
        """Create or replace an object; its manifest gets the new resourceVersion."""
        with self.changed:
            stored = self._stamp(resource, manifest)
            old = self._objects[resource.key].get(stored.key)
            self._objects[resource.key][stored.key] = stored
            self._log(resource, Event(version=stored.version, new=stored, old=old))
            return stored

    def remove(self, resource: Resource, manifest: Manifest) -> StoredObject:
        """Remove an object; returns its last state."""
        with self.changed:
            stored = self._stamp(resource, manifest)
            old = self._objects[resource.key].pop(stored.key)
            self._log(resource, Event(version=stored.version, new=stored, old=old, gone=True))
            return stored

    def _stamp(self, resource: Resource, manifest: Manifest) -> StoredObject:
        self._version += 1
        metadata = manifest["metadata"]
        metadata["resourceVersion"] = str(self._version)
        return StoredObject(
            namespace=metadata.get("namespace", ""),
            name=metadata["name"],
            uid=metadata["uid"],
            version=self._version,
            body=msgspec.json.encode(manifest),
            labels=metadata.get("labels") or {},
            fields=selectors.fields_of(resource.key, manifest),
        )

    def _log(self, resource: Resource, event: Event) -> None:
        log = self._events[resource.key]
        log.append(event)
        if len(log) > self._history:
            cut = len(log) // 2
            self._floors[resource.key] = log[cut - 1].version
            del log[:cut]
        self.changed.notify_all()

    def floor(self, resource: Resource) -> int:
        """Changes after this version are still known."""
        return max(self._floor, self._floors.get(resource.key, 0))

    def events(self, resource: Resource, since: int) -> list[Event]:
        """The changes after that version; Compacted if they are no longer known."""
        with self.changed:
            if since < self.floor(resource):
                raise Compacted(self.floor(resource))
            log = self._events[resource.key]
            if not log or log[-1].version <= since:
                return []
            return log[bisect.bisect_right(log, since, key=lambda event: event.version) :]

    def snapshot(self, resource: Resource) -> StoreSnapshot:
        """The current objects, kept for the following pages."""
        with self.changed:
            key = resource.key, self._version
            if key not in self._snapshots:
                items = tuple(sorted(self._objects[resource.key].values(), key=lambda item: item.key))
                self._snapshots[key] = StoreSnapshot(version=self._version, items=items)
                while len(self._snapshots) > _MOST_SNAPSHOTS:
                    self._snapshots.popitem(last=False)
            self._snapshots.move_to_end(key)
            return self._snapshots[key]

    def recall(self, resource: Resource, version: int) -> StoreSnapshot:
        """The objects of an earlier snapshot; Compacted if it is no longer kept."""
        with self.changed:
            if version == self._version:
                return self.snapshot(resource)
            try:
                return self._snapshots[resource.key, version]
            except KeyError:
                raise Compacted(self._version) from None

    def compact(self) -> None:
        """Drop the history, as etcd does every few minutes."""
        with self.changed:
            self._version += 1
            self._floor = self._version
            self._events.clear()
            self._snapshots.clear()
            self.changed.notify_all()

    def wipe(self) -> None:
        """Lose everything; versions start again, below those that clients know."""
        with self.changed:
            self._version = FIRST_VERSION
            self._reset()
            self.changed.notify_all()
