"""What a hook must see beyond nodes and its own workload. Only what some configured hook declares is watched."""

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from slurm_bridge.cluster.rules import volumes
from slurm_bridge.model import kinds
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Object
from slurm_bridge.model.storage import Claim, StorageClass, Volume

T = TypeVar("T", bound=Object)


class Need(enum.Enum):
    """One kind of object of the cluster, read-only."""

    PODS = "pods"
    PVCS = "persistentvolumeclaims"
    PVS = "persistentvolumes"
    STORAGECLASSES = "storageclasses"
    SERVICES = "services"
    REPLICASETS = "replicasets"
    STATEFULSETS = "statefulsets"
    PDBS = "poddisruptionbudgets"
    NAMESPACES = "namespaces"
    CSINODES = "csinodes"
    PRIORITYCLASSES = "priorityclasses"
    DEVICECLASSES = "deviceclasses"
    RESOURCECLAIMS = "resourceclaims"
    RESOURCESLICES = "resourceslices"

    # That of an Enum is written in Python, and needs are looked up a dozen times for each workload.
    __hash__ = object.__hash__


#: Which resource has to be watched for a need; the access rules of the deployment are compared with it.
KINDS: Mapping[Need, Kind[Object]] = {
    Need.PODS: kinds.PODS,
    Need.PVCS: kinds.PERSISTENTVOLUMECLAIMS,
    Need.PVS: kinds.PERSISTENTVOLUMES,
    Need.STORAGECLASSES: kinds.STORAGECLASSES,
    Need.SERVICES: kinds.SERVICES,
    Need.REPLICASETS: kinds.REPLICASETS,
    Need.STATEFULSETS: kinds.STATEFULSETS,
    Need.PDBS: kinds.PODDISRUPTIONBUDGETS,
    Need.NAMESPACES: kinds.NAMESPACES,
    Need.CSINODES: kinds.CSINODES,
    Need.PRIORITYCLASSES: kinds.PRIORITYCLASSES,
    Need.DEVICECLASSES: kinds.DEVICECLASSES,
    Need.RESOURCECLAIMS: kinds.RESOURCECLAIMS,
    Need.RESOURCESLICES: kinds.RESOURCESLICES,
}

#: What every chain looks at where the cluster serves it. Where it is not served, or may not be listed, there is none
#: of it, and no workload waits for that.
OPTIONAL = frozenset({Need.DEVICECLASSES})


class View(Protocol):
    """The objects of one kind as last heard."""

    def get(self, namespace: str, name: str) -> Object | None:
        """The object of this name; cluster-wide kinds have the namespace ""."""

    def all(self) -> Sequence[Object]:
        """All of them, in no order; the same sequence again while nothing has changed."""

    def where(self, index: str, value: str) -> Sequence[Object]:
        """Those that an index of their kind files under this value."""

    @property
    def version(self) -> int:
        """Moves with every change: what was worked out from the objects holds for as long as it stands."""

    def __len__(self) -> int: ...


def storage(view: Callable[[Need], View | None]) -> volumes.Storage:
    """Claims, volumes and classes; where there is no view it is as if there were none of them."""

    def find(need: Need, kind: type[T], namespace: str, name: str) -> T | None:
        seen = view(need)
        found = seen.get(namespace, name) if seen is not None else None
        return found if isinstance(found, kind) else None

    def every() -> Sequence[Volume]:
        seen = view(Need.PVS)
        return [one for one in seen.all() if isinstance(one, Volume)] if seen is not None else ()

    return volumes.Storage(
        claim=lambda namespace, name: find(Need.PVCS, Claim, namespace, name),
        volume=lambda name: find(Need.PVS, Volume, "", name),
        storage_class=lambda name: find(Need.STORAGECLASSES, StorageClass, "", name),
        every_volume=every,
    )
