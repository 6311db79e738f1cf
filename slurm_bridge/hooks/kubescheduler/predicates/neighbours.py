"""MatchInterPodAffinity: near the pods that it wants near, and far from those that one of both wants far."""

import functools
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from slurm_bridge.hooks.columns import Mask, NodeColumns, Whole
from slurm_bridge.hooks.kubescheduler.predicates import attributes, matching, reasons
from slurm_bridge.hooks.kubescheduler.predicates.base import PASSED, Failures
from slurm_bridge.hooks.kubescheduler.predicates.topology import Counted, Domains, placed
from slurm_bridge.hooks.kubescheduler.scene import Scene
from slurm_bridge.hooks.rules import neighbours
from slurm_bridge.hooks.rules.neighbours import Term


def neighbourly(scene: Scene) -> bool:
    """Whether anybody cares who is near: the pod itself, or one that runs and does not want this one near."""
    return bool(neighbours.required(scene.pod) or neighbours.forbidden(scene.pod) or _shunning(scene))


def inter_pod_affinity(scene: Scene) -> Failures:
    """The first of the three rules that says no gives the reason."""
    found: list[tuple[Mask, str]] = []
    left = scene.columns.present
    for rule, reason in _RULES:
        failing = rule(scene)
        if failing is not None and (now := failing & left).any():
            found.append((now, reason))
            left = left & ~now
    return tuple(found) or PASSED


def _affinity(scene: Scene) -> Mask | None:
    """A pod counts that all terms mean. The first of a series that wants itself near may come to any domain."""
    terms, columns = neighbours.required(scene.pod), scene.columns
    if not terms:
        return None
    found = [Domains.of(scene, one.topology_key, _meant(scene, terms)) for one in terms]
    if not any(one.pods.any() for one in found) and _wants_itself(scene, terms):
        near = [placed(columns, one.topology_key) for one in terms]
    else:
        near = [one.at(columns) > 0 for one in found]
    return ~functools.reduce(np.logical_and, near)


def _anti_affinity(scene: Scene) -> Mask | None:
    """One pod that any of the terms means is one too many."""
    found = [
        Domains.of(scene, one.topology_key, _meant(scene, (one,))).at(scene.columns) > 0
        for one in neighbours.forbidden(scene.pod)
    ]
    return functools.reduce(np.logical_or, found) if found else None


def _existing(scene: Scene) -> Mask | None:
    """Pods that run and do not want this one near."""
    found = [Domains.of(scene, key, _of_terms(scene, key)).at(scene.columns) > 0 for key in _shunning(scene)]
    return functools.reduce(np.logical_or, found) if found else None


def _wants_itself(scene: Scene, terms: Iterable[Term]) -> bool:
    return all(one.selects(scene.pod, scene.lookup.namespace_labels) for one in terms)


def _meant(scene: Scene, terms: Iterable[Term]) -> Counted:
    """The pods that every one of these terms means."""

    def meant(columns: NodeColumns) -> Whole:
        masks = [matching.meant(columns.pods, one, scene.lookup.namespace_labels) for one in terms]
        return columns.pods.count(functools.reduce(np.logical_and, masks))

    return meant


def _shunning(scene: Scene) -> frozenset[str]:
    """The keys of all domains that some running pod does not want to share with this one."""
    said = (terms for columns, _ in scene.parts for terms in attributes.shunned(columns).values)
    return frozenset(one.topology_key for terms in said for one in _against(scene, terms))


def _of_terms(scene: Scene, key: str) -> Counted:
    """Whether a node has pods that do not want this one in their domain of that key: one is enough."""
    return lambda columns: attributes.shunned(columns).whole(
        lambda terms: any(one.topology_key == key for one in _against(scene, terms))
    )


def _against(scene: Scene, terms: Iterable[Term]) -> Iterator[Term]:
    return (one for one in terms if one.selects(scene.pod, scene.lookup.namespace_labels))


#: In kube-scheduler's order.
_RULES: tuple[tuple[Callable[[Scene], Mask | None], str], ...] = (
    (_affinity, reasons.POD_AFFINITY),
    (_anti_affinity, reasons.POD_ANTI_AFFINITY),
    (_existing, reasons.EXISTING_ANTI_AFFINITY),
)
