"""Volumes, claims and classes, as far as they decide where a pod can run."""

import msgspec

from slurm_bridge.model.meta import Object, Record

#: A class of this mode binds a claim only after a scheduler chose the node of the claim's first pod.
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"


class ClaimSpec(Record, frozen=True, kw_only=True):
    """What a claim asks for, and what it got."""

    volume_name: str = ""
    storage_class_name: str | None = None


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


class VolumeSpec(Record, frozen=True, kw_only=True):
    """Where a volume is."""

    node_affinity: VolumeReach | None = None


class Volume(Object, frozen=True, kw_only=True):
    """A PersistentVolume."""

    spec: VolumeSpec = VolumeSpec()


class StorageClass(Object, frozen=True, kw_only=True):
    """How claims of a class are served."""

    provisioner: str = ""
    volume_binding_mode: str = msgspec.field(default="Immediate", name="volumeBindingMode")
