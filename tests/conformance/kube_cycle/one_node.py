"""What kube-scheduler says of one node: here all nodes are looked at together."""

import dataclasses

from slurm_bridge.families.kube_scheduler import filters
from slurm_bridge.families.kube_scheduler.filters import Nominated, Predicates, Said
from slurm_bridge.families.kube_scheduler.predicates import resources
from slurm_bridge.families.kube_scheduler.scene import Scene


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """What a pod asks for, what is used on the node and what there is; cpu in milli cores, all else whole."""

    resource: str
    requested: int
    used: int
    capacity: int


def check(scene: Scene, node: str, predicates: Predicates, nominated: Nominated) -> Said:
    """Why it cannot take the pod, with those nominated to it first; when it fails then, that is enough."""
    if pods := filters.rivals(scene, nominated).get(node):
        crowded = filters.crowded(scene, node, pods)
        if crowded and (said := filters.reasons_at(crowded, node, predicates)):
            return said
    return filters.reasons_at(scene, node, predicates)


def shortages(scene: Scene, node: str, ignored: frozenset[str]) -> list[Shortage]:
    """What there is too little of, of what is free there."""
    row, found = scene.columns.row(node), list[Shortage]()
    for name, requested in resources.wanted(scene, ignored).items():
        used, capacity = int(scene.columns.used(name)[row]), int(scene.columns.allocatable(name)[row])
        if capacity - used < requested:
            found.append(Shortage(resource=name, requested=requested, used=used, capacity=capacity))
    return found
