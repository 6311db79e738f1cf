"""Least, most and evenly allocated resources on the scale from 0 to 100, each resource with a weight of its own.

A resource that a node does not have takes no part there, nor does an extended one that the pod does not ask for.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from slurm_bridge.cluster.columns import Whole
from slurm_bridge.families.kube_scheduler.priorities import demand
from slurm_bridge.families.kube_scheduler.priorities.shape import FULL, UtilizationShape
from slurm_bridge.families.kube_scheduler.scene import Scene

MOST = 100

#: From a shape's scores to this scale.
FACTOR = 10

#: Every node has these; all others are extended resources.
NATIVE = frozenset({"cpu", "memory", "ephemeral-storage", "pods"})

LEAST_WEIGHT, MOST_WEIGHT = 1, 100

Weighted = tuple[tuple[str, int], ...]

CPU_AND_MEMORY: Weighted = (("cpu", 1), ("memory", 1))

Rate = Callable[[Whole, Whole], Whole]


@dataclasses.dataclass(frozen=True, slots=True)
class _Column:
    """One resource: what would be requested with the pod there, and what there is."""

    weight: int
    requested: Whole
    capacity: Whole


def invalid(resources: Sequence[tuple[str, int]]) -> tuple[str, ...]:
    """Which weights are out of bounds, by the path of the field."""
    return tuple(
        f"scoringStrategy.resources[{place}].weight"
        for place, (_, weight) in enumerate(resources)
        if not LEAST_WEIGHT <= weight <= MOST_WEIGHT
    )


def least_allocated(resources: Weighted) -> Callable[[Scene], Whole]:
    """The more is left the better."""
    return lambda scene: _weighed(_counted(scene, resources), _left, len(scene.columns))


def most_allocated(resources: Weighted) -> Callable[[Scene], Whole]:
    """The fuller the better."""
    return lambda scene: _weighed(_counted(scene, resources), _taken, len(scene.columns))


def by_shape(resources: Weighted, shape: UtilizationShape) -> Callable[[Scene], Whole]:
    """What the shape says of the utilization; a resource that it gives nothing takes no part."""
    values = shape.scaled(FACTOR).table()

    def rated(scene: Scene) -> Whole:
        total = weights = np.zeros(len(scene.columns), np.int64)
        for column in _counted(scene, resources):
            requested = column.requested
            capacity = column.capacity
            percent: Whole = np.minimum(requested, capacity) * FULL // np.maximum(capacity, 1)
            value = values[percent]
            weight = np.where((column.capacity > 0) & (value > 0), column.weight, 0)
            total, weights = total + value * weight, weights + weight
        rounded: Whole = (2 * total + weights) // np.maximum(2 * weights, 1)
        return rounded

    return rated


def balanced(resources: Weighted) -> Callable[[Scene], Whole | None]:
    """How much more evenly they are used with the pod than without; a pod that asks for none of them is not rated.

    75 is no change. Evenness and its change both lie between 50 and 100.
    """

    def rated(scene: Scene) -> Whole | None:
        if not any(demand.asked(scene.pod, name) for name, _ in resources):
            return None
        after, before = (_evenness(scene, resources, with_pod=one) for one in (True, False))
        change: Whole = MOST // 2 + (MOST // 2 + after - before) // 2
        return change

    return rated


def balanced_state(resources: Weighted) -> Callable[[Scene], Whole | None]:
    """How evenly they are used once the pod is there, as kube-scheduler rated it before it looked at the change."""

    def rated(scene: Scene) -> Whole | None:
        if not any(demand.asked(scene.pod, name) for name, _ in resources):
            return None
        return _evenness(scene, resources, with_pod=True)

    return rated


def _extended(name: str) -> bool:
    return name not in NATIVE


def _counted(scene: Scene, resources: Weighted) -> Iterator[_Column]:
    """With the defaults for containers that say nothing."""
    for name, weight in resources:
        counted = demand.counted(scene.pod, name)
        if counted or not _extended(name):
            requested = demand.there(scene.columns, name) + counted
            yield _Column(weight, requested, scene.columns.allocatable(name))


def _weighed(columns: Iterator[_Column], rate: Rate, rows: int) -> Whole:
    """The mean by weight, over those resources that a node has."""
    total = weights = np.zeros(rows, np.int64)
    for column in columns:
        weight = np.where(column.capacity > 0, column.weight, 0)
        total, weights = total + rate(column.requested, column.capacity) * weight, weights + weight
    mean: Whole = total // np.maximum(weights, 1)
    return mean


def _left(requested: Whole, capacity: Whole) -> Whole:
    share: Whole = np.maximum(capacity - requested, 0) * MOST // np.maximum(capacity, 1)
    return share


def _taken(requested: Whole, capacity: Whole) -> Whole:
    share: Whole = np.minimum(requested, capacity) * MOST // np.maximum(capacity, 1)
    return share


def _evenness(scene: Scene, resources: Weighted, *, with_pod: bool) -> Whole:
    """By the plain requests. Of two shares half their distance is the standard deviation; fewer than two are even."""
    written, capacities = list[Whole](), list[Whole]()
    for name, _ in resources:
        asked = demand.asked(scene.pod, name)
        if asked or not _extended(name):
            written.append(demand.written(scene.columns, name) + (asked if with_pod else 0))
            capacities.append(scene.columns.allocatable(name))
    capacity = np.array(capacities).reshape(-1, len(scene.columns))
    known = capacity > 0
    shares = np.array(written).reshape(-1, len(scene.columns)) / np.maximum(capacity, 1)
    shares = np.where(known, np.minimum(shares, 1.0), 0.0)
    count = known.sum(axis=0)
    mean = shares.sum(axis=0) / np.maximum(count, 1)
    variance = (np.where(known, shares - mean, 0.0) ** 2).sum(axis=0) / np.maximum(count, 1)
    low, high = np.where(known, shares, np.inf).min(axis=0), np.where(known, shares, -np.inf).max(axis=0)
    deviation: NDArray[np.float64] = np.where(count > 2, np.sqrt(variance), np.where(count == 2, (high - low) / 2, 0.0))  # noqa: PLR2004 - two
    scores: Whole = np.trunc((1 - deviation) * MOST).astype(np.int64)
    return scores
