"""EvenPodsSpread: no domain gets too many more of some pods than the emptiest one has."""

import functools

import numpy as np

from slurm_bridge.cluster import selection
from slurm_bridge.cluster.columns import Mask, NodeColumns, Whole
from slurm_bridge.cluster.rules import taints
from slurm_bridge.cluster.rules.spread import SpreadConstraint
from slurm_bridge.families.kube_scheduler.predicates import attributes, reasons
from slurm_bridge.families.kube_scheduler.predicates.base import PASSED, Failures
from slurm_bridge.families.kube_scheduler.predicates.topology import Domains, placed
from slurm_bridge.families.kube_scheduler.scene import Scene
from slurm_bridge.model.pod import Pod


def constrained(scene: Scene) -> bool:
    """Whether the pod says how evenly it has to lie."""
    return bool(scene.spread(hard=True))


def even_pods_spread(scene: Scene) -> Failures:
    """Constraints in their order: the first that a node does not meet gives the reason."""
    constraints = scene.spread(hard=True)
    if not constraints:
        return PASSED
    found: list[tuple[Mask, str]] = []
    left = scene.columns.present
    for one in constraints:
        outside = left & ~placed(scene.columns, one.topology_key)
        skewed = left & ~outside & _skewed(scene, one, constraints)
        named = ((outside, reasons.SPREAD_LABEL), (skewed, reasons.SPREAD))
        found += [(mask, reason) for mask, reason in named if mask.any()]
        left = left & ~outside & ~skewed
    return tuple(found)


def _skewed(scene: Scene, one: SpreadConstraint, all_of_them: tuple[SpreadConstraint, ...]) -> Mask:
    """Where there would be too many with this pod."""

    def among(columns: NodeColumns) -> Mask:
        # Nodes that are in a domain of every constraint, and that the pod could come to as far as this one cares.
        pod, tolerations = scene.pod, scene.pod.spec.tolerations
        masks = [placed(columns, each.topology_key) for each in all_of_them]
        if one.honor_affinity:
            masks.append(selection.accepting(columns, pod))
        if one.honor_taints:
            masks.append(attributes.taints(columns).where(lambda found: taints.untolerated(found, tolerations) is None))
        return functools.reduce(np.logical_and, masks)

    found = Domains.of(scene, one.topology_key, functools.partial(_counted, scene.pod, one), among)
    fewest = found.fewest if found.number >= one.minimum_domains else 0
    itself = 1 if one.selects(scene.pod.metadata.labels) else 0
    return found.at(scene.columns) + itself - fewest > one.max_skew


def _counted(pod: Pod, one: SpreadConstraint, columns: NodeColumns) -> Whole:
    """Pods of the same namespace that are meant, and not on their way out."""
    if not one.selector:
        return np.zeros(len(columns), np.int64)
    pods = columns.pods
    here = attributes.in_namespaces(pods, lambda namespace: namespace == pod.metadata.namespace)
    leaving = attributes.terminating(pods).where(bool)
    return pods.count(here & ~leaving & selection.all_met(pods, one.selector))
