"""Nodes that are being cleared for a workload: others of ours keep away from them until it has them, or gives up."""

import dataclasses
import threading
from collections.abc import Mapping

from slurm_bridge.model.names import WorkloadKey

#: What the others are told, after a number of nodes.
WHY = "node(s) were cleared for another pod"
#: No pod has a priority so high: everybody keeps away.
HIGHEST = 2**31


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """`nodes` are for the workload with this uid, of this priority; `by` names who makes it and will end it.

    `why` is what others are told, after a number of nodes.
    """

    uid: WorkloadKey
    priority: int
    nodes: frozenset[str]
    by: str = ""
    why: str = WHY


class Promised:
    """All promises by the uid of whom they were made to, and by whom; any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._promises: dict[tuple[str, WorkloadKey], Promise] = {}
        self._crowded: set[WorkloadKey] = set()

    def make(self, promise: Promise) -> None:
        """From now on others keep away."""
        with self._lock:
            self._promises[promise.by, promise.uid] = promise

    def end(self, uid: WorkloadKey, by: str = "") -> None:
        """Its nodes are free to all, unless somebody else has promised them."""
        with self._lock:
            self._promises.pop((by, uid), None)

    def clear(self, by: str = "") -> None:
        """There are none by this one."""
        with self._lock:
            self._promises = {key: one for key, one in self._promises.items() if one.by != by}

    def crowds_out(self, uid: WorkloadKey) -> None:
        """This workload has no other nodes left."""
        with self._lock:
            self._crowded.add(uid)

    def returning(self) -> frozenset[WorkloadKey]:
        """Whoever had no other nodes left, to be looked at now that some are free; only once."""
        with self._lock:
            back, self._crowded = frozenset(self._crowded), set()
            return back

    @property
    def nodes(self) -> frozenset[str]:
        """All that are promised to somebody."""
        with self._lock:
            return frozenset().union(*(one.nodes for one in self._promises.values()))

    def away(self, uid: WorkloadKey, priority: int) -> Mapping[str, str]:
        """The nodes that this workload keeps away from: one of a higher priority than the promise ignores it.

        What is promised to itself, too, it does not keep away from: two would each wait for the other to give up.
        """
        if not self._promises:
            return {}
        with self._lock:
            every = tuple(self._promises.values())
        mine = frozenset[str]().union(*(one.nodes for one in every if one.uid == uid))
        theirs = [one for one in every if one.uid != uid and one.priority >= priority]
        return {node: one.why for one in theirs for node in sorted(one.nodes - mine)}
