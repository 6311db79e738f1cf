"""NoDiskConflict: no disk that the pod names is used on the node in a manner that does not bear company."""

from slurm_bridge.cluster.rules import disks
from slurm_bridge.families.kube_scheduler.predicates import attributes, reasons
from slurm_bridge.families.kube_scheduler.predicates.base import PASSED, Failures, failing
from slurm_bridge.families.kube_scheduler.scene import Scene


def names(scene: Scene) -> bool:
    """Whether the pod names any disk; most do not."""
    return bool(disks.of(scene.pod))


def disk_conflict(scene: Scene) -> Failures:
    """The nodes on which a pod has one of the disks."""
    wanted = disks.of(scene.pod)
    if not wanted:
        return PASSED
    pods = scene.columns.pods
    clashing = attributes.named_disks(pods).where(lambda used: disks.clash(wanted, used))
    return failing(pods.count(clashing) > 0, reasons.DISK_CONFLICT)
