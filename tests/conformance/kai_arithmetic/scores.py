"""Scores of nodes for one task, each origin in a range of its own, so that a more important one always decides."""

import dataclasses
from collections.abc import Mapping

from slurm_bridge.families.kai.domain_order import STEP

#: What each origin gives at most, or in one step; the sum of all before it is less.
PACKING = 9.0
RESOURCE_TYPE = 10.0
AVAILABILITY = 100.0
GPU_SHARING = 1_000.0
TOPOLOGY = float(STEP)
PREDICATES = 100_000.0
NOMINATED = 1_000_000.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Has:
    """What a node has and has left of the type that counts: GPUs for tasks that use some, else processors."""

    total: float
    free: float


def pack(nodes: Mapping[str, Has]) -> Mapping[str, float]:
    """The fuller, the better, between the fullest and the emptiest of these; nothing where there is nothing to have."""
    frees = [node.free for node in nodes.values() if node.total > 0]
    least, most = min(frees, default=0), max(frees, default=0)
    if most == 0:
        return dict.fromkeys(nodes, 0.0)
    gap = most - least
    return {
        name: 0.0 if node.total <= 0 else PACKING * (1 - (node.free - least) / gap) if gap else PACKING
        for name, node in nodes.items()
    }


def spread(nodes: Mapping[str, Has]) -> Mapping[str, float]:
    """The emptier for its size, the better."""
    return {name: node.free / node.total if node.total > 0 else 0.0 for name, node in nodes.items()}


def resource_type(*, task_uses_gpu: bool, node_has_gpu: bool) -> float:
    """Tasks without GPUs keep off nodes with GPUs."""
    return 0.0 if task_uses_gpu or node_has_gpu else RESOURCE_TYPE


def total(nodes: Mapping[str, Mapping[str, float]]) -> Mapping[str, float]:
    """The sum of all origins for each node."""
    return {name: float(sum(scores.values())) for name, scores in nodes.items()}


def ordered(totals: Mapping[str, float]) -> tuple[str, ...]:
    """The best node first; of equal ones the first by name."""
    return tuple(sorted(totals, key=lambda name: (-totals[name], name)))
