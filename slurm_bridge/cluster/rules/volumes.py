"""Claims of a pod: whether they can be used at all yet, and from which nodes.

A claim of a class that waits for its first consumer is bound only after a scheduler has named a node on it. Slurm
names nodes by allocating them, when it is too late to find that no volume can be made there: such a pod waits.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping

from slurm_bridge.model.pod import Pod
from slurm_bridge.model.storage import WAIT_FOR_FIRST_CONSUMER, Claim, StorageClass, Volume
from slurm_bridge.model.verdict import Wait

REASON = "VolumeNotReady"


@dataclasses.dataclass(frozen=True, slots=True)
class Storage:
    """Where to find what claims speak of: by namespace and name, or by name alone."""

    claim: Callable[[str, str], Claim | None]
    volume: Callable[[str], Volume | None]
    storage_class: Callable[[str], StorageClass | None]


def claimed(pod: Pod) -> bool:
    """Whether a pod uses any claim; most use none, and every pod is asked."""
    return any("persistentVolumeClaim" in volume or "ephemeral" in volume for volume in pod.spec.volumes)


def claims(pod: Pod) -> Iterator[str]:
    """The names of the claims that a pod uses, those included that are made for it alone."""
    for volume in pod.spec.volumes:
        used = volume.get("persistentVolumeClaim")
        if isinstance(used, Mapping):
            yield str(used.get("claimName", ""))
        elif "ephemeral" in volume:
            yield f"{pod.metadata.name}-{volume.get('name', '')}"


def bound(pod: Pod, storage: Storage) -> tuple[Volume, ...] | Wait:
    """The volumes behind all claims of a pod, or why it has to wait for them."""
    found = []
    for name in claims(pod):
        volume = _bound(pod.metadata.namespace, name, storage)
        if isinstance(volume, Wait):
            return volume
        found.append(volume)
    return tuple(found)


def _bound(namespace: str, name: str, storage: Storage) -> Volume | Wait:
    claim = storage.claim(namespace, name)
    if claim is None:
        return _wait(f"PersistentVolumeClaim {namespace}/{name} does not exist")
    if claim.metadata.deletion_timestamp is not None:
        return _wait(f"PersistentVolumeClaim {namespace}/{name} is being deleted")
    if claim.status.phase != "Bound" or not claim.spec.volume_name:
        return _wait(_unbound(claim, storage))
    volume = storage.volume(claim.spec.volume_name)
    if volume is None:
        gone = f"PersistentVolumeClaim {namespace}/{name} is bound to volume {claim.spec.volume_name}"
        return _wait(f"{gone}, which does not exist")
    return volume


def _unbound(claim: Claim, storage: Storage) -> str:
    name = f"PersistentVolumeClaim {claim.metadata.namespace}/{claim.metadata.name}"
    of = storage.storage_class(claim.spec.storage_class_name or "")
    if of is not None and of.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
        return (
            f"{name} is not bound, and its class {of.metadata.name} waits for a scheduler to choose the node first, "
            "which Slurm does only when it starts the job; use a class that binds immediately, or bind the claim"
        )
    return f"{name} is not bound (it is {claim.status.phase})"


def _wait(message: str) -> Wait:
    return Wait(reason=REASON, message=message)
