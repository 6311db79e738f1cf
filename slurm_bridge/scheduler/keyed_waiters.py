"""Workloads that wait for something to happen to one object: for pods to leave a node, for a claim to be bound."""

import threading

from slurm_bridge.model.names import WorkloadKey


class KeyedWaiters:
    """Workload keys by the name of the object; any thread."""

    def __init__(self) -> None:
        self._by_name: dict[str, set[WorkloadKey]] = {}
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._by_name)

    def add(self, name: str, key: WorkloadKey) -> None:
        """The workload waits until something happens there."""
        with self._lock:
            self._by_name.setdefault(name, set()).add(key)

    def take(self, name: str) -> tuple[WorkloadKey, ...]:
        """It has happened: the workloads that waited for that; they wait no more."""
        with self._lock:
            return tuple(sorted(self._by_name.pop(name, ())))

    def drop(self, key: WorkloadKey) -> None:
        """The workload is over, or waits no longer."""
        with self._lock:
            for name in [name for name, waiting in self._by_name.items() if key in waiting]:
                self._by_name[name].discard(key)
                if not self._by_name[name]:
                    del self._by_name[name]
