"""The nodes of a partition as attempts of preemption see them: what is left of each counts, in every mode."""

from collections.abc import Iterator

from slurm_bridge.families.yunikorn.queues.nodes import PartitionNode
from slurm_bridge.families.yunikorn.queues.partition import QueuePartition
from slurm_bridge.families.yunikorn.queues.preemptors import facts


class Rooms:
    """Where nodes are shared out here they stand for themselves.

    Elsewhere another scheduler queues behind us what does not fit: no node has less than nothing left.
    """

    __slots__ = ("_nodes",)

    def __init__(self, partition: QueuePartition) -> None:
        self._nodes = partition.nodes

    def get(self, name: str, /) -> facts.AttemptNode | None:
        """The node of this name."""
        node = self._nodes.get(name)
        return node if node is None or self._nodes.are_shared_out else _left(node)

    def __iter__(self) -> Iterator[facts.AttemptNode]:
        return iter(self._nodes) if self._nodes.are_shared_out else map(_left, self._nodes)


def _left(node: PartitionNode) -> facts.ImaginedNode:
    free = {kind: max(0, amount - node.allocated.get(kind, 0)) for kind, amount in node.capacity.items()}
    return facts.ImaginedNode(name=node.name, capacity=node.capacity, free=free, schedulable=node.schedulable)
