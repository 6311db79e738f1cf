"""Nodes that are being cleared for a workload: others of ours keep away from them until it has them, or gives up."""

import dataclasses
import threading
from collections.abc import Mapping

#: What the others are told, after a number of nodes.
WHY = "node(s) were cleared for a pod of a higher priority"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """`nodes` are for the workload with this uid, of this priority."""

    uid: str
    priority: int
    nodes: frozenset[str]


class Promised:
    """All promises by the uid of whom they were made to; any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._promises: dict[str, Promise] = {}

    def make(self, promise: Promise) -> None:
        """From now on others keep away."""
        with self._lock:
            self._promises[promise.uid] = promise

    def end(self, uid: str) -> None:
        """Its nodes are free to all."""
        with self._lock:
            self._promises.pop(uid, None)

    def clear(self) -> None:
        """There are none."""
        with self._lock:
            self._promises.clear()

    @property
    def nodes(self) -> frozenset[str]:
        """All that are promised to somebody."""
        with self._lock:
            return frozenset().union(*(one.nodes for one in self._promises.values()))

    def away(self, uid: str, priority: int) -> Mapping[str, str]:
        """The nodes that this workload keeps away from: one of a higher priority than the promise ignores it."""
        if not self._promises:
            return {}
        with self._lock:
            theirs = [one for one in self._promises.values() if one.uid != uid and one.priority >= priority]
        return {node: WHY for one in theirs for node in one.nodes}
