"""The words in which predicates say why a node cannot take a pod; they are kube-scheduler's."""

NODE_SELECTOR = "node(s) didn't match node selector"
ENFORCED_AFFINITY = "node(s) didn't match scheduler-enforced node affinity"
HOST_NAME = "node(s) didn't match the requested hostname"
HOST_PORTS = "node(s) didn't have free ports for the requested pod ports"
TAINTS = "node(s) had taints that the pod didn't tolerate"
NOT_READY = "node(s) were not ready"
NETWORK_UNAVAILABLE = "node(s) had unavailable network"
UNSCHEDULABLE = "node(s) were unschedulable"
MEMORY_PRESSURE = "node(s) had memory pressure"
DISK_PRESSURE = "node(s) had disk pressure"
PID_PRESSURE = "node(s) had pid pressure"
LABEL_PRESENCE = "node(s) didn't have the requested labels"
SERVICE_AFFINITY = "node(s) didn't match service affinity"
DISK_CONFLICT = "node(s) had no available disk"
SOLE_CLAIM = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
VOLUME_ZONE = "node(s) had no available volume zone"
VOLUME_NODE = "node(s) didn't match PersistentVolume's node affinity"
VOLUME_BIND = "node(s) didn't find available persistent volumes to bind"
UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
VOLUME_COUNT = "node(s) exceed max volume count"
POD_AFFINITY = "node(s) didn't match pod affinity rules"
POD_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"
SPREAD = "node(s) didn't match pod topology spread constraints"
SPREAD_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"


def insufficient(resource: str) -> str:
    """Too little of a resource; of places for pods there are too few."""
    return "Too many pods" if resource == "pods" else f"Insufficient {resource}"
