"""NoDiskConflict and PodFitsHostPorts: what two pods on one node cannot both have. Most pods ask for none of it."""

from slurm_bridge.cluster.rules import disks, ports
from slurm_bridge.families.kube_scheduler.predicates import attributes, reasons
from slurm_bridge.families.kube_scheduler.predicates.base import PASSED, Failures, failing
from slurm_bridge.families.kube_scheduler.scene import Scene


def names_disks(scene: Scene) -> bool:
    """Whether the pod names any disk."""
    return bool(disks.of(scene.pod))


def disk_conflict(scene: Scene) -> Failures:
    """The nodes on which a pod has one of the disks in a manner that does not bear company."""
    wanted = disks.of(scene.pod)
    if not wanted:
        return PASSED
    pods = scene.columns.pods
    clashing = attributes.named_disks(pods).where(lambda used: disks.clash(wanted, used))
    return failing(pods.count(clashing) > 0, reasons.DISK_CONFLICT)


def claims_ports(scene: Scene) -> bool:
    """Whether the pod claims any port of its host."""
    return bool(ports.of(scene.pod))


def host_ports(scene: Scene) -> Failures:
    """The nodes on which a pod has one of the ports."""
    wanted = ports.of(scene.pod)
    if not wanted:
        return PASSED
    pods = scene.columns.pods
    clashing = attributes.host_ports(pods).where(lambda taken: ports.clash(wanted, taken))
    return failing(pods.count(clashing) > 0, reasons.HOST_PORTS)
