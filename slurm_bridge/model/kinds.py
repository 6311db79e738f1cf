"""The table of all Kubernetes resources that the bridge reads or writes: where they live, what record they become."""

import dataclasses
from typing import Generic, TypeVar

from slurm_bridge.model.groups import CoschedulingPodGroup, Job, JobSet, LeaderWorkerSet, PodGroup
from slurm_bridge.model.lease import Lease
from slurm_bridge.model.meta import Object
from slurm_bridge.model.node import Node
from slurm_bridge.model.pod import Pod

T_co = TypeVar("T_co", bound=Object, covariant=True)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Kind(Generic[T_co]):
    """One resource of the API; `versions` are those that our records can read, the preferred one first."""

    group: str
    versions: tuple[str, ...]
    plural: str
    kind: str
    record: type[T_co]
    namespaced: bool = True


PODS = Kind(group="", versions=("v1",), plural="pods", kind="Pod", record=Pod)
NODES = Kind(group="", versions=("v1",), plural="nodes", kind="Node", record=Node, namespaced=False)
NAMESPACES = Kind(group="", versions=("v1",), plural="namespaces", kind="Namespace", record=Object, namespaced=False)
EVENTS = Kind(group="events.k8s.io", versions=("v1",), plural="events", kind="Event", record=Object)
LEASES = Kind(group="coordination.k8s.io", versions=("v1",), plural="leases", kind="Lease", record=Lease)
JOBS = Kind(group="batch", versions=("v1",), plural="jobs", kind="Job", record=Job)
REPLICASETS = Kind(group="apps", versions=("v1",), plural="replicasets", kind="ReplicaSet", record=Object)
STATEFULSETS = Kind(group="apps", versions=("v1",), plural="statefulsets", kind="StatefulSet", record=Object)
JOBSETS = Kind(group="jobset.x-k8s.io", versions=("v1alpha2",), plural="jobsets", kind="JobSet", record=JobSet)
LEADERWORKERSETS = Kind(
    group="leaderworkerset.x-k8s.io",
    versions=("v1",),
    plural="leaderworkersets",
    kind="LeaderWorkerSet",
    record=LeaderWorkerSet,
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
    JOBSETS,
    LEADERWORKERSETS,
    PODGROUPS,
    WORKLOADS,
    COSCHEDULING_PODGROUPS,
)
