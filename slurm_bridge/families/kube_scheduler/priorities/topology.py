"""Topology spread constraints that are wishes (`ScheduleAnyway`): the emptier a node's places are the better.

Constraints over few large places count for more than those over many small ones, by the logarithm of their number.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_bridge.cluster import selection
from slurm_bridge.cluster.columns import Mask, Whole
from slurm_bridge.cluster.rules import taints
from slurm_bridge.cluster.rules.spread import SpreadConstraint
from slurm_bridge.families.kube_scheduler.predicates import attributes
from slurm_bridge.families.kube_scheduler.priorities.service_spread import staying
from slurm_bridge.families.kube_scheduler.scene import Scene
from slurm_bridge.model.node import Node, Taint

#: Every node is a place of its own.
HOST = "kubernetes.io/hostname"


def topology_spread(maximum: int) -> Callable[[Scene, Mask], Whole | None]:
    """How little of a pod's own kind there is around each node; a pod without such wishes is not rated."""

    def rated(scene: Scene, nodes: Mask) -> Whole | None:
        wishes = scene.spread(hard=False)
        if not wishes:
            return None
        # Nodes that have a place in each of the topologies; the others are worth nothing, and count for nothing.
        labels = (scene.columns.label(wish.topology_key) for wish in wishes if not wish.everywhere)
        placed = functools.reduce(
            np.logical_and, (one.where(lambda value: value is not None) for one in labels), scene.columns.present
        )
        burden = np.zeros(len(scene.columns))
        for wish in wishes:
            burden += _burden(scene, wish, placed, nodes & placed)
        return _inverted(np.floor(burden + 0.5).astype(np.int64), nodes & placed, maximum)

    return rated


def _burden(scene: Scene, wish: SpreadConstraint, placed: Mask, candidates: Mask) -> NDArray[np.float64]:
    """How many pods are in each node's place, weighed by how many places there are among the candidates."""
    counts, places = _counts(scene, wish), scene.columns.label(wish.topology_key)
    if wish.topology_key == HOST:
        there: NDArray[Any] = counts
        number = int(np.count_nonzero(candidates))
    else:
        counted = placed & _included(scene, wish)
        sums = np.bincount(places.codes[counted], weights=counts[counted], minlength=len(places.values) + 1)
        there, number = sums[places.codes], len(np.unique(places.codes[candidates]))
    weighed: NDArray[np.float64] = there * math.log(number + 2) + (wish.max_skew - 1)
    return np.where(places.where(lambda value: value is not None), weighed, 0.0) if wish.everywhere else weighed


def _counts(scene: Scene, wish: SpreadConstraint) -> Whole:
    """Pods that the constraint means, by node."""
    pods, home = scene.columns.pods, scene.pod.metadata.namespace
    if not wish.selector:
        return np.zeros(len(scene.columns), np.int64)
    mask = attributes.in_namespaces(pods, lambda namespace: namespace == home) & selection.all_met(pods, wish.selector)
    return pods.count(mask & staying(pods))


def _included(scene: Scene, wish: SpreadConstraint) -> Mask:
    """Nodes whose pods count: those that the pod itself might use, as far as the constraint wants that."""
    mask = scene.columns.present
    if wish.honor_affinity:
        mask = mask & selection.accepting(scene.columns, scene.pod)
    if wish.honor_taints:
        tolerations = scene.pod.spec.tolerations
        hard = scene.columns.of_node("kube hard taints", _hard)
        mask = mask & hard.where(lambda found: taints.untolerated(found, tolerations) is None)
    return mask


def _inverted(burden: Whole, nodes: Mask, maximum: int) -> Whole:
    """The least burden gets the most; a node without a place gets nothing."""
    if not nodes.any():
        return np.zeros(len(burden), np.int64)
    low, high = int(burden[nodes].min()), int(burden[nodes].max())
    shares = maximum * (high + low - burden) // high if high else np.full(len(burden), maximum, dtype=np.int64)
    return np.where(nodes, shares, 0).astype(np.int64)


def _hard(node: Node) -> tuple[Taint, ...]:
    return tuple(taint for taint in node.spec.taints if taint.effect in taints.HARD)
