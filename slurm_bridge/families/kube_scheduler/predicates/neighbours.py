"""MatchInterPodAffinity: near the pods that it wants near, and far from those that one of both wants far."""

import functools
from collections.abc import Callable, Iterable
from typing import Final

import numpy as np

from slurm_bridge.cluster.columns import Mask, NodeColumns, Whole
from slurm_bridge.cluster.rules import neighbours
from slurm_bridge.cluster.rules.neighbours import Term
from slurm_bridge.families.kube_scheduler import neighbour_terms
from slurm_bridge.families.kube_scheduler.predicates import attributes, reasons
from slurm_bridge.families.kube_scheduler.predicates.base import PASSED, Failures
from slurm_bridge.families.kube_scheduler.predicates.topology import Counted, Domains, domains, placed
from slurm_bridge.families.kube_scheduler.scene import Scene

#: Bytes of what running pods do not want near that are listened to: what must hold is worth more than a wish.
MOST_SAID: Final = 512 << 10

#: Nodes with those that count, what the pods there say, and what of it means the pod in question.
_Part = tuple[NodeColumns, Mask, neighbour_terms.Found, neighbour_terms.About]


def _read(one: neighbour_terms.Said) -> tuple[neighbour_terms.Word, ...]:
    return tuple(
        neighbour_terms.Word(neighbours.term(row, one.namespace)) for some in neighbour_terms.rows(one) for row in some
    )


_listener = neighbour_terms.Listener(functools.lru_cache(neighbour_terms.MOST_READ)(_read), MOST_SAID)


def neighbourly(scene: Scene) -> bool:
    """Whether neighbours count: for the pod itself, or for a running one that does not want this one near."""
    if neighbours.required(scene.pod) or neighbours.forbidden(scene.pod):
        return True
    return any(_shunning(scene, columns)[1] for columns, _ in scene.parts)


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
    wants_itself = all(one.selects(scene.pod, scene.lookup.namespace_labels) for one in terms)
    if wants_itself and not any(one.pods.any() for one in found):
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
    said = [(columns, counted, *_shunning(scene, columns)) for columns, counted in scene.parts]
    keys = neighbour_terms.of_interest(scene, [(found, about) for _, _, found, about in said])
    masks = [_shunned(scene, key, said) for key in keys]
    return functools.reduce(np.logical_or, masks) if masks else None


def _shunned(scene: Scene, key: str, said: Iterable[_Part]) -> Mask:
    """The nodes in domains of this key in which some pod is that does not want this one there: one is enough."""
    cluster = scene.parts[0][0]
    names = cluster.label(key)
    taken = np.zeros(len(names.values) + 1, np.bool_)
    for columns, counted, found, about in said:
        if key in about:
            nodes = columns.pods.node_rows[found.holding(list(about[key]))]
            taken[domains(cluster, columns, key)[nodes[counted[nodes]]]] = True
    # A node in no domain has no neighbours: those without the label, and holes.
    nowhere = names.code(None)
    taken[[-1] if nowhere is None else [-1, nowhere]] = False
    return taken[domains(cluster, scene.columns, key)]


def _meant(scene: Scene, terms: Iterable[Term]) -> Counted:
    """The pods that every one of these terms means."""

    def meant(columns: NodeColumns) -> Whole:
        masks = [attributes.meant(columns.pods, one, scene.lookup.namespace_labels) for one in terms]
        return columns.pods.count(functools.reduce(np.logical_and, masks))

    return meant


def _shunning(scene: Scene, columns: NodeColumns) -> tuple[neighbour_terms.Found, neighbour_terms.About]:
    """The anti-affinity terms of the pods there, and those of them that mean this pod."""
    if True not in attributes.shunning(columns).values:
        return neighbour_terms.NOTHING, {}
    found = attributes.shunned(columns.pods)
    return found, _listener.about(scene, columns, found)


#: In kube-scheduler's order.
_RULES: tuple[tuple[Callable[[Scene], Mask | None], str], ...] = (
    (_affinity, reasons.POD_AFFINITY),
    (_anti_affinity, reasons.POD_ANTI_AFFINITY),
    (_existing, reasons.EXISTING_ANTI_AFFINITY),
)
