"""Volumes, claims and classes, as far as they decide where a pod can run."""

import msgspec

from slurm_bridge.model.meta import Object, Record
from slurm_bridge.model.pod import ResourceNeeds

#: A class of this mode binds a claim only after a scheduler chose the node of the claim's first pod.
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"

#: The provisioner of classes whose volumes an administrator makes by hand.
NO_PROVISIONER = "kubernetes.io/no-provisioner"

#: Written on a claim of such a class by the scheduler: the node of its first pod. The provisioner makes the volume for
#: that node, or takes the annotation away where it cannot.
SELECTED_NODE = "volume.kubernetes.io/selected-node"

#: Written on a volume that a scheduler, and no user, has kept for a claim.
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"

#: The access mode of claims that no two pods may use at the same time.
SOLE = "ReadWriteOncePod"

#: The default mode of volumes.
FILESYSTEM = "Filesystem"


class ClaimSpec(Record, frozen=True, kw_only=True):
    """What a claim asks for, and what it got."""

    volume_name: str = ""
    storage_class_name: str | None = None
    access_modes: tuple[str, ...] = ()
    resources: ResourceNeeds = ResourceNeeds()
    selector: dict[str, object] | None = None
    volume_mode: str = FILESYSTEM
    volume_attributes_class_name: str | None = None


class ClaimStatus(Record, frozen=True, kw_only=True):
    """Pending, Bound or Lost."""

    phase: str = "Pending"


class Claim(Object, frozen=True, kw_only=True):
    """A PersistentVolumeClaim."""

    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


class VolumeReach(Record, frozen=True, kw_only=True):
    """From which nodes a volume can be used: a node selector, as it is written in required node affinity."""

    required: dict[str, object] | None = None


class ClaimReference(Record, frozen=True, kw_only=True):
    """For which claim a volume is kept; without a uid, for the next one of that name."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class Driven(Record, frozen=True, kw_only=True):
    """A volume of a CSI driver."""

    driver: str = ""
    volume_handle: str = ""


class VolumeSpec(Record, frozen=True, kw_only=True):
    """Where a volume is, how much it holds, and what stands behind it."""

    node_affinity: VolumeReach | None = None
    storage_class_name: str = ""
    capacity: dict[str, str | int | float] = {}
    access_modes: tuple[str, ...] = ()
    volume_mode: str = FILESYSTEM
    volume_attributes_class_name: str | None = None
    claim_ref: ClaimReference | None = None
    csi: Driven | None = None


class VolumeStatus(Record, frozen=True, kw_only=True):
    """Available, Bound, Released or Failed."""

    phase: str = ""


class Volume(Object, frozen=True, kw_only=True):
    """A PersistentVolume."""

    spec: VolumeSpec = VolumeSpec()
    status: VolumeStatus = VolumeStatus()


class StorageClass(Object, frozen=True, kw_only=True):
    """How claims of a class are served; `allowed_topologies` say where, everywhere when there are none."""

    provisioner: str = ""
    allowed_topologies: tuple[dict[str, object], ...] = ()
    volume_binding_mode: str = msgspec.field(default="Immediate", name="volumeBindingMode")


class DriverLimit(Record, frozen=True, kw_only=True):
    """How many volumes of a driver a node can attach; None where the driver does not say."""

    count: int | None = None


class NodeDriver(Record, frozen=True, kw_only=True):
    """A driver that runs on a node."""

    name: str = ""
    allocatable: DriverLimit = DriverLimit()


class CsiNodeSpec(Record, frozen=True, kw_only=True):
    """The drivers of one node; the API server serves null where there are none."""

    drivers: tuple[NodeDriver, ...] | None = None


class CsiNode(Object, frozen=True, kw_only=True):
    """What drivers on a node can do; it has the node's name."""

    spec: CsiNodeSpec = CsiNodeSpec()
