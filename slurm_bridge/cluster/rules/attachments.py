"""Volumes that a driver attaches to nodes: each counts once on a node, however many pods there use it."""

from collections.abc import Mapping
from typing import NamedTuple

from slurm_bridge.cluster.rules import volumes
from slurm_bridge.model.pod import Pod

#: So a kubelet says on its node how many volumes of a driver it can attach; newer ones say it in a CSINode.
LIMIT = "attachable-volumes-csi-"

#: The drivers that have taken over the kinds of volumes that once had limits of their own.
TAKEN_OVER: Mapping[str, str] = {
    "MaxEBSVolumeCount": "ebs.csi.aws.com",
    "MaxGCEPDVolumeCount": "pd.csi.storage.gke.io",
    "MaxAzureDiskVolumeCount": "disk.csi.azure.com",
    "MaxCinderVolumeCount": "cinder.csi.openstack.org",
}

ClaimKey = tuple[str, str]


class Attachment(NamedTuple):
    """One volume of one driver."""

    driver: str
    handle: str


def claims(pod: Pod) -> frozenset[ClaimKey]:
    """The claims that a pod uses, by namespace and name."""
    if not volumes.claimed(pod):
        return frozenset()
    return frozenset((pod.metadata.namespace, name) for name in volumes.claims(pod))


def attachment(key: ClaimKey, storage: volumes.Storage) -> Attachment | None:
    """What has to be attached for a claim; None where no driver attaches it, or nothing is known of it yet.

    A volume that is still to be made is attached by the driver that makes it.
    """
    claim = storage.claim(*key)
    if claim is None:
        return None
    volume = storage.volume(claim.spec.volume_name) if claim.spec.volume_name else None
    if volume is not None:
        csi = volume.spec.csi
        return Attachment(csi.driver, csi.volume_handle) if csi is not None else None
    of = storage.storage_class(claim.spec.storage_class_name or "")
    return Attachment(of.provisioner, f"of claim {'/'.join(key)}") if of is not None and of.provisioner else None
