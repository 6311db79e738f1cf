"""Nodes that are held for a workload while others leave them, or until others have left."""

import dataclasses
import threading
from collections.abc import Mapping

from slurm_bridge.model.names import WorkloadKey

#: Why others keep away, after a number of nodes.
WHY = "node(s) were cleared for another pod"
#: No pod has a priority so high: every other workload keeps away.
HIGHEST = 2**31


@dataclasses.dataclass(slots=True, kw_only=True)
class NodeHold:
    """`nodes` are free for this workload only; a workload of a priority above `priority` ignores that.

    `by` names the part of the scheduler that has made the hold and ends it, `why` is what others are told.
    `others`: the workloads that were looked at, since then, so that Slurm knows that they keep away; `until` when the
    hold lasts at most.
    """

    workload: WorkloadKey
    priority: int
    nodes: frozenset[str]
    by: str
    why: str = WHY
    until: float = float("inf")
    since: float = 0.0
    others: tuple[WorkloadKey, ...] = ()


class HoldTable:
    """All holds by the part that made them, and by workload; any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holds: dict[tuple[str, WorkloadKey], NodeHold] = {}
        self._crowded: set[WorkloadKey] = set()

    def put(self, hold: NodeHold) -> None:
        """From now on others keep away; it takes the place of an earlier hold by the same part."""
        with self._lock:
            self._holds[hold.by, hold.workload] = hold

    def get(self, workload: WorkloadKey, by: str) -> NodeHold | None:
        """The hold of this part for this workload."""
        return self._holds.get((by, workload))

    def made(self, by: str) -> tuple[NodeHold, ...]:
        """All holds of this part."""
        with self._lock:
            return tuple(one for one in self._holds.values() if one.by == by)

    def end(self, workload: WorkloadKey, by: str) -> bool:
        """The nodes are free to all, unless another part holds them; whether there was a hold."""
        with self._lock:
            return self._holds.pop((by, workload), None) is not None

    def clear(self, by: str) -> None:
        """All holds of this part end."""
        with self._lock:
            self._holds = {key: one for key, one in self._holds.items() if one.by != by}

    def crowds_out(self, workload: WorkloadKey) -> None:
        """This workload has no other nodes left."""
        with self._lock:
            self._crowded.add(workload)

    def returning(self) -> frozenset[WorkloadKey]:
        """Workloads that had no other nodes left, to be looked at now that some are free; only once."""
        with self._lock:
            back, self._crowded = frozenset(self._crowded), set()
            return back

    @property
    def nodes(self) -> frozenset[str]:
        """All nodes that are held."""
        with self._lock:
            return frozenset().union(*(one.nodes for one in self._holds.values()))

    def away(self, workload: WorkloadKey, priority: int) -> Mapping[str, str]:
        """The nodes that a workload of this priority keeps away from, and why.

        A node that is held for the workload itself, too, is none of them: two workloads would wait for each other.
        """
        if not self._holds:
            return {}
        with self._lock:
            every = tuple(self._holds.values())
        own = frozenset[str]().union(*(one.nodes for one in every if one.workload == workload))
        theirs = [one for one in every if one.workload != workload and one.priority >= priority]
        return {node: one.why for one in theirs for node in sorted(one.nodes - own)}
