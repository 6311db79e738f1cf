"""What went wrong with a workload on which node, so that the next attempt goes elsewhere, and how often in a row.

A node is avoided for a while only: it may be repaired, and the memory is bounded. It is filed under the controller,
because a pod that a kubelet refused is replaced by another of the same kind.
"""

import dataclasses
import threading
from collections import OrderedDict
from collections.abc import Mapping

from slurm_bridge.model.meta import Object
from slurm_bridge.model.names import WorkloadKey, workload_key
from slurm_bridge.workloads.kind_table import WATCHED


@dataclasses.dataclass(frozen=True, slots=True)
class Bad:
    """One experience."""

    why: str
    until: float


class Avoided:
    """Nodes by the key of a workload or its controller."""

    def __init__(self, *, seconds: float = 600.0, most: int = 10_000) -> None:
        self.seconds, self._most = seconds, most
        self._lock = threading.Lock()
        self._nodes: OrderedDict[WorkloadKey, dict[str, Bad]] = OrderedDict()
        self._tries: OrderedDict[WorkloadKey, int] = OrderedDict()

    def add(self, key: WorkloadKey, node: str, why: str, now: float) -> None:
        """This node was no good for this workload."""
        with self._lock:
            self._nodes.setdefault(key, {})[node] = Bad(why, now + self.seconds)
            self._nodes.move_to_end(key)
            while len(self._nodes) > self._most:
                self._nodes.popitem(last=False)

    def stumble(self, key: WorkloadKey) -> int:
        """Something went wrong; how often it did before, since the last success."""
        with self._lock:
            before = self._tries.get(key, 0)
            self._tries[key] = before + 1
            self._tries.move_to_end(key)
            while len(self._tries) > self._most:
                self._tries.popitem(last=False)
            return before

    def success(self, key: WorkloadKey) -> None:
        """The count starts again; what is known of the nodes stays until it is old."""
        with self._lock:
            self._tries.pop(key, None)

    def tries(self, key: WorkloadKey) -> int:
        """How many bad experiences in a row."""
        return self._tries.get(key, 0)

    def nodes(self, uids: tuple[WorkloadKey, ...], now: float) -> Mapping[str, str]:
        """The nodes that pods with one of these uids avoid, with the reasons."""
        with self._lock:
            return {node: bad.why for uid in uids for node, bad in self._nodes.get(uid, {}).items() if bad.until > now}


class Holds:
    """The objects whose pods are not to get another job by themselves, and why: as long as the object is there."""

    def __init__(self, *, most: int = 10_000) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._why: OrderedDict[WorkloadKey, str] = OrderedDict()

    def __len__(self) -> int:
        return len(self._why)

    def put(self, key: WorkloadKey, why: str) -> None:
        """From now on; of too many those that were not asked about for longest are forgotten."""
        with self._lock:
            self._why[key] = why
            self._why.move_to_end(key)
            while len(self._why) > self._most:
                self._why.popitem(last=False)

    def get(self, key: WorkloadKey) -> str | None:
        """Why it is held, None when it is not."""
        with self._lock:
            if key in self._why:
                self._why.move_to_end(key)
            return self._why.get(key)

    def forget(self, gone: Object) -> None:
        """It was deleted."""
        meta = gone.metadata
        with self._lock:
            for kind in WATCHED if self._why else ():
                self._why.pop(workload_key(kind.kind, meta.namespace, meta.name, meta.uid), None)
