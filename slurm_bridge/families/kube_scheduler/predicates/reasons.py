"""The words in which predicates say why a node cannot take a pod, with the codes that kube-scheduler has for them."""

from collections.abc import Mapping

NODE_SELECTOR = "node(s) didn't match node selector"
HOST_NAME = "node(s) didn't match the requested hostname"
HOST_PORTS = "node(s) didn't have free ports for the requested pod ports"
TAINTS = "node(s) had taints that the pod didn't tolerate"
NOT_READY = "node(s) were not ready"
NETWORK_UNAVAILABLE = "node(s) had unavailable network"
UNSCHEDULABLE = "node(s) were unschedulable"
MEMORY_PRESSURE = "node(s) had memory pressure"
DISK_PRESSURE = "node(s) had disk pressure"
PID_PRESSURE = "node(s) had pid pressure"
UNKNOWN_CONDITION = "node(s) had unknown conditions"
LABEL_PRESENCE = "node(s) didn't have the requested labels"
SERVICE_AFFINITY = "node(s) didn't match service affinity"
DISK_CONFLICT = "node(s) had no available disk"
VOLUME_ZONE = "node(s) had no available volume zone"
VOLUME_NODE = "node(s) had volume node affinity conflict"
VOLUME_BIND = "node(s) didn't find available persistent volumes to bind"
UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
VOLUME_COUNT = "node(s) exceed max volume count"
POD_AFFINITY_EITHER = "node(s) didn't match pod affinity/anti-affinity"
POD_AFFINITY = "node(s) didn't match pod affinity rules"
POD_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"
SPREAD = "node(s) didn't match pod topology spread constraints"
SPREAD_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"

#: Failures by their code; those of resources are made by `insufficient`.
CODES: Mapping[str, str] = {
    "NodeSelectorNotMatch": NODE_SELECTOR,
    "PodNotMatchHostName": HOST_NAME,
    "PodNotFitsHostPorts": HOST_PORTS,
    "TaintsTolerationsNotMatch": TAINTS,
    "NodeNotReady": NOT_READY,
    "NodeNetworkUnavailable": NETWORK_UNAVAILABLE,
    "NodeUnschedulable": UNSCHEDULABLE,
    "NodeUnderMemoryPressure": MEMORY_PRESSURE,
    "NodeUnderDiskPressure": DISK_PRESSURE,
    "NodeUnderPIDPressure": PID_PRESSURE,
    "NodeUnknownCondition": UNKNOWN_CONDITION,
    "NodeLabelPresenceViolated": LABEL_PRESENCE,
    "ServiceAffinityViolated": SERVICE_AFFINITY,
    "DiskConflict": DISK_CONFLICT,
    "VolumeZoneConflict": VOLUME_ZONE,
    "VolumeNodeConflict": VOLUME_NODE,
    "VolumeBindConflict": VOLUME_BIND,
    "VolumeUnbound": UNBOUND,
    "MaxVolumeCountExceeded": VOLUME_COUNT,
    "PodAffinityNotMatch": POD_AFFINITY_EITHER,
    "PodAffinityRulesNotMatch": POD_AFFINITY,
    "PodAntiAffinityRulesNotMatch": POD_ANTI_AFFINITY,
    "ExistingPodsAntiAffinityRulesNotMatch": EXISTING_ANTI_AFFINITY,
    "EvenPodsSpreadNotMatch": SPREAD,
    "EvenPodsSpreadLabelMissing": SPREAD_LABEL,
}


def insufficient(resource: str) -> str:
    """Too little of a resource; the number of pods is one of them."""
    return f"Insufficient {resource}"
