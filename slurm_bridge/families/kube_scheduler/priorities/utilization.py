"""Least, most and evenly requested CPU and memory on the scale from 0 to 10, as the policies of old count them.

A pod that would not fit makes a node worth nothing, except where an administrator's shape says otherwise.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from slurm_bridge.cluster.columns import Whole
from slurm_bridge.cluster.facts import Amounts
from slurm_bridge.cluster.rules import attachments
from slurm_bridge.families.kube_scheduler.priorities import demand, numbers
from slurm_bridge.families.kube_scheduler.priorities.shape import FULL, UtilizationShape
from slurm_bridge.families.kube_scheduler.scene import Scene
from slurm_bridge.model.pod import Pod

MOST = 10

#: The resources by which a kubelet says how many volumes of a kind it can attach.
ATTACHABLE = "attachable-volumes-"

Shares = NDArray[np.float64]


def least_requested(scene: Scene) -> Whole:
    """The more is left the better."""
    return _both(scene, _left)


def most_requested(scene: Scene) -> Whole:
    """The fuller the better, as long as it fits."""
    return _both(scene, _taken)


def by_shape(shape: UtilizationShape) -> Callable[[Scene], Whole]:
    """What the shape says of the utilization; more than there is counts as full."""
    values = shape.table()

    def percent(requested: Whole, capacity: Whole) -> Whole:
        room = np.maximum(capacity - requested, 0)
        # Rounded up.
        found: Whole = values[FULL - room * FULL // np.maximum(capacity, 1)]
        return found

    def rated(scene: Scene) -> Whole:
        return _both(scene, percent)

    return rated


def balanced(scene: Scene) -> Whole:
    """CPU and memory used to the same degree is best, so that neither is left over; volumes too where counted."""
    cpu, memory = (_share(*_amounts(scene, name)) for name in ("cpu", "memory"))
    full = (cpu >= 1) | (memory >= 1)
    evenness = 1 - np.abs(cpu - memory)
    # How many volumes each node can attach, of all kinds; 0 where it does not say.
    limits = scene.columns.whole_of_allocatable("kube attachable volumes", _limit)
    if limits.any():
        there = scene.columns.whole_of_pods("kube attached volumes", _attached)
        attached = (there + len(attachments.claims(scene.pod))) / np.maximum(limits, 1)
        full |= (limits > 0) & (attached >= 1)
        evenness = np.where(limits > 0, 1 - np.var(np.array((cpu, memory, attached)), axis=0), evenness)
    return np.where(full, 0, np.trunc(evenness * MOST)).astype(np.int64)


def _both(scene: Scene, rate: Callable[[Whole, Whole], Whole]) -> Whole:
    cpu, memory = (rate(*_amounts(scene, name)) for name in ("cpu", "memory"))
    together: Whole = (cpu + memory) // 2
    return together


def _amounts(scene: Scene, resource: str) -> tuple[Whole, Whole]:
    """What would be requested with the pod there, and what there is."""
    requested = demand.there(scene.columns, resource) + demand.counted(scene.pod, resource)
    return requested, scene.columns.allocatable(resource)


def _left(requested: Whole, capacity: Whole) -> Whole:
    room = np.maximum(capacity - requested, 0)
    return numbers.shares(room * MOST, capacity)


def _taken(requested: Whole, capacity: Whole) -> Whole:
    fitting = np.where(requested > capacity, 0, requested)
    return numbers.shares(fitting * MOST, capacity)


def _share(requested: Whole, capacity: Whole) -> Shares:
    shares: Shares = np.where(capacity > 0, requested / np.maximum(capacity, 1), 1.0)
    return shares


def _limit(there: Amounts) -> int:
    return sum(int(amount) for name, amount in there.items() if name.startswith(ATTACHABLE))


def _attached(_: Amounts, pods: Sequence[Pod]) -> int:
    return len(set().union(*(attachments.claims(pod) for pod in pods)))
