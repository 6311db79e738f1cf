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
    """What has to be attached for a claim; None where no driver attaches it, or nothing is known of it yet."""
    claim = storage.claim(*key)
    volume = storage.volume(claim.spec.volume_name) if claim is not None and claim.spec.volume_name else None
    if volume is None or volume.spec.csi is None:
        return None
    return Attachment(volume.spec.csi.driver, volume.spec.csi.volume_handle)
