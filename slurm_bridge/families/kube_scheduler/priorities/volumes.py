"""How many volumes nodes can attach and have attached, as far as their nodes say so."""

from collections.abc import Sequence

from slurm_bridge.cluster.columns import NodeColumns, Whole
from slurm_bridge.cluster.facts import Amounts
from slurm_bridge.cluster.rules import volumes
from slurm_bridge.families.kube_scheduler.scene import Scene
from slurm_bridge.model.pod import Pod

#: The resources by which a kubelet says how many volumes of a kind it can attach.
PREFIX = "attachable-volumes-"


def limits(nodes: NodeColumns) -> Whole:
    """How many volumes each node can attach, of all kinds; 0 where it does not say."""
    return nodes.whole_of_allocatable("kube attachable volumes", _limit)


def attached(scene: Scene) -> Whole:
    """How many would be attached with this pod there."""
    there = scene.columns.whole_of_pods("kube attached volumes", _attached)
    return there + len(_of(scene.pod))


def _limit(there: Amounts) -> int:
    return sum(int(amount) for name, amount in there.items() if name.startswith(PREFIX))


def _attached(_: Amounts, pods: Sequence[Pod]) -> int:
    return len(set().union(*(_of(pod) for pod in pods)))


def _of(pod: Pod) -> set[tuple[str, str]]:
    return {(pod.metadata.namespace, name) for name in volumes.claims(pod)} if volumes.claimed(pod) else set()
