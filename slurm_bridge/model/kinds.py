"""The table of all Kubernetes resources that the bridge reads or writes: where they live, what record they become."""

import dataclasses
from collections.abc import Mapping
from typing import Generic, TypeVar

from slurm_bridge.model.budget import PodDisruptionBudget
from slurm_bridge.model.devices import DeviceClass, ResourceClaim, ResourceSlice
from slurm_bridge.model.groups import CoschedulingPodGroup, Job, JobSet, LeaderWorkerSet, PodGroup
from slurm_bridge.model.lease import Lease
from slurm_bridge.model.meta import Object, OwnerReference
from slurm_bridge.model.node import Node
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.services import ConfigMap, Controller, Service
from slurm_bridge.model.storage import Claim, CsiNode, StorageClass, Volume

T_co = TypeVar("T_co", bound=Object, covariant=True)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Kind(Generic[T_co]):
    """One resource of the API; `versions` are those that our records can read, the preferred one first.

    `custom`: it comes from a custom resource definition, and the API server does not know how its lists are keyed.
    """

    group: str
    versions: tuple[str, ...]
    plural: str
    kind: str
    record: type[T_co]
    namespaced: bool = True
    custom: bool = False

    def named_by(self, reference: OwnerReference) -> bool:
        """An owner reference is to an object of this kind, in words that the API server resolves.

        One that it cannot resolve (`batch/v9`) is no owner: nothing is ever collected because of it. Which versions a
        custom resource has, its definition says; those of the others are known.
        """
        group, _, version = reference.api_version.rpartition("/")
        return reference.kind == self.kind and group == self.group and (self.custom or version in self.versions)

    def maker_of(self, child: Object) -> OwnerReference | None:
        """The reference to an object's controller where that is of this kind."""
        reference = next((one for one in child.metadata.owner_references if one.controller), None)
        return reference if reference is not None and self.named_by(reference) else None


PODS = Kind(group="", versions=("v1",), plural="pods", kind="Pod", record=Pod)
NODES = Kind(group="", versions=("v1",), plural="nodes", kind="Node", record=Node, namespaced=False)
NAMESPACES = Kind(group="", versions=("v1",), plural="namespaces", kind="Namespace", record=Object, namespaced=False)
CONFIGMAPS = Kind(group="", versions=("v1",), plural="configmaps", kind="ConfigMap", record=ConfigMap)
EVENTS = Kind(group="events.k8s.io", versions=("v1",), plural="events", kind="Event", record=Object)
LEASES = Kind(group="coordination.k8s.io", versions=("v1",), plural="leases", kind="Lease", record=Lease)
JOBS = Kind(group="batch", versions=("v1",), plural="jobs", kind="Job", record=Job)
REPLICASETS = Kind(group="apps", versions=("v1",), plural="replicasets", kind="ReplicaSet", record=Controller)
STATEFULSETS = Kind(group="apps", versions=("v1",), plural="statefulsets", kind="StatefulSet", record=Controller)
DEPLOYMENTS = Kind(group="apps", versions=("v1",), plural="deployments", kind="Deployment", record=Object)
DAEMONSETS = Kind(group="apps", versions=("v1",), plural="daemonsets", kind="DaemonSet", record=Object)
CRONJOBS = Kind(group="batch", versions=("v1",), plural="cronjobs", kind="CronJob", record=Object)
JOBSETS = Kind(
    group="jobset.x-k8s.io", versions=("v1alpha2",), plural="jobsets", kind="JobSet", record=JobSet, custom=True
)
LEADERWORKERSETS = Kind(
    group="leaderworkerset.x-k8s.io",
    versions=("v1",),
    plural="leaderworkersets",
    kind="LeaderWorkerSet",
    record=LeaderWorkerSet,
    custom=True,
)
PODGROUPS = Kind(
    group="scheduling.k8s.io",
    versions=("v1beta1", "v1alpha3", "v1alpha2"),
    plural="podgroups",
    kind="PodGroup",
    record=PodGroup,
)
WORKLOADS = Kind(
    group="scheduling.k8s.io",
    versions=("v1beta1", "v1alpha3", "v1alpha2"),
    plural="workloads",
    kind="Workload",
    record=Object,
)
COSCHEDULING_PODGROUPS = Kind(
    group="scheduling.x-k8s.io",
    versions=("v1alpha1",),
    plural="podgroups",
    kind="PodGroup",
    record=CoschedulingPodGroup,
    custom=True,
)
SERVICES = Kind(group="", versions=("v1",), plural="services", kind="Service", record=Service)
PODDISRUPTIONBUDGETS = Kind(
    group="policy",
    versions=("v1",),
    plural="poddisruptionbudgets",
    kind="PodDisruptionBudget",
    record=PodDisruptionBudget,
)
PERSISTENTVOLUMECLAIMS = Kind(
    group="", versions=("v1",), plural="persistentvolumeclaims", kind="PersistentVolumeClaim", record=Claim
)
PERSISTENTVOLUMES = Kind(
    group="", versions=("v1",), plural="persistentvolumes", kind="PersistentVolume", record=Volume, namespaced=False
)
STORAGECLASSES = Kind(
    group="storage.k8s.io",
    versions=("v1",),
    plural="storageclasses",
    kind="StorageClass",
    record=StorageClass,
    namespaced=False,
)
CSINODES = Kind(
    group="storage.k8s.io", versions=("v1",), plural="csinodes", kind="CSINode", record=CsiNode, namespaced=False
)
PRIORITYCLASSES = Kind(
    group="scheduling.k8s.io",
    versions=("v1",),
    plural="priorityclasses",
    kind="PriorityClass",
    record=Object,
    namespaced=False,
)
DEVICECLASSES = Kind(
    group="resource.k8s.io",
    versions=("v1",),
    plural="deviceclasses",
    kind="DeviceClass",
    record=DeviceClass,
    namespaced=False,
)
RESOURCESLICES = Kind(
    group="resource.k8s.io",
    versions=("v1",),
    plural="resourceslices",
    kind="ResourceSlice",
    record=ResourceSlice,
    namespaced=False,
)
RESOURCECLAIMS = Kind(
    group="resource.k8s.io", versions=("v1",), plural="resourceclaims", kind="ResourceClaim", record=ResourceClaim
)

ALL: tuple[Kind[Object], ...] = (
    PODS,
    NODES,
    NAMESPACES,
    EVENTS,
    LEASES,
    JOBS,
    REPLICASETS,
    STATEFULSETS,
    DEPLOYMENTS,
    DAEMONSETS,
    CRONJOBS,
    JOBSETS,
    LEADERWORKERSETS,
    PODGROUPS,
    WORKLOADS,
    COSCHEDULING_PODGROUPS,
    SERVICES,
    PODDISRUPTIONBUDGETS,
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    STORAGECLASSES,
    CSINODES,
    PRIORITYCLASSES,
    DEVICECLASSES,
    RESOURCESLICES,
    RESOURCECLAIMS,
)

_BY_NAME: Mapping[tuple[str, str], Kind[Object]] = {(kind.group, kind.kind): kind for kind in ALL}


def resolves(reference: OwnerReference) -> bool:
    """Whether the API server may know such objects; True for kinds that are not in this table."""
    kind = _BY_NAME.get((reference.api_version.rpartition("/")[0], reference.kind))
    return kind is None or kind.named_by(reference)
