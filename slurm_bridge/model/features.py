"""Features of pods that only some hooks honour, and the demand of one pod for one of them."""

import dataclasses
import enum


class Feature(enum.Enum):
    """A hook declares by `honours` which of these it honours. A pod waits that asks for one no hook honours."""

    TOPOLOGY_SPREAD = "topology spread constraints that must hold"
    POD_AFFINITY = "required pod affinity"
    POD_ANTI_AFFINITY = "required pod anti-affinity"
    HOST_PORTS = "ports of the host"
    SOLE_CLAIMS = "claims that one pod alone may use"
    WAITING_CLAIMS = "claims that are bound only after a node was chosen"
    RESOURCE_CLAIMS = "devices by resource claim"
    CLASS_RESOURCES = "devices by the extended resource of a DeviceClass"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FeatureDemand:
    """One field of one pod that asks for a feature, named for the pod's owner.

    `claim`: only where this PersistentVolumeClaim (namespace and name) is for one pod alone, or waits for a node.
    `resource`: only where a DeviceClass stands behind this extended resource, and no node has any of it to give.
    """

    feature: Feature
    subject: str
    field: str
    claim: tuple[str, str] | None = None
    resource: str = ""
