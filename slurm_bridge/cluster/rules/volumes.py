"""Claims of a pod: whether they can be used at all, and from which nodes.

A claim of a class that waits for its first consumer keeps no pod from a job: it is bound when Slurm has named the node.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping

from slurm_bridge.model.pod import Pod, PodTerm
from slurm_bridge.model.storage import WAIT_FOR_FIRST_CONSUMER, Claim, StorageClass, Volume
from slurm_bridge.model.verdict import Wait

REASON = "VolumeNotReady"


@dataclasses.dataclass(frozen=True, slots=True)
class Storage:
    """Where to find what claims speak of: by namespace and name, or by name alone."""

    claim: Callable[[str, str], Claim | None]
    volume: Callable[[str], Volume | None]
    storage_class: Callable[[str], StorageClass | None]
    every_volume: Callable[[], Iterable[Volume]] = tuple


NO_STORAGE = Storage(claim=lambda _namespace, _name: None, volume=lambda _name: None, storage_class=lambda _name: None)


def claimed(pod: Pod) -> bool:
    """Whether a pod uses any claim; most use none, and every pod is asked."""
    volumes = pod.spec.volumes
    return bool(volumes) and any("persistentVolumeClaim" in volume or "ephemeral" in volume for volume in volumes)


def claims(pod: Pod) -> Iterator[str]:
    """The names of the claims that a pod uses, those included that are made for it alone."""
    for volume in pod.spec.volumes:
        used = volume.get("persistentVolumeClaim")
        if isinstance(used, Mapping):
            yield str(used.get("claimName", ""))
        elif "ephemeral" in volume:
            yield _own(pod, volume)


def foreign(pod: Pod, claim: Claim) -> str:
    """Why a claim cannot be used that has the name of one that is made for this pod, and was not; "" for others."""
    name, owners = claim.metadata.name, claim.metadata.owner_references
    if not any("ephemeral" in volume and _own(pod, volume) == name for volume in pod.spec.volumes):
        return ""
    if any(owner.controller and owner.uid == pod.uid for owner in owners):
        return ""
    said = f"PersistentVolumeClaim {'/'.join(claim.key)} was not created for pod {'/'.join(pod.key)}"
    return f"{said}, which has an ephemeral volume whose claim needs this name; delete the claim, or rename the volume"


def _own(pod: Pod, volume: PodTerm) -> str:
    """The claim that a controller makes for a volume of one pod."""
    return f"{pod.metadata.name}-{volume.get('name', '')}"


def waits(claim: Claim, storage: Storage) -> bool:
    """It has no volume, and gets one only after a node was chosen."""
    of = storage.storage_class(claim.spec.storage_class_name or "")
    late = of is not None and of.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
    return late and not claim.spec.volume_name and claim.status.phase == "Pending"


def bound(pod: Pod, storage: Storage) -> tuple[Volume, ...] | Wait:
    """The volumes behind the claims of a pod, those left out that wait for a node; or why the pod has to wait."""
    found = []
    for name in claims(pod):
        volume = _bound(pod, name, storage)
        if isinstance(volume, Wait):
            return volume
        if volume is not None:
            found.append(volume)
    return tuple(found)


def _bound(pod: Pod, name: str, storage: Storage) -> Volume | Wait | None:
    namespace = pod.metadata.namespace
    claim = storage.claim(namespace, name)
    if claim is None:
        return _wait(f"PersistentVolumeClaim {namespace}/{name} does not exist")
    leaving = claim.metadata.deletion_timestamp is not None
    wrong = f"PersistentVolumeClaim {namespace}/{name} is being deleted" if leaving else foreign(pod, claim)
    if wrong:
        return _wait(wrong)
    if waits(claim, storage):
        return None
    if claim.status.phase != "Bound" or not claim.spec.volume_name:
        return _wait(_unbound(claim, storage))
    volume = storage.volume(claim.spec.volume_name)
    if volume is None:
        gone = f"PersistentVolumeClaim {namespace}/{name} is bound to volume {claim.spec.volume_name}"
        return _wait(f"{gone}, which does not exist")
    return volume


def _unbound(claim: Claim, storage: Storage) -> str:
    name, of = f"PersistentVolumeClaim {claim.metadata.namespace}/{claim.metadata.name}", claim.spec.storage_class_name
    if of and not claim.spec.volume_name and storage.storage_class(of) is None:
        return f"{name} is not bound, and its StorageClass {of} does not exist"
    return f"{name} is not bound (it is {claim.status.phase})"


def _wait(message: str) -> Wait:
    return Wait(reason=REASON, message=message)
