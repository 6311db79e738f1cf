"""One node as both sides see it, and how much of what is there."""

import dataclasses
from collections.abc import Mapping
from fractions import Fraction

from slurm_bridge.model.node import Node
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.slurmnode import SlurmNode
from slurm_bridge.runtime import frozen_records

Amounts = Mapping[str, Fraction]

NOTHING = Fraction()


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """One Kubernetes node, and its counterpart in Slurm: None when Slurm has none, or when two nodes claim it.

    `used` is what all pods that are bound there (or about to be) ask for, of any scheduler; `placed` is how much of it
    Slurm knows of, because it gave those pods the node. `pods` are those pods, as far as they are known in full:
    of one that is about to be bound, a name may be all that is known.
    """

    name: str
    slurm_name: str
    node: Node
    slurm: SlurmNode | None
    allocatable: Amounts
    used: Amounts
    placed: Amounts
    pods: tuple[Pod, ...] = ()


def fits(facts: NodeFacts, requests: Amounts) -> str | None:
    """What is missing on a node beside all that is there already, None when nothing is."""
    short = lacking(facts, requests, free=True)
    return ", ".join(short) if short else None


def lacking(facts: NodeFacts, requests: Amounts, *, free: bool) -> tuple[str, ...]:
    """What a node has too little of, in kube-scheduler's words: of all that it has, or only of what is free."""
    used = facts.used if free else {}
    return tuple(
        shortage(name)
        for name, amount in requests.items()
        if amount > facts.allocatable.get(name, NOTHING) - used.get(name, NOTHING) and amount > 0
    )


def shortage(resource: str) -> str:
    """Kube-scheduler's words for too little of a resource."""
    return "Too many pods" if resource == "pods" else f"Insufficient {resource}"
