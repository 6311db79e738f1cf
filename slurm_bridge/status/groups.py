"""What is said on the object that groups pods: once, when all of its members have nodes.

    Kubernetes' own PodGroup      condition PodGroupScheduled=True with reason Scheduled, as kube-scheduler writes it
    the coscheduling plugin's     phase Scheduling: its word for "placed, and not all of them running yet"

What the object says already is left alone, whoever said it: a restart, a lost answer or a second call writes nothing.
"""

import dataclasses
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

from slurm_bridge import errors, ports
from slurm_bridge.model import kinds, texts
from slurm_bridge.model.groups import CoschedulingPodGroup, PodGroup
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Manifest, Object
from slurm_bridge.model.workload import Root, Workload
from slurm_bridge.runtime.turns import Turns
from slurm_bridge.status import conditions
from slurm_bridge.status.pace import Pace

PLACED: Final = "PodGroupScheduled"

#: Phases in which the coscheduling plugin's group has not been placed.
_UNPLACED: Final = ("", "Pending", "Unknown")

T = TypeVar("T", bound=Object)


class Known(Protocol):
    """Objects as last heard, from memory."""

    def find(self, kind: Kind[T], namespace: str, name: str, /) -> T | None: ...


class Nothing:
    """Implements Known where nobody listens."""

    def find(self, kind: Kind[T], namespace: str, name: str, /) -> T | None:
        """Never anything."""
        del kind, namespace, name
        return None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How one kind of group says that its members have nodes."""

    kind: Kind[Any]
    says: Callable[[Any], bool]
    status: Callable[[Any, str, float], Manifest]


def _condition(group: PodGroup, message: str, wall: float) -> Manifest:
    line: Manifest = {"type": PLACED, "status": "True", "reason": "Scheduled", "message": texts.plain(message)}
    observed = {"observedGeneration": group.metadata.generation} if group.metadata.generation else {}
    return {"conditions": [{**line, **observed, "lastTransitionTime": conditions.stamp(wall)}]}


def _says(group: PodGroup) -> bool:
    return any(line.type == PLACED and line.status == "True" for line in group.status.conditions)


def _phase(_group: CoschedulingPodGroup, _message: str, _wall: float) -> Manifest:
    return {"phase": "Scheduling"}


#: Both are called PodGroup; which of them a workload means, the uid tells.
STYLES: Final = (
    Style(kind=kinds.PODGROUPS, says=_says, status=_condition),
    Style(
        kind=kinds.COSCHEDULING_PODGROUPS,
        says=lambda group: group.status.phase not in _UNPLACED,
        status=_phase,
    ),
)

#: What may stand behind a workload, and get its events.
OBJECTS: Final[tuple[Kind[Any], ...]] = (
    *(style.kind for style in STYLES),
    kinds.JOBS,
    kinds.JOBSETS,
    kinds.LEADERWORKERSETS,
)


@dataclasses.dataclass(frozen=True, slots=True)
class Placed:
    """A group whose members all have nodes; `doubted`: what memory says of it is not enough any more."""

    root: Root
    message: str
    doubted: bool = False


class Groups:
    """Filled from any thread, emptied by one."""

    def __init__(self, cluster: ports.Cluster, known: Known, pace: Pace, *, most: int) -> None:
        self._cluster, self._known, self._pace = cluster, known, pace
        self._most = most
        self._lock = threading.Lock()
        self._queue: Turns[str, Placed] = Turns(lambda placed: placed.root.namespace)
        self._seen: OrderedDict[str, None] = OrderedDict()

    def __len__(self) -> int:
        with self._lock:
            return len(self._queue)

    def put(self, workload: Workload) -> None:
        """All its members have nodes; what was asked for before is not asked for again."""
        root = workload.root
        if root.kind != kinds.PODGROUPS.kind:
            return
        with self._lock:
            if root.key in self._seen:
                return
            self._seen[root.key] = None
            while len(self._seen) > self._most:
                self._seen.popitem(last=False)
            self._queue.put(root.key, Placed(root, f"{len(workload.pods)} pods have their nodes"))

    def pop(self) -> Placed | None:
        """The next one."""
        with self._lock:
            return self._queue.pop()

    def write(self, placed: Placed, *, wall: float) -> None:
        """Say it, unless the object does already or is gone; what could not be written now is tried again."""
        try:
            self._pace.worked("group", self._write(placed, wall))
        except errors.Conflict:
            # It changed since we heard of it: the next look is at the object itself.
            self._again(placed)
            self._pace.worked("group", "failed")
        except errors.NotFound:
            self._pace.worked("group", "stale")
        except (errors.Invalid, errors.NotAuthorized) as error:
            # The answer would be the same again, and no pod has to wait for it.
            self._pace.failed("group", (placed.root.namespace, placed.root.name), error)
        except errors.BridgeError as error:
            self._again(placed)
            self._pace.failed("group", (placed.root.namespace, placed.root.name), error)

    def about(self, root: Root, note: ports.Note) -> ports.Note | None:
        """The same news about the object behind this workload, None where nobody has heard of it."""
        uid = _uid(root)
        for kind in OBJECTS:
            found = self._recall(kind, root) if kind.kind == root.kind else None
            if found is not None and found.uid == uid:
                version = f"{kind.group}/{self._version(kind)}"
                namespace, name = found.key
                return dataclasses.replace(
                    note, kind=kind.kind, api_version=version, namespace=namespace, name=name, uid=uid
                )
        return None

    def _again(self, placed: Placed) -> None:
        with self._lock:
            self._queue.put(placed.root.key, dataclasses.replace(placed, doubted=True))

    def _write(self, placed: Placed, wall: float) -> str:
        found = self._find(placed)
        if found is None:
            return "stale"
        style, group = found
        if style.says(group):
            return "same"
        changes: Manifest = {"status": style.status(group, placed.message, wall)}
        if group.metadata.resource_version:
            changes["metadata"] = {"resourceVersion": group.metadata.resource_version}
        self._cluster.patch(style.kind, group, changes, subresource="status")
        return "ok"

    def _find(self, placed: Placed) -> tuple[Style, Any] | None:
        look = self._look if placed.doubted else self._recall
        for style in STYLES:
            found = look(style.kind, placed.root)
            if found is not None and found.uid == placed.root.uid:
                return style, found
        return None if placed.doubted else self._find(dataclasses.replace(placed, doubted=True))

    def _recall(self, kind: Kind[Any], root: Root) -> Object | None:
        return self._known.find(kind, root.namespace, root.name)

    def _look(self, kind: Kind[Any], root: Root) -> Object | None:
        if self._cluster.served(kind) is None:
            return None
        return self._cluster.get(kind, root.namespace, root.name)

    def _version(self, kind: Kind[Any]) -> str:
        """Whoever has heard of the object has found out its version: this asks nobody."""
        try:
            return self._cluster.served(kind) or kind.versions[0]
        except errors.BridgeError:
            return kind.versions[0]


def _uid(root: Root) -> str:
    """Of the object: a workload's own uid tells groups and restarts apart behind a colon."""
    return root.uid.partition(":")[0]
