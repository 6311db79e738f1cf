"""Workloads that wait for other pods to leave the nodes that Slurm gave them."""

from slurm_bridge.model.names import WorkloadKey


class NodeWaiters:
    """Workload keys by node; any thread."""

    def __init__(self) -> None:
        self._by_node: dict[str, set[WorkloadKey]] = {}

    def add(self, node: str, key: WorkloadKey) -> None:
        """The workload waits until pods leave this node."""
        self._by_node.setdefault(node, set()).add(key)

    def take(self, node: str) -> tuple[WorkloadKey, ...]:
        """A pod has left the node: the workloads that waited for that; they wait no more."""
        return tuple(sorted(self._by_node.pop(node, ())))

    def drop(self, key: WorkloadKey) -> None:
        """The workload is over."""
        for waiting in list(self._by_node.values()):
            waiting.discard(key)
