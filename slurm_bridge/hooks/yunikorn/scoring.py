"""How good nodes are by the order that an application or its partition chose: emptiest first, or fullest first."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from slurm_bridge.hooks.columns import NodeColumns, Numbers
from slurm_bridge.hooks.yunikorn.demands import MEMORY
from slurm_bridge.queues.quantities import VCORE
from slurm_bridge.queues.sorting import WEIGHTS, NodePolicy


def size(columns: NodeColumns) -> Mapping[str, int]:
    """Of the whole cluster, in what queues are measured in most."""
    cpus, memory = columns.allocatable("cpu"), columns.allocatable(MEMORY)
    return {VCORE: int(cpus[columns.present].sum()), MEMORY: int(memory[columns.present].sum())}


def scores(columns: NodeColumns, policy: NodePolicy, weights: Mapping[str, float]) -> Numbers:
    """Higher is better: what is left of a node, or for binpacking what is used of it, as weighted parts of 1.

    What Slurm has given away counts as used, or what pods ask for where that is more.
    """
    counted: NDArray[np.float64] = np.zeros(len(columns.present))
    used: NDArray[np.float64] = np.zeros(len(columns.present))
    for kind, weight in (weights or WEIGHTS).items():
        name = "cpu" if kind == VCORE else kind
        there = columns.allocatable(name).astype(np.float64)
        taken = np.maximum(columns.used(name), columns.given_away(name)).astype(np.float64)
        used += weight * np.divide(taken, there, out=np.zeros_like(there), where=there > 0)
        counted += weight * (there > 0)
    usage = np.divide(used, counted, out=np.zeros_like(used), where=counted > 0)
    return Numbers(columns, usage if policy is NodePolicy.BINPACKING else 1 - usage, columns.present)
