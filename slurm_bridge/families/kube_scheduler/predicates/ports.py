"""PodFitsHostPorts: no pod on the node has a port of the host that the pod claims."""

from slurm_bridge.cluster.rules import ports
from slurm_bridge.families.kube_scheduler.predicates import attributes, reasons
from slurm_bridge.families.kube_scheduler.predicates.base import PASSED, Failures, failing
from slurm_bridge.families.kube_scheduler.scene import Scene


def claims(scene: Scene) -> bool:
    """Whether the pod claims any; most do not."""
    return bool(ports.of(scene.pod))


def host_ports(scene: Scene) -> Failures:
    """The nodes on which a pod has one of the ports."""
    wanted = ports.of(scene.pod)
    if not wanted:
        return PASSED
    pods = scene.columns.pods
    clashing = attributes.host_ports(pods).where(lambda taken: ports.clash(wanted, taken))
    return failing(pods.count(clashing) > 0, reasons.HOST_PORTS)
