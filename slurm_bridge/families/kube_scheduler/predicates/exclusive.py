"""NoDiskConflict and PodFitsHostPorts: what two pods cannot both have. Most pods ask for none of it."""

import numpy as np

from slurm_bridge.cluster.rules import attachments, disks, ports
from slurm_bridge.cluster.rules.attachments import ClaimKey
from slurm_bridge.families.kube_scheduler.predicates import attributes, reasons
from slurm_bridge.families.kube_scheduler.predicates.base import PASSED, Failures, failing
from slurm_bridge.families.kube_scheduler.scene import Scene
from slurm_bridge.model.storage import SOLE


def names_disks(scene: Scene) -> bool:
    """Whether the pod names any disk, or a claim that it may not share."""
    return bool(disks.of(scene.pod) or _sole(scene))


def disk_conflict(scene: Scene) -> Failures:
    """The nodes on which a pod has one of the disks in a manner that does not bear company.

    A claim with ReadWriteOncePod that any pod uses keeps the pod from every node.
    """
    return (*_named(scene), *_claimed(scene))


def _sole(scene: Scene) -> frozenset[ClaimKey]:
    """The claims of the pod that one pod alone may use."""
    found = {key: scene.lookup.storage.claim(*key) for key in attachments.claims(scene.pod)}
    return frozenset(key for key, claim in found.items() if claim is not None and SOLE in claim.spec.access_modes)


def _claimed(scene: Scene) -> Failures:
    sole = _sole(scene)
    if not sole:
        return PASSED
    for columns, counts in scene.parts:
        pods = columns.pods
        using = pods.present & attributes.claims(pods).where(lambda used: not sole.isdisjoint(used))
        found = (pods.pods[row] for row in np.flatnonzero(using).tolist() if counts[pods.node_rows[row]])
        if any(pod is not None and pod.uid != scene.pod.uid for pod in found):
            return failing(scene.columns.present, reasons.SOLE_CLAIM)
    return PASSED


def _named(scene: Scene) -> Failures:
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
