"""Pods of one service or controller apart from each other: over nodes, over zones, over the values of a label."""

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from slurm_bridge.cluster import selection
from slurm_bridge.cluster.columns import Coded, Mask, PodColumns, QuestionCache, Whole
from slurm_bridge.families.kube_scheduler.predicates import attributes
from slurm_bridge.families.kube_scheduler.priorities import numbers
from slurm_bridge.families.kube_scheduler.scene import Scene
from slurm_bridge.model import selectors
from slurm_bridge.model.node import Node
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.selectors import Requirement

#: Where a node says in which zone and region it is, the older names last.
ZONE = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
REGION = ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region")

#: The numbers of so many kinds are kept; at twenty thousand nodes each takes a sixth of a megabyte.
MOST_KINDS = 64

#: Apart in zones counts twice as much as apart on nodes.
ZONE_PART, BOTH_PARTS = 2, 3

Selector = tuple[Requirement, ...]

#: A namespace, and all that the labels of its pods have to meet.
_Kind = tuple[str, Selector]
Zone = tuple[str, str] | None


def owners(scene: Scene) -> tuple[Selector, ...]:
    """The selectors of all services and controllers that this pod belongs to."""
    return services(scene) + controllers(scene)


def services(scene: Scene) -> tuple[Selector, ...]:
    """The selectors of services; one without a selector selects no pod."""
    namespace, labels = scene.pod.metadata.namespace, scene.pod.metadata.labels
    has = labels.items()
    mine = (wanted for wanted in scene.lookup.service_selectors(namespace) if wanted and wanted.items() <= has)
    return tuple(tuple(Requirement(key, "In", (value,)) for key, value in wanted.items()) for wanted in mine)


def controllers(scene: Scene) -> tuple[Selector, ...]:
    """The selectors of replica sets and stateful sets; here an empty one selects no pod."""
    namespace, labels = scene.pod.metadata.namespace, scene.pod.metadata.labels
    found = scene.lookup.controller_selectors(namespace)
    return tuple(selector for selector in found if selector and selectors.all_hold(selector, labels))


class Kinds:
    """How many pods of a kind are on each node; only what has changed is counted again."""

    def __init__(self) -> None:
        self._kept: QuestionCache[_Kind] = QuestionCache(MOST_KINDS)

    def selector_count(self, scene: Scene) -> Whole:
        """How many of its own kind a pod would meet on each node."""
        return self._beside(scene, owners(scene))

    def service_count(self, scene: Scene) -> Whole:
        """How many pods of the first service that it belongs to are on each node."""
        return self._beside(scene, services(scene)[:1])

    def _beside(self, scene: Scene, belonging: Sequence[Selector]) -> Whole:
        """How many pods on each node belong to all of these as well."""
        if not belonging:
            return numbers.constant(len(scene.columns), 0)
        home, every = scene.pod.metadata.namespace, tuple(itertools.chain.from_iterable(belonging))
        columns = scene.columns
        return self._kept.get(
            (home, every),
            columns,
            lambda: _counted(columns.pods, home, every),
            lambda facts: _alike(facts.pods, home, every),
        )


def _counted(pods: PodColumns, home: str, every: Selector) -> Whole:
    here = attributes.in_namespaces(pods, lambda namespace: namespace == home)
    return pods.count(here & selection.all_met(pods, every) & staying(pods))


def _alike(pods: Sequence[Pod], home: str, every: Selector) -> int:
    """How many of these; pods that are going do not count. Most differ in the first label that is looked at."""
    first = every[0]
    return sum(
        first.holds(pod.metadata.labels)
        and pod.metadata.namespace == home
        and not pod.terminating
        and selectors.all_hold(every, pod.metadata.labels)
        for pod in pods
    )


def over_nodes_and_zones(maximum: int) -> Callable[[Scene, Whole, Mask], Whole]:
    """The fewer the better, on the node and in its zone. In whole numbers: a score must not depend on rounding."""

    def rated(scene: Scene, counts: Whole, nodes: Mask) -> Whole:
        if not (most := numbers.highest(counts, nodes)):
            return numbers.constant(len(counts), maximum)
        zones = scene.columns.of_node("kube zone", zone_of)
        nowhere, present = zones.code(None), scene.columns.present
        zoned = present if nowhere is None else present & (zones.codes != nowhere)
        met = np.minimum(counts, most)
        if not (zoned & nodes).any():
            return (maximum * (most - np.arange(most + 1)) // most)[met]
        in_zone = sums(zones, counts, nodes & zoned)
        top = max(int(in_zone.max()), 1)
        if (most + 1) * len(in_zone) > len(counts):
            return _both(maximum, (most - met, most), (in_zone[zones.codes], top), zoned)
        # There are far fewer pairs of a number of pods and a zone than there are nodes.
        # Which of the distinct values are zones; the last row stands for holes.
        known = np.array([*(zone is not None for zone in zones.values), False])
        table = _both(maximum, (most - np.arange(most + 1)[:, np.newaxis], most), (in_zone, top), known)
        found: Whole = table.ravel()[met * len(in_zone) + zones.codes]
        return found

    return rated


def _both(maximum: int, on_node: tuple[Whole, int], in_zone: tuple[Whole, int], zoned: Mask) -> Whole:
    """From how many fewer pods than the most are on a node, and how many are in its zone; each with the most there."""
    (fewer, most), (met, top) = on_node, in_zone
    above = maximum * (fewer * top + ZONE_PART * (top - met) * most)
    together: Whole = np.where(zoned, above // (BOTH_PARTS * most * top), maximum * fewer // most)
    return together


def over_label(label: str, maximum: int) -> Callable[[Scene, Whole, Mask], Whole]:
    """The smaller a label value's part of all pods the better; a node without the label is worth nothing."""

    def rated(scene: Scene, counts: Whole, nodes: Mask) -> Whole:
        values = scene.columns.label(label)
        labelled = values.where(lambda value: value is not None)
        total = int(counts.sum(where=nodes))
        shares = maximum * (total - by_value(values, counts, nodes)) // total if total else maximum
        return np.where(labelled, shares, 0).astype(np.int64)

    return rated


def by_value(values: Coded[Zone] | Coded[str | None], counts: Whole, nodes: Mask) -> Whole:
    """For each node the sum over the candidates that have the same value."""
    return sums(values, counts, nodes)[values.codes]


def sums(values: Coded[Zone] | Coded[str | None], counts: Whole, nodes: Mask) -> Whole:
    """The same for each distinct value; one more for holes."""
    some = np.flatnonzero(counts * nodes)
    found = np.bincount(values.codes[some], weights=counts[some], minlength=len(values.values) + 1)
    return found.astype(np.int64)


def zone_of(node: Node) -> Zone:
    """Region and zone of a node, None where it has neither."""
    labels = node.metadata.labels
    found = tuple(next((labels[key] for key in keys if labels.get(key)), "") for keys in (REGION, ZONE))
    return (found[0], found[1]) if any(found) else None


def staying(pods: PodColumns) -> Mask:
    """Pods that are not being deleted."""
    return attributes.terminating(pods).where(lambda leaving: not leaving)
