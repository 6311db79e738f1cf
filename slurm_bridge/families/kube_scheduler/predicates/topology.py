"""Domains: nodes with the same value of a label, and how many of some pods are in each."""

import dataclasses
from collections.abc import Callable
from typing import Self

import numpy as np

from slurm_bridge.cluster.columns import Codes, Mask, NodeColumns, Whole
from slurm_bridge.cluster.columns.coded import HOLE
from slurm_bridge.families.kube_scheduler.scene import Scene

#: How many of the pods in question each node has.
Counted = Callable[[NodeColumns], Whole]

#: Which nodes make up domains.
Among = Callable[[NodeColumns], Mask]


def placed(columns: NodeColumns, key: str) -> Mask:
    """The nodes that are in some domain: those that have the label at all."""
    return columns.of_node(f"has label {key}", lambda node: key in node.metadata.labels).where(bool)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Domains:
    """The domains of one key by the code of their name: how many nodes and how many pods are in each."""

    cluster: NodeColumns
    key: str
    nodes: Whole
    pods: Whole

    @classmethod
    def of(cls, scene: Scene, key: str, counted: Counted, among: Among | None = None) -> Self:
        """Over all parts of a scene. The first part is the cluster, which usually is all there is."""
        cluster = scene.parts[0][0]
        size = len(cluster.label(key).values)
        nodes, pods = np.zeros(size, np.int64), np.zeros(size, np.int64)
        for columns, mask in scene.parts:
            every = domains(cluster, columns, key)
            rows = mask & placed(columns, key) & (every != HOLE)
            rows = rows if among is None else rows & among(columns)
            codes = every[rows]
            nodes += np.bincount(codes, minlength=size)
            pods += np.bincount(codes, weights=counted(columns)[rows], minlength=size).astype(np.int64)
        return cls(cluster, key, nodes, pods)

    def at(self, columns: NodeColumns) -> Whole:
        """How many pods are in the domain of each of these nodes; 0 where a node is in none."""
        return np.append(self.pods, 0)[domains(self.cluster, columns, self.key)]

    @property
    def number(self) -> int:
        """Of domains that have any node."""
        return int(np.count_nonzero(self.nodes))

    @property
    def fewest(self) -> int:
        """How many pods the emptiest domain has."""
        counts = self.pods[self.nodes > 0]
        return int(counts.min()) if counts.size else 0


def domains(cluster: NodeColumns, columns: NodeColumns, key: str) -> Codes:
    """By row, the codes that the cluster has for the domains of nodes, which stay in them whatever runs there."""
    codes = cluster.label(key).codes
    if columns is cluster:
        return codes
    rows = [cluster.row(name) for name in columns.names.tolist()]
    return np.fromiter((HOLE if row is None else codes[row] for row in rows), np.int32, len(rows))
