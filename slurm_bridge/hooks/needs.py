"""What a hook must see beyond nodes and its own workload. Only what some configured hook declares is watched."""

import enum
from collections.abc import Mapping, Sequence
from typing import Protocol

from slurm_bridge.model import kinds
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Object


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
    DEVICECLASSES = "deviceclasses"


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
    Need.DEVICECLASSES: kinds.DEVICECLASSES,
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

    @property
    def version(self) -> int:
        """Moves with every change: what was worked out from the objects holds for as long as it stands."""

    def __len__(self) -> int: ...
