"""ResourcesFit: what the pod requests within what a node has, and how full the node is."""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
import pydantic
from numpy.typing import NDArray

from slurm_bridge.cluster.columns import Mask, NodeColumns, QuestionCache, Whole, units
from slurm_bridge.cluster.columns.coded import units_given
from slurm_bridge.cluster.facts import NOTHING, NodeFacts
from slurm_bridge.families.vela.scene import Rows, SamplingScene, SceneCache, same_node

Mode = Literal["LeastAllocated", "MostAllocated"]

#: The amount of one resource on each node.
Amounts = Callable[[str], Whole]

#: Parts of 1.
Shares = NDArray[np.float64]

EPHEMERAL = "ephemeral-storage"
#: What every node is compared by, and what is no resource that nodes are extended with.
ALWAYS = ("cpu", "memory")
NATIVE = frozenset({*ALWAYS, EPHEMERAL, "pods"})

#: Of so many kinds of pods it is remembered how full nodes are: two bytes for each node.
MOST_KINDS = 32

#: Keeps an exact percentage from being cut because its fractions are not exact.
_TINY = 1e-9


def fits(asked: Mapping[str, int], available: Amounts, number: int) -> Mask:
    """Which of so many nodes have all of it; what a node does not have is 0."""
    found: Mask = np.ones(number, np.bool_)
    for name, amount in asked.items():
        if amount > 0:
            found &= available(name) >= amount
    return found


def score(asked: Mapping[str, int], total: Amounts, available: Amounts, mode: Mode = "LeastAllocated") -> Whole:
    """How much of the nodes is free (or in use) as they are, in percent; the pod itself is not added.

    Cpu and memory count always, ephemeral storage and extended resources where the pod asks for them.
    """
    return _percent(_compared(asked), total, available, mode)


def _percent(compared: Sequence[str], total: Amounts, available: Amounts, mode: Mode) -> Whole:
    shares: list[Shares] = []
    for name in compared:
        there = total(name)
        used_part: Shares = (there - available(name)) / np.maximum(there, 1)
        # Nothing of what a node does not have is in use.
        used_part[there <= 0] = 0.0
        shares.append(used_part)
    mean = functools.reduce(np.add, shares) / len(shares)
    used: Whole = np.floor(100 * mean + _TINY).astype(np.int64)
    return 100 - used if mode == "LeastAllocated" else used


def _percent_of(facts: NodeFacts, compared: Sequence[str], mode: Mode) -> int:
    """The same of one node, in the same arithmetic."""
    shares = 0.0
    for name in compared:
        total = units_given(name, facts.allocatable.get(name, NOTHING))
        if total > 0:
            # What is used, and never more than there is: a node may be asked for more than it has after it shrank.
            shares += float(min(total, units(name, facts.used.get(name, NOTHING)))) / float(total)
    used = math.floor(100 * (shares / len(compared)) + _TINY)
    return 100 - used if mode == "LeastAllocated" else used


def _compared(asked: Mapping[str, int]) -> tuple[str, ...]:
    stored = (EPHEMERAL,) if asked.get(EPHEMERAL, 0) > 0 else ()
    return (*ALWAYS, *stored, *[name for name in asked if name not in NATIVE])


class FitOptions(pydantic.BaseModel, frozen=True, extra="forbid"):
    """`mode`: empty nodes first, or full ones. `capacity`: what a node is compared by.

    That is all that a node has (what is in use is a matter of Slurm's queue), or what is free of it now. `amounts`:
    what the pod requests (its limits where it requests nothing), as Kubernetes counts, or its limits alone.
    `ignored_resources`: extended resources that another scheduler manages.
    """

    mode: Mode = "LeastAllocated"
    capacity: Literal["allocatable", "free"] = "allocatable"
    amounts: Literal["requests", "limits"] = "requests"
    ignored_resources: tuple[Annotated[str, pydantic.Field(min_length=1)], ...] = ()


class ResourcesFit:
    """The rule over the columns of a snapshot."""

    Options: ClassVar = FitOptions

    def __init__(self, options: FitOptions) -> None:
        self._options = options
        self.rejects = f"are too small for its {options.amounts}"

    def fits(self, scene: SamplingScene, rows: Rows) -> Mask:
        return self.every(scene)[rows]

    def every(self, scene: SamplingScene) -> Mask:
        """The same of all nodes. Where there is as much at all counts as a rule, whatever of it is in use."""
        asked, nodes = self._asked(scene), scene.nodes
        if self._options.capacity == "free":
            return fits(asked, _free(nodes), len(nodes))
        known: SceneCache[tuple[tuple[str, int], ...], Mask] = nodes.past.shared(
            "vela-fits", lambda: SceneCache(same_node)
        )
        return known.get(nodes, tuple(asked.items()), lambda: fits(asked, nodes.allocatable, len(nodes)))

    def score(self, scene: SamplingScene, rows: Rows) -> Whole:
        return _percents(scene.nodes, _compared(self._asked(scene)), self._options.mode)[rows].astype(np.int64)

    def _asked(self, scene: SamplingScene) -> Mapping[str, int]:
        asked = scene.requests if self._options.amounts == "requests" else scene.limits
        ignored = self._options.ignored_resources
        return {name: amount for name, amount in asked.items() if name not in ignored} if ignored else asked


#: What is compared, and how.
_Kind = tuple[tuple[str, ...], Mode]


def _percents(nodes: NodeColumns, compared: tuple[str, ...], mode: Mode) -> NDArray[np.int16]:
    """Of all nodes. How large a pod is does not matter: pods of all sizes share it, and all agents and the decision.

    Numbers of 16 bits: to copy and to pick from these is several times as fast.
    """
    kept: QuestionCache[_Kind] = nodes.past.shared("vela-percents", lambda: QuestionCache(MOST_KINDS))
    return kept.get(
        (compared, mode),
        nodes,
        lambda: _percent(compared, nodes.allocatable, _free(nodes), mode).astype(np.int16),
        lambda facts: _percent_of(facts, compared, mode),
    )


def _free(nodes: NodeColumns) -> Amounts:
    """Never below 0: a node may be asked for more than it has after it shrank."""
    return lambda name: np.maximum(nodes.allocatable(name) - nodes.used(name), 0)
