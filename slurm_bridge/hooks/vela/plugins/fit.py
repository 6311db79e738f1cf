"""ResourcesFit: the limits of the pod within what a node has, and how full the node is."""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, Literal

import numpy as np
import pydantic
from numpy.typing import NDArray

from slurm_bridge.hooks.columns import Mask, NodeColumns, Whole
from slurm_bridge.hooks.vela import followed
from slurm_bridge.hooks.vela.followed import Followed
from slurm_bridge.hooks.vela.scene import Known, Rows, Scene, same_node

Mode = Literal["LeastAllocated", "MostAllocated"]

#: The amount of one resource on each node.
Amounts = Callable[[str], Whole]

#: Parts of 1.
Shares = NDArray[np.float64]

EPHEMERAL = "ephemeral-storage"
#: What every node is compared by, and what is no resource that nodes are extended with.
ALWAYS = ("cpu", "memory")
NATIVE = frozenset({*ALWAYS, EPHEMERAL, "pods"})

#: Keeps an exact percentage from being cut because its fractions are not exact.
_TINY = 1e-9


def fits(limits: Mapping[str, int], available: Amounts, number: int) -> Mask:
    """Which of so many nodes have all of it; what a node does not have is 0."""
    found: Mask = np.ones(number, np.bool_)
    for name, amount in limits.items():
        if amount > 0:
            found &= available(name) >= amount
    return found


def score(limits: Mapping[str, int], total: Amounts, available: Amounts, mode: Mode = "LeastAllocated") -> Whole:
    """How much of the nodes is free (or in use) as they are, in percent; the pod itself is not added.

    Cpu and memory count always, ephemeral storage and extended resources where the pod has limits for them.
    """
    return _percent(tuple(_compared(limits)), total, available, mode)


def _percent(compared: Sequence[str], total: Amounts, available: Amounts, mode: Mode) -> Whole:
    shares = [_used(total(name), available(name)) for name in compared]
    mean = functools.reduce(np.add, shares) / len(shares)
    used: Whole = np.floor(100 * mean + _TINY).astype(np.int64)
    return 100 - used if mode == "LeastAllocated" else used


def _compared(limits: Mapping[str, int]) -> Iterable[str]:
    yield from ALWAYS
    if limits.get(EPHEMERAL, 0) > 0:
        yield EPHEMERAL
    yield from (name for name in limits if name not in NATIVE)


def _used(total: Whole, available: Whole) -> Shares:
    """Nothing of what a node does not have is in use."""
    shares: Shares = (total - available) / np.maximum(total, 1)
    shares[total <= 0] = 0.0
    return shares


class FitOptions(pydantic.BaseModel, frozen=True, extra="forbid"):
    """`mode`: empty nodes first, or full ones. `capacity`: what limits are compared with.

    That is all that a node has (what is in use is a matter of Slurm's queue), or what is free of it now.
    """

    mode: Mode = "LeastAllocated"
    capacity: Literal["allocatable", "free"] = "allocatable"


class ResourcesFit:
    """The rule over the columns of a snapshot."""

    Options: ClassVar = FitOptions
    rejects: ClassVar = "are too small for its limits"

    def __init__(self, options: FitOptions) -> None:
        self._options = options
        self._known: Known[tuple[tuple[str, int], ...], Mask] = Known(same_node)
        self._percents: Followed[tuple[str, ...]] = Followed()

    def fits(self, scene: Scene, rows: Rows) -> Mask:
        return self.every(scene)[rows]

    def every(self, scene: Scene) -> Mask:
        """The same of all nodes. Where there is as much at all counts as a rule, whatever of it is in use."""
        limits, nodes = scene.limits, scene.nodes
        if self._options.capacity == "free":
            return fits(limits, _free(nodes), len(nodes))
        return self._known.get(nodes, tuple(limits.items()), lambda: fits(limits, nodes.allocatable, len(nodes)))

    def score(self, scene: Scene, rows: Rows) -> Whole:
        # How large the pod is does not matter, so pods of all sizes share the answer.
        nodes, compared = scene.nodes, tuple(_compared(scene.limits))
        percents = self._percents.get(
            nodes,
            compared,
            lambda some: _percent(compared, _allocatable(nodes, some), _free(nodes, some), self._options.mode),
        )
        return percents[rows].astype(np.int64)


def _allocatable(nodes: NodeColumns, some: Rows | slice = followed.ALL) -> Amounts:
    return lambda name: nodes.allocatable(name)[some]


def _free(nodes: NodeColumns, some: Rows | slice = followed.ALL) -> Amounts:
    """Never below 0: a node may be asked for more than it has after it shrank."""
    return lambda name: np.maximum(nodes.allocatable(name)[some] - nodes.used(name)[some], 0)
