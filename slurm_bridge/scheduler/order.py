"""In which order workloads line up to be submitted.

With an order hook: as it says. Without: priority, then turns between namespaces, then age.
"""

from collections.abc import Callable

from slurm_bridge import errors
from slurm_bridge.hooks.chain import Chain
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.workload import Workload
from slurm_bridge.scheduler.context import Gather
from slurm_bridge.scheduler.pod_index import PodIndex
from slurm_bridge.scheduler.queue import Key
from slurm_bridge.scheduler.workload_pods import PodState, WorkloadPods


class NamespaceTurns:
    """Start tags of fair queueing: a flood of one namespace waits behind its own workloads, not before all others."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self._now = 0

    def take(self, namespace: str) -> int:
        """The turn of one more workload of this namespace."""
        turn = max(self._last.get(namespace, 0) + 1, self._now)
        self._last[namespace] = turn
        return turn

    def served(self, turn: int) -> None:
        """Time moves on with what is served, so that a newcomer starts at the head and not in the past."""
        self._now = max(self._now, turn)


class Order:
    """Gives keys, and learns whose turn has come. `chain` and `gather` are asked each time: they change."""

    def __init__(self, pod_index: PodIndex, chain: Callable[[], Chain], gather: Gather) -> None:
        self._pod_index, self._chain, self._gather = pod_index, chain, gather
        self._turns = NamespaceTurns()

    def key(self, key: WorkloadKey) -> Key:
        """Sorts this workload among the others; keys of one configuration compare with each other."""
        members = self._pod_index.workload(key)
        pod = members.first(PodState.WANTING) if members is not None else None
        if members is None or pod is None:
            return (-1,)
        ranked = self._ranked(members)
        if ranked is not None:
            return (0, ranked)
        turn = self._turns.take(pod.metadata.namespace)
        return (1, -(pod.spec.priority or 0), turn, pod.metadata.creation_timestamp or "", key)

    def served(self, key: Key) -> None:
        """The workload with this key has been let in."""
        if key[0] == 1:
            self._turns.served(key[2])

    def _ranked(self, members: WorkloadPods) -> Key | None:
        chain = self._chain()
        if not chain.orders:
            return None
        try:
            workload = self._gather(members, PodState.WANTING)
        except errors.BridgeError:
            # The look at the workload meets the same problem, and reports it.
            return None
        return chain.order_key(workload) if isinstance(workload, Workload) else None
