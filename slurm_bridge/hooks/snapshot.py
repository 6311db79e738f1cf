"""The cluster as hooks see it: both sides' view of every node at one moment, frozen."""

import dataclasses
from collections.abc import Mapping
from fractions import Fraction

from slurm_bridge.model.node import Node
from slurm_bridge.model.slurmnode import Partition, SlurmNode

Amounts = Mapping[str, Fraction]

NOTHING = Fraction()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """One Kubernetes node, and its counterpart in Slurm: None when Slurm has none, or when two nodes claim it.

    `used` is what pods that are bound there (or about to be) ask for, whoever scheduled them; `placed` is how much of
    it Slurm knows of, because it gave those pods the node.
    """

    name: str
    slurm_name: str
    node: Node
    slurm: SlurmNode | None
    allocatable: Amounts
    used: Amounts
    placed: Amounts


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSnapshot:
    """`version` moves when anything changed that a rule about placement can depend on, `use_version` with every change.

    `names` are the keys of `nodes`, kept as one object for as long as the version stands; a plan may cache by it.
    `heterogeneous`: Slurm takes jobs of several components.
    """

    version: int
    use_version: int
    nodes: Mapping[str, NodeFacts]
    slurm_nodes: Mapping[str, SlurmNode]
    partitions: tuple[Partition, ...]
    names: frozenset[str]
    by_slurm: Mapping[str, str]
    heterogeneous: bool = False

    def by_slurm_name(self, name: str) -> NodeFacts | None:
        """The Kubernetes node that Slurm calls so."""
        found = self.by_slurm.get(name)
        return self.nodes[found] if found is not None else None


EMPTY = ClusterSnapshot(
    version=0, use_version=0, nodes={}, slurm_nodes={}, partitions=(), names=frozenset(), by_slurm={}
)


def fits(facts: NodeFacts, requests: Amounts) -> str | None:
    """What is missing on a node beside all that is there already, None when nothing is."""
    short = lacking(facts, requests, free=True)
    return ", ".join(short) if short else None


def lacking(facts: NodeFacts, requests: Amounts, *, free: bool) -> tuple[str, ...]:
    """What a node has too little of, in kube-scheduler's words: of all that it has, or only of what is free."""
    used = facts.used if free else {}
    return tuple(
        "Too many pods" if name == "pods" else f"Insufficient {name}"
        for name, amount in requests.items()
        if amount > facts.allocatable.get(name, NOTHING) - used.get(name, NOTHING) and amount > 0
    )
