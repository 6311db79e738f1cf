"""Nodes that are held for a workload while others leave them, or until others have left."""

import itertools
from collections.abc import Mapping

from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.scheduler.eviction.cases import NodeHold
from slurm_bridge.scheduler.state import WorkloadStore

#: No pod has a priority so high: every other workload keeps away.
HIGHEST = 2**31


class HoldTable:
    """All holds, in the order in which they were made; those of a workload lie in its record. Any thread."""

    def __init__(self, states: WorkloadStore) -> None:
        self._states = states
        self._numbers = itertools.count()
        self._holds: dict[int, NodeHold] = {}
        self._crowded: list[WorkloadKey] = []

    def put(self, hold: NodeHold) -> None:
        """From now on others keep away; it takes the place of an earlier hold by the same part."""
        with self._states.lock:
            state, before = self._states.open(hold.workload), self.get(hold.workload, hold.by)
            hold.number = before.number if before is not None else next(self._numbers)
            state.holds = (*(one for one in state.holds if one is not before), hold)
            self._holds[hold.number] = hold

    def get(self, workload: WorkloadKey, by: str) -> NodeHold | None:
        """The hold of this part for this workload."""
        state = self._states.find(workload)
        return next((one for one in state.holds if one.by == by), None) if state is not None else None

    def made(self, by: str) -> tuple[NodeHold, ...]:
        """All holds of this part."""
        with self._states.lock:
            return tuple(one for one in self._holds.values() if one.by == by)

    def end(self, workload: WorkloadKey, by: str) -> bool:
        """The nodes are free to all, unless another part holds them; whether there was a hold."""
        with self._states.lock:
            hold = self.get(workload, by)
            if hold is None:
                return False
            state = self._states.open(workload)
            state.holds = tuple(one for one in state.holds if one is not hold)
            del self._holds[hold.number]
            self._states.close(workload)
            return True

    def end_all(self, workload: WorkloadKey) -> None:
        """No part holds nodes for this workload any more."""
        state = self._states.find(workload)
        for hold in state.holds if state is not None else ():
            self.end(workload, hold.by)

    def clear(self, by: str) -> None:
        """All holds of this part end."""
        with self._states.lock:
            for hold in self.made(by):
                self.end(hold.workload, by)

    def crowds_out(self, workload: WorkloadKey) -> None:
        """This workload has no other nodes left."""
        with self._states.lock:
            state = self._states.open(workload)
            if not state.crowded_out:
                state.crowded_out = True
                self._crowded.append(workload)

    def returning(self) -> frozenset[WorkloadKey]:
        """Workloads that had no other nodes left, to be looked at now that some are free; only once."""
        with self._states.lock:
            back, self._crowded = frozenset(self._crowded), []
            for key in back:
                self._states.open(key).crowded_out = False
                self._states.close(key)
            return back

    @property
    def nodes(self) -> frozenset[str]:
        """All nodes that are held."""
        with self._states.lock:
            return frozenset().union(*(one.nodes for one in self._holds.values()))

    def away(self, workload: WorkloadKey, priority: int) -> Mapping[str, str]:
        """The nodes that a workload of this priority keeps away from, and why.

        A node that is held for the workload itself, too, is none of them: two workloads would wait for each other.
        """
        if not self._holds:
            return {}
        with self._states.lock:
            every = tuple(self._holds.values())
        own = frozenset[str]().union(*(one.nodes for one in every if one.workload == workload))
        theirs = [one for one in every if one.workload != workload and one.priority >= priority]
        return {node: one.why for one in theirs for node in sorted(one.nodes - own)}
