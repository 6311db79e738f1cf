"""The rows of nodes, and which pods are on one."""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping
from fractions import Fraction
from typing import Any

from slurm_bridge.cluster.facts import NOTHING, Amounts, NodeFacts
from slurm_bridge.model import names, quantity, texts
from slurm_bridge.model.job import Gres
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.slurmnode import SlurmNode
from slurm_bridge.view import workload_rows
from slurm_bridge.view.rows import LiveNode

#: The generic resource of Slurm that is shown; a site may have others.
GPU = "gpu"

#: So many pods of one node are listed.
MOST_PODS = 256

IDLE, MIXED, FULL, DRAINED, DOWN, ABSENT = STATES = ("idle", "mixed", "full", "drained", "down", "absent")

_DOWN = frozenset({"DOWN", "FAIL", "NOT_RESPONDING", "POWERED_DOWN"})


@dataclasses.dataclass(frozen=True, slots=True)
class NativeShare:
    """What other jobs of Slurm have of a node: cpus, MiB, devices, by the reading of Slurm that this belongs to.

    Slurm is read twice a minute. What it says is compared with the pods: the least that is left since the reading
    counts. A job of ours whose pods are bound later was no other job, and a pod that ends leaves none behind.
    """

    reading: SlurmNode
    amounts: tuple[int, int, int]


def native(facts: NodeFacts, known: NativeShare | None, devices: Collection[str]) -> NativeShare | None:
    """The share of other jobs; None where Slurm has no such node."""
    slurm = facts.slurm
    if slurm is None:
        return None
    used = slurm.used_cpus, slurm.used_memory_mib, _count(slurm.used_gres)
    beyond = tuple(max(0, one - ours) for one, ours in zip(used, _amounts(facts.placed, devices), strict=True))
    if known is not None and known.reading is slurm:
        beyond = tuple(map(min, beyond, known.amounts))
    return NativeShare(slurm, (beyond[0], beyond[1], beyond[2]))


def row(facts: NodeFacts, share: NativeShare | None, devices: Collection[str]) -> LiveNode:
    """The row of one node."""
    ours, used, has = (_amounts(one, devices) for one in (facts.placed, facts.used, facts.allocatable))
    slurm = facts.slurm
    if slurm is not None:
        has = max(has[0], slurm.cpus), max(has[1], slurm.memory_mib), max(has[2], _count(slurm.gres))
    others = share.amounts if share is not None else (0, 0, 0)
    cpus, memory, gpus = (
        (has[place], ours[place], max(0, used[place] - ours[place]), others[place]) for place in range(len(has))
    )
    state, why = _state(facts, cpus)
    return LiveNode(
        name=facts.name,
        slurm_name=facts.slurm_name if facts.slurm_name != facts.name else "",
        state=state,
        why=texts.bounded(why, 200),
        partitions=slurm.partitions if slurm is not None else (),
        pods=len(facts.pods),
        cpus=cpus,
        memory=memory,
        gpus=gpus,
    )


def _state(facts: NodeFacts, cpus: tuple[int, int, int, int]) -> tuple[str, str]:
    """One word, and why the node takes nothing."""
    slurm, node = facts.slurm, facts.node
    if slurm is None:
        return ABSENT, f"Slurm has no node {facts.slurm_name}"
    if slurm.states & _DOWN or not node.ready:
        return DOWN, slurm.reason if slurm.states & _DOWN else "its kubelet is not ready"
    if slurm.draining or node.spec.unschedulable:
        return DRAINED, slurm.reason if slurm.draining else "it is cordoned"
    held = sum(cpus[1:])
    return (IDLE if not held else FULL if held >= cpus[0] else MIXED), ""


def _amounts(amounts: Amounts, devices: Collection[str]) -> tuple[int, int, int]:
    held = sum((amounts.get(name, NOTHING) for name in devices), Fraction())
    cpus, memory = amounts.get("cpu", NOTHING), amounts.get("memory", NOTHING)
    return quantity.whole(cpus), quantity.mebibytes(memory), quantity.whole(held)


def _count(gres: Iterable[Gres]) -> int:
    return sum(one.count for one in gres if one.name == GPU)


def holders(
    facts: NodeFacts,
    root_of: Callable[[str], tuple[str, str, str] | None],
    devices: Collection[str],
    may_see: Callable[[str], bool],
) -> Mapping[str, Any]:
    """The pods on a node as plain values; of namespaces that the caller may not see only their number.

    `root_of` gives kind, name and uid of the workload of one of our pods, by its uid.
    """
    seen = [pod for pod in facts.pods if may_see(pod.metadata.namespace)]
    return {
        "pods": [_holder(pod, root_of(pod.uid), devices) for pod in seen[:MOST_PODS]],
        "unseen": len(facts.pods) - len(seen[:MOST_PODS]),
    }


def _holder(pod: Pod, root: tuple[str, str, str] | None, devices: Collection[str]) -> Mapping[str, Any]:
    cpus, memory, held = _amounts(workload_rows.requests(pod), devices)
    return {
        "namespace": pod.metadata.namespace,
        "name": pod.metadata.name,
        "workload": list(root) if root is not None else None,
        "job": pod.metadata.labels.get(names.LABEL_JOB_ID, "")[:10],
        "cpus": cpus,
        "memory": memory,
        "gpus": held,
    }
