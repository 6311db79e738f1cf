"""Pods that prefer, or would rather avoid, the neighbourhood of others; the others' preferences count as well.

Nearly all pods say nothing of the kind. What is looked at are the distinct words of those that do, not all pods.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from slurm_bridge.hooks.columns import Mask, NodeColumns, Whole
from slurm_bridge.hooks.kubescheduler.predicates import matching
from slurm_bridge.hooks.kubescheduler.priorities import numbers
from slurm_bridge.hooks.kubescheduler.scene import Scene
from slurm_bridge.hooks.rules import neighbours
from slurm_bridge.hooks.rules.neighbours import Term
from slurm_bridge.model.pod import Pod

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_MOST_WEIGHT = 100


@dataclasses.dataclass(frozen=True, slots=True)
class Wish:
    """A term, and how much it counts; less than nothing for a neighbourhood to avoid."""

    weight: int
    term: Term


@dataclasses.dataclass(frozen=True, slots=True)
class Wishes:
    """All that a pod says about its neighbourhood; `required` are the pods that it must have near."""

    preferred: tuple[Wish, ...] = ()
    required: tuple[Term, ...] = ()


SILENT = Wishes()


def interpod(hard_weight: int) -> Callable[[Scene], Whole | None]:
    """The worth of each node's neighbourhood. `hard_weight`: that of a pod which others must have near."""

    def rated(scene: Scene) -> Whole:
        own = wishes_of(scene.pod).preferred
        if not own and not any(_wish(columns) for columns, _ in scene.parts):
            return numbers.constant(len(scene.columns), 0)
        worth = _Worth(scene.columns)
        for columns, counted in scene.parts:
            for wish, pods in _pairs(scene, columns, own, hard_weight):
                worth.add(wish, columns, pods & counted[columns.pods.node_rows])
        return worth.by_node()

    return rated


def wishes_of(pod: Pod) -> Wishes:
    """What a pod prefers, and what it requires."""
    if not pod.spec.affinity:
        return SILENT
    preferred = (*_preferred(pod, "podAffinity", 1), *_preferred(pod, "podAntiAffinity", -1))
    return Wishes(preferred=preferred, required=neighbours.required(pod))


def between(maximum: int) -> Callable[[Scene, Whole, Mask], Whole]:
    """From the least of the candidates, or 0, to the greatest, or 0."""

    def rated(_: Scene, raw: Whole, nodes: Mask) -> Whole:
        low, high = numbers.lowest(raw, nodes), numbers.highest(raw, nodes)
        if low == high:
            return numbers.constant(len(raw), 0)
        return numbers.quotient(maximum * (raw - low), high - low)

    return rated


def _pairs(scene: Scene, columns: NodeColumns, own: tuple[Wish, ...], hard_weight: int) -> Iterator[tuple[Wish, Mask]]:
    """Each wish that connects this pod with some of those there, and which ones these are."""
    for wish in own:
        yield wish, matching.meant(columns.pods, wish.term, scene.lookup.namespace_labels)
    said = columns.pods.attribute("kube wishes", wishes_of)
    for code, wishes in enumerate(said.values):
        if wishes is SILENT or wishes == SILENT:
            continue
        towards = [wish for wish in _counted(wishes, hard_weight) if _means(scene, wish.term)]
        if towards:
            speakers = said.codes == code
            yield from ((wish, speakers) for wish in towards)


def _wish(columns: NodeColumns) -> bool:
    """Whether any pod there says anything about its neighbours: told by node, so that nobody goes through all pods."""
    return True in columns.of_pods("kube wishing", _wishing).values


def _wishing(pods: Sequence[Pod]) -> bool:
    return any(pod.spec.affinity and wishes_of(pod) != SILENT for pod in pods)


def _counted(wishes: Wishes, hard_weight: int) -> Iterator[Wish]:
    yield from wishes.preferred
    if hard_weight:
        yield from (Wish(hard_weight, term) for term in wishes.required)


def _means(scene: Scene, term: Term) -> bool:
    return term.selects(scene.pod, scene.lookup.namespace_labels)


class _Worth:
    """What places are worth: for each topology a sum for every value of its label, by the label's codes."""

    def __init__(self, nodes: NodeColumns) -> None:
        self._nodes = nodes
        self._sums: dict[str, Whole] = {}

    def add(self, wish: Wish, columns: NodeColumns, pods: Mask) -> None:
        """Every pod adds to the place where it is."""
        key = wish.term.topology_key
        here, places = self._nodes.label(key), columns.label(key)
        codes = places.codes[columns.pods.node_rows[pods]]
        often = np.bincount(codes[codes >= 0], minlength=len(places.values))
        sums = self._sums.setdefault(key, np.zeros(len(here.values) + 1, np.int64))
        if columns is self._nodes:
            sums[:-1] += wish.weight * often
            return
        known = {value: code for code, value in enumerate(here.values)}
        for code in np.flatnonzero(often).tolist():
            sums[known.get(places.values[code], -1)] += wish.weight * int(often[code])

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


def _preferred(pod: Pod, kind: str, sign: int) -> Iterator[Wish]:
    """A weight that the API server would not take counts for nothing: the others' sums are made of it, too."""
    for row in neighbours.rows(pod, kind, PREFERRED):
        weight, term = row.get("weight", 0), row.get("podAffinityTerm") or {}
        if isinstance(weight, int) and 0 < weight <= _MOST_WEIGHT and isinstance(term, Mapping):
            yield Wish(sign * weight, neighbours.term(term, pod.metadata.namespace))
