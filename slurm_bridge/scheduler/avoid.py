"""What went wrong with a workload on which node, so that the next attempt goes elsewhere, and how often in a row.

A node is avoided for a while only: it may be repaired, and the memory is bounded. It is filed under the controller,
because a pod that a kubelet refused is replaced by another of the same kind.
"""

import dataclasses
import threading
from collections import OrderedDict
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True, slots=True)
class Bad:
    """One experience."""

    why: str
    until: float


class Avoided:
    """Nodes by the uid of a workload or its controller."""

    def __init__(self, *, seconds: float = 600.0, most: int = 10_000) -> None:
        self.seconds, self._most = seconds, most
        self._lock = threading.Lock()
        self._nodes: OrderedDict[str, dict[str, Bad]] = OrderedDict()
        self._tries: OrderedDict[str, int] = OrderedDict()

    def add(self, uid: str, node: str, why: str, now: float) -> None:
        """This node was no good for this workload."""
        with self._lock:
            self._nodes.setdefault(uid, {})[node] = Bad(why, now + self.seconds)
            self._nodes.move_to_end(uid)
            while len(self._nodes) > self._most:
                self._nodes.popitem(last=False)

    def stumble(self, uid: str) -> int:
        """Something went wrong; how often it did before, since the last success."""
        with self._lock:
            before = self._tries.get(uid, 0)
            self._tries[uid] = before + 1
            self._tries.move_to_end(uid)
            while len(self._tries) > self._most:
                self._tries.popitem(last=False)
            return before

    def success(self, uid: str) -> None:
        """The count starts again; what is known of the nodes stays until it is old."""
        with self._lock:
            self._tries.pop(uid, None)

    def tries(self, uid: str) -> int:
        """How many bad experiences in a row."""
        return self._tries.get(uid, 0)

    def nodes(self, uids: tuple[str, ...], now: float) -> Mapping[str, str]:
        """The nodes to avoid for whoever has one of these uids, with the reason."""
        with self._lock:
            return {node: bad.why for uid in uids for node, bad in self._nodes.get(uid, {}).items() if bad.until > now}
