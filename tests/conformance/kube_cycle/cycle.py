"""One pod from filter to host, as kube-scheduler's own loop does it.

1 claims    every claim of the pod is there and stays          4 alone    a single node is taken without scores
2 nodes     there are some                                     5 scores   of as many nodes as are enough
3 filter    predicates leave some of them                      6 host     one of the best
"""

import dataclasses

import numpy as np

from slurm_bridge.cluster.columns import Mask
from slurm_bridge.cluster.rules import volumes
from slurm_bridge.families.kube_scheduler import filters, selection
from slurm_bridge.families.kube_scheduler.filters import Nominated, Predicates
from slurm_bridge.families.kube_scheduler.matrix import Prioritized
from slurm_bridge.families.kube_scheduler.priority_chain import PrioritiesFailed, Prioritizer
from slurm_bridge.families.kube_scheduler.scene import Scene
from slurm_bridge.hooks.base import Session
from tests.conformance.kube_cycle import host
from tests.conformance.kube_cycle.fiterror import FitError
from tests.conformance.kube_cycle.host import Pick

ALL = 100


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Scheduled:
    """The host, and the scores by which it was chosen: none where there was nothing to choose."""

    host: str
    prioritized: Prioritized | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Unscheduled:
    """Why there is no host although no predicate was asked in vain; `detail` is for operators."""

    message: str
    detail: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Algorithm:
    """By what rules; `pick` chooses among equally good nodes."""

    predicates: Predicates
    prioritizer: Prioritizer
    pick: Pick
    always_check_all: bool = False
    percentage_of_nodes: int = ALL


def schedule(
    scene: Scene, session: Session, by: Algorithm, nominated: Nominated | None = None
) -> Scheduled | Unscheduled | FitError:
    """Where the pod would run."""
    if missing := _claims(scene):
        return Unscheduled(message=missing)
    if not scene.columns.present.any():
        return Unscheduled(message="no nodes available to schedule pods")
    denied = filters.evaluate(scene, by.predicates, always_check_all=by.always_check_all, nominated=nominated)
    feasible = scene.columns.present & ~denied.denied
    if not feasible.any():
        return FitError(nodes=int(np.count_nonzero(scene.columns.present)), reasons=denied)
    return _choose(scene, session, by, feasible)


def _choose(scene: Scene, session: Session, by: Algorithm, feasible: Mask) -> Scheduled | Unscheduled:
    names: list[str] = scene.columns.names[feasible].tolist()
    if len(names) == 1:
        return Scheduled(host=names[0])
    enough = selection.num_feasible_nodes(by.percentage_of_nodes, int(np.count_nonzero(scene.columns.present)))
    if len(names) > enough:
        feasible = selection.some(feasible, enough, by.pick(len(feasible)))
    try:
        found = by.prioritizer.run(scene, session, scene.columns.nodes(feasible))
    except PrioritiesFailed as failed:
        return Unscheduled(message="priority failed", detail=str(failed))
    return Scheduled(host=host.select_host(host.hosts(found), by.pick), prioritized=found)


def _claims(scene: Scene) -> str | None:
    """What is wrong with the first claim that cannot be used."""
    namespace = scene.pod.metadata.namespace
    for name in volumes.claims(scene.pod):
        claim = scene.lookup.storage.claim(namespace, name)
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        if claim.metadata.deletion_timestamp is not None:
            return f'persistentvolumeclaim "{name}" is being deleted'
    return None
