"""MatchInterPodAffinity: near the pods that it wants near, and far from those that one of both wants far."""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from slurm_bridge.hooks.columns import Mask, NodeColumns, Whole
from slurm_bridge.hooks.kubescheduler.predicates import attributes, matching, reasons
from slurm_bridge.hooks.kubescheduler.predicates.base import PASSED, Failures
from slurm_bridge.hooks.kubescheduler.predicates.topology import Counted, Domains, domains, placed
from slurm_bridge.hooks.kubescheduler.scene import Scene
from slurm_bridge.hooks.recent import Recent
from slurm_bridge.hooks.rules import neighbours
from slurm_bridge.hooks.rules.neighbours import Term

#: For so many kinds of pods it is remembered who does not want them near.
MOST_KINDS = 512

_known: Recent[tuple[Any, ...], tuple[tuple[frozenset[Term], ...], Mapping[str, Sequence[int]]]] = Recent(MOST_KINDS)


def neighbourly(scene: Scene) -> bool:
    """Whether anybody cares who is near: the pod itself, or one that runs and does not want this one near."""
    return bool(neighbours.required(scene.pod) or neighbours.forbidden(scene.pod) or _shunning_here(scene))


def _shunning_here(scene: Scene) -> bool:
    return any(_shunning(scene, columns) for columns, _ in scene.parts)


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
    keys = dict.fromkeys(key for columns, _ in scene.parts for key in _shunning(scene, columns))
    found = [_shunned(scene, key) for key in keys]
    return functools.reduce(np.logical_or, found) if found else None


def _shunned(scene: Scene, key: str) -> Mask:
    """The nodes in domains of this key in which some pod is that does not want this one there: one is enough."""
    cluster = scene.parts[0][0]
    names = cluster.label(key)
    taken = np.zeros(len(names.values) + 1, np.bool_)
    for columns, counted in scene.parts:
        speaking = np.flatnonzero(attributes.shunned(columns).holding(_shunning(scene, columns).get(key, ())) & counted)
        taken[domains(cluster, columns, key)[speaking]] = True
    # Whoever is in no domain has no neighbours: nodes without the label, and holes.
    nowhere = names.code(None)
    taken[[-1] if nowhere is None else [-1, nowhere]] = False
    return taken[domains(cluster, scene.columns, key)]


def _wants_itself(scene: Scene, terms: Iterable[Term]) -> bool:
    return all(one.selects(scene.pod, scene.lookup.namespace_labels) for one in terms)


def _meant(scene: Scene, terms: Iterable[Term]) -> Counted:
    """The pods that every one of these terms means."""

    def meant(columns: NodeColumns) -> Whole:
        masks = [matching.meant(columns.pods, one, scene.lookup.namespace_labels) for one in terms]
        return columns.pods.count(functools.reduce(np.logical_and, masks))

    return meant


def _shunning(scene: Scene, columns: NodeColumns) -> Mapping[str, Sequence[int]]:
    """By the keys of all domains that some running pod does not want to share with this one: the codes of who says so.

    As a rule the same few say it of the same pods, so it is remembered for as long as nobody says anything else.
    """
    said, meta = attributes.shunned(columns).values, scene.pod.metadata
    if columns is not scene.parts[0][0]:
        # What differs from the cluster is a few nodes, for a moment: it must not take the place of all others.
        return _against(scene, said)
    asked = (meta.namespace, *sorted(meta.labels.items()))
    known = _known.get(asked)
    if known is not None and known[0] is said:
        return known[1]
    found = _against(scene, said)
    # Labels of namespaces may change without any pod saying anything else.
    if not any(one.among for terms in said for one in terms):
        _known.put(asked, (said, found))
    return found


def _against(scene: Scene, said: Sequence[frozenset[Term]]) -> Mapping[str, Sequence[int]]:
    """Which of what is said means this pod."""
    found: dict[str, list[int]] = {}
    for code, terms in enumerate(said):
        for key in {one.topology_key for one in terms if one.selects(scene.pod, scene.lookup.namespace_labels)}:
            found.setdefault(key, []).append(code)
    return found


#: In kube-scheduler's order.
_RULES: tuple[tuple[Callable[[Scene], Mask | None], str], ...] = (
    (_affinity, reasons.POD_AFFINITY),
    (_anti_affinity, reasons.POD_ANTI_AFFINITY),
    (_existing, reasons.EXISTING_ANTI_AFFINITY),
)
