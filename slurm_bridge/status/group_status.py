"""Writes once into the status of the object behind a gang that all members have nodes; finds the object for events.

How a kind of object says it is the announcement of its kind. A status that says it already is left alone, so a
restart, a lost answer or a second call writes nothing.
"""

import dataclasses
import threading
from collections.abc import MutableMapping
from typing import Any, Protocol, TypeVar

from slurm_bridge import errors, ports
from slurm_bridge.model.announcement import Announcement, Announcements
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Manifest, Object
from slurm_bridge.model.workload import Root, Workload
from slurm_bridge.runtime import caches
from slurm_bridge.runtime.turns import Turns
from slurm_bridge.status.write_backoff import WriteBackoff

T = TypeVar("T", bound=Object)


class GroupObjects(Protocol):
    """Objects as last delivered by watches."""

    def find(self, kind: Kind[T], namespace: str, name: str, /) -> T | None: ...


class NoGroupObjects:
    """Implements Objects where nothing is watched."""

    def find(self, kind: Kind[T], namespace: str, name: str, /) -> T | None:
        """Never any object."""
        del kind, namespace, name
        return None


@dataclasses.dataclass(frozen=True, slots=True)
class PlacedGroup:
    """A group whose members all have nodes; `doubted`: its object has to be read from the server."""

    root: Root
    message: str
    doubted: bool = False


class GroupStatusWriter:
    """Filled from any thread, emptied by one thread."""

    def __init__(
        self,
        cluster: ports.Cluster,
        known: GroupObjects,
        backoff: WriteBackoff,
        announcements: Announcements,
        *,
        most: int,
    ) -> None:
        self._cluster, self._known, self._backoff = cluster, known, backoff
        self._announcements = announcements
        self._announced = frozenset(kind.kind for kind, how in announcements.items() if how is not None)
        self._lock = threading.Lock()
        self._queue: Turns[str, PlacedGroup] = Turns(lambda placed: placed.root.namespace)
        self._seen: MutableMapping[str, None] = caches.bounded(most=most)

    def __len__(self) -> int:
        with self._lock:
            return len(self._queue)

    def put(self, workload: Workload) -> None:
        """Queues a workload whose members all have nodes, once."""
        root = workload.root
        if root.kind not in self._announced:
            return
        with self._lock:
            if root.key in self._seen:
                return
            self._seen[root.key] = None
            self._queue.put(root.key, PlacedGroup(root, f"{len(workload.pods)} pods have their nodes"))

    def pop(self) -> PlacedGroup | None:
        """The next group."""
        with self._lock:
            return self._queue.pop()

    def write(self, placed: PlacedGroup, *, wall: float) -> None:
        """Writes it, unless the object says so already or is gone; what cannot be written now is queued again."""
        try:
            self._backoff.worked("group", self._write(placed, wall))
        except errors.Conflict:
            # The object has changed since it was delivered: the next try reads it from the server.
            self._again(placed)
            self._backoff.worked("group", "failed")
        except errors.NotFound:
            self._backoff.worked("group", "stale")
        except (errors.Invalid, errors.NotAuthorized) as error:
            # The answer would be the same again, and no pod waits for it.
            self._backoff.failed("group", (placed.root.namespace, placed.root.name), error)
        except errors.BridgeError as error:
            self._again(placed)
            self._backoff.failed("group", (placed.root.namespace, placed.root.name), error)

    def about(self, root: Root, note: ports.Note) -> ports.Note | None:
        """The same event about the object behind this workload, None where the object is not known."""
        # A workload's own uid tells groups and restarts apart behind a colon.
        uid = root.uid.partition(":")[0]
        for kind in self._announcements:
            found = self._known.find(kind, root.namespace, root.name) if kind.kind == root.kind else None
            if found is not None and found.uid == uid:
                try:
                    # It was found out when the object came to be known, so no call is made.
                    version = self._cluster.served(kind) or kind.versions[0]
                except errors.BridgeError:
                    version = kind.versions[0]
                namespace, name = found.key
                api_version = f"{kind.group}/{version}"
                return dataclasses.replace(
                    note, kind=kind.kind, api_version=api_version, namespace=namespace, name=name, uid=uid
                )
        return None

    def _again(self, placed: PlacedGroup) -> None:
        with self._lock:
            self._queue.put(placed.root.key, dataclasses.replace(placed, doubted=True))

    def _write(self, placed: PlacedGroup, wall: float) -> str:
        found = self._find(placed)
        if found is None:
            return "stale"
        kind, announcement, group = found
        if announcement.says(group):
            return "same"
        changes: Manifest = {"status": announcement.status(group, placed.message, wall)}
        if group.metadata.resource_version:
            changes["metadata"] = {"resourceVersion": group.metadata.resource_version}
        self._cluster.patch(kind, group, changes, subresource="status")
        return "ok"

    def _find(self, placed: PlacedGroup) -> tuple[Kind[Any], Announcement, Any] | None:
        root = placed.root
        for kind, announcement in self._announcements.items():
            if announcement is None or kind.kind != root.kind:
                continue
            if not placed.doubted:
                found = self._known.find(kind, root.namespace, root.name)
            elif self._cluster.served(kind) is None:
                continue
            else:
                found = self._cluster.get(kind, root.namespace, root.name)
            if found is not None and found.uid == root.uid:
                return kind, announcement, found
        return None if placed.doubted else self._find(dataclasses.replace(placed, doubted=True))
