"""Pods that prefer, or would rather avoid, the neighbourhood of others; the others' preferences count as well.

Nearly all pods say nothing of the kind. What is looked at are the distinct words of those that do, not all pods.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np

from slurm_bridge.cluster.columns import Mask, NodeColumns, Whole
from slurm_bridge.cluster.columns.coded import HOLE
from slurm_bridge.cluster.rules import neighbours
from slurm_bridge.families.kube_scheduler import neighbour_terms
from slurm_bridge.families.kube_scheduler.predicates import attributes
from slurm_bridge.families.kube_scheduler.priorities import numbers
from slurm_bridge.families.kube_scheduler.scene import Scene
from slurm_bridge.model.pod import Pod

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_MOST_WEIGHT = 100


#: Bytes of what running pods wish that are listened to.
MOST_SAID: Final = 256 << 10

#: What counts of what a pod says: `required` are the pods that it must have near.
_LISTS = (("podAffinity", PREFERRED), ("podAntiAffinity", PREFERRED), ("podAffinity", neighbours.REQUIRED))


def interpod(hard_weight: int) -> Callable[[Scene], Whole | None]:
    """The worth of each node's neighbourhood. `hard_weight`: that of a pod which others must have near."""
    listener = neighbour_terms.Listener(functools.lru_cache(neighbour_terms.MOST_READ)(_reader(hard_weight)), MOST_SAID)

    def rated(scene: Scene) -> Whole:
        own = tuple[neighbour_terms.Word, ...]()
        if scene.pod.spec.affinity:
            near, far = (neighbours.rows(scene.pod, kind, PREFERRED) for kind in ("podAffinity", "podAntiAffinity"))
            home = scene.pod.metadata.namespace
            # Less than nothing for a neighbourhood to avoid.
            own = (*_preferred(near, home, 1), *_preferred(far, home, -1))
        said = [(columns, counted, *_said(scene, columns, listener)) for columns, counted in scene.parts]
        if not own and not any(about for _, _, _, about in said):
            return numbers.constant(len(scene.columns), 0)
        worth = _Worth(scene.columns)
        keys = neighbour_terms.of_interest(scene, [(found, about) for _, _, found, about in said])
        for columns, counted, found, about in said:
            for wish in own:
                meant = attributes.meant(columns.pods, wish.term, scene.lookup.namespace_labels)
                worth.add(wish.term.topology_key, columns, counted, np.where(meant, wish.weight, 0))
            for key in keys:
                if key in about:
                    # By pod, how much it counts what it says.
                    by_code = about[key]
                    weights = np.zeros(len(found.values) + 1, np.int64)
                    weights[list(by_code)] = list(by_code.values())
                    worth.add(key, columns, counted, weights[found.codes])
        return worth.by_node()

    return rated


def between(maximum: int) -> Callable[[Scene, Whole, Mask], Whole]:
    """From the least of the candidates to the greatest; on the scale to 10 neither is on the other side of 0."""

    def rated(_: Scene, raw: Whole, nodes: Mask) -> Whole:
        low, high = numbers.lowest(raw, nodes), numbers.highest(raw, nodes)
        if low == high:
            return numbers.constant(len(raw), 0)
        return numbers.quotient(maximum * (raw - low), high - low)

    def rated_newer(_: Scene, raw: Whole, nodes: Mask) -> Whole:
        same = numbers.constant_of(raw) is not None or not nodes.any()
        low, high = (0, 0) if same else (int(raw[nodes].min()), int(raw[nodes].max()))
        if low == high:
            return numbers.constant(len(raw), 0)
        # In floating point, and in this order: kube-scheduler's scores depend on how its quotients are rounded.
        return np.trunc(maximum * ((raw - low) / (high - low))).astype(np.int64)

    return rated_newer if maximum >= numbers.NEWER else rated


def _said(
    scene: Scene, columns: NodeColumns, listener: neighbour_terms.Listener
) -> tuple[neighbour_terms.Found, neighbour_terms.About]:
    """What the pods there wish, and which of it means this one."""
    # Whether any pod there says anything about its neighbours: told by node, so that not all pods are looked at.
    if True not in columns.of_pods("kube wishing", lambda there: neighbour_terms.speaks(there, _LISTS)).values:
        return neighbour_terms.NOTHING, {}
    found = columns.pods.attribute("kube wishes", _wishes)
    return found, listener.about(scene, columns, found)


def _wishes(pod: Pod) -> neighbour_terms.Said | None:
    return neighbour_terms.said(pod, _LISTS)


def _reader(hard_weight: int) -> Callable[[neighbour_terms.Said], tuple[neighbour_terms.Word, ...]]:
    def read(one: neighbour_terms.Said) -> tuple[neighbour_terms.Word, ...]:
        near, far, required = neighbour_terms.rows(one)
        wishes = [*_preferred(near, one.namespace, 1), *_preferred(far, one.namespace, -1)]
        if hard_weight:
            wishes += [neighbour_terms.Word(neighbours.term(row, one.namespace), hard_weight) for row in required]
        return tuple(wishes)

    return read


class _Worth:
    """What places are worth: for each topology a sum for every value of its label, by the label's codes."""

    def __init__(self, nodes: NodeColumns) -> None:
        self._nodes = nodes
        self._sums: dict[str, Whole] = {}

    def add(self, key: str, columns: NodeColumns, counted: Mask, weights: Whole) -> None:
        """Every pod on the nodes that count adds its weight to the place where it is."""
        here, places = self._nodes.label(key), columns.label(key)
        pods = np.flatnonzero(weights)
        nodes = columns.pods.node_rows[pods]
        codes = np.where(counted[nodes], places.codes[nodes], HOLE)
        there = codes != HOLE
        worth = np.bincount(codes[there], weights=weights[pods][there], minlength=len(places.values)).astype(np.int64)
        sums = self._sums.setdefault(key, np.zeros(len(here.values) + 1, np.int64))
        if columns is self._nodes:
            sums[:-1] += worth
            return
        known = {value: code for code, value in enumerate(here.values)}
        for code in np.flatnonzero(worth).tolist():
            sums[known.get(places.values[code], -1)] += int(worth[code])

    def by_node(self) -> Whole:
        """The sum over all topologies; on a node without the label it is nowhere."""
        total = numbers.constant(len(self._nodes), 0)
        for key, sums in self._sums.items():
            here = self._nodes.label(key)
            sums[-1] = 0
            if None in here.values:
                sums[here.values.index(None)] = 0
            total = total + sums[here.codes]
        return total


def _preferred(rows: Iterable[Mapping[str, Any]], namespace: str, sign: int) -> Iterator[neighbour_terms.Word]:
    """A weight that the API server would not take counts for nothing: the others' sums are made of it, too."""
    for row in rows:
        weight, term = row.get("weight", 0), row.get("podAffinityTerm") or {}
        if isinstance(weight, int) and 0 < weight <= _MOST_WEIGHT and isinstance(term, Mapping):
            yield neighbour_terms.Word(neighbours.term(term, namespace), sign * weight)
