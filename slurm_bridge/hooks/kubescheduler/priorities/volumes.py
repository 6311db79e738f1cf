"""How many volumes nodes can attach and have attached, as far as their nodes say so."""

from slurm_bridge.hooks.columns import NodeColumns, Whole
from slurm_bridge.hooks.facts import NodeFacts
from slurm_bridge.hooks.kubescheduler.scene import Scene
from slurm_bridge.hooks.rules import volumes
from slurm_bridge.model.pod import Pod

#: The resources by which a kubelet says how many volumes of a kind it can attach.
PREFIX = "attachable-volumes-"


def limits(nodes: NodeColumns) -> Whole:
    """How many volumes each node can attach, of all kinds; 0 where it does not say."""
    return nodes.whole("kube attachable volumes", _limit)


def attached(scene: Scene) -> Whole:
    """How many would be attached with this pod there."""
    there = scene.columns.whole("kube attached volumes", _attached)
    return there + len(_of(scene.pod))


def _limit(facts: NodeFacts) -> int:
    return sum(int(amount) for name, amount in facts.allocatable.items() if name.startswith(PREFIX))


def _attached(facts: NodeFacts) -> int:
    return len(set().union(*(_of(pod) for pod in facts.pods)))


def _of(pod: Pod) -> set[tuple[str, str]]:
    return {(pod.metadata.namespace, name) for name in volumes.claims(pod)} if volumes.claimed(pod) else set()
