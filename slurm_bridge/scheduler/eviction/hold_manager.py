"""Holding nodes for one workload while others leave them: other workloads of the bridge keep away from them.

Slurm gives a node that comes free to the first job in its queue. So nodes are held before any pod is evicted, and no
longer than a while after the last one has left: the workload may have got other nodes, or wait for something else.

    taken     every request that is planned from now on excludes the nodes
    known     every workload whose job was pending, or in flight, has been looked at: Slurm knows what it excludes
    ended     the workload has nodes, the time of the hold is over, or its maker ends it: the others are looked at again
"""

import dataclasses
import math
from collections.abc import Iterable

from slurm_bridge.cluster.parties import priority_of
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.eviction.cases import WHY, NodeHold
from slurm_bridge.scheduler.eviction.hold_table import HIGHEST
from slurm_bridge.scheduler.pod_index import PodIndex
from slurm_bridge.scheduler.queue import WorkQueue
from slurm_bridge.scheduler.workload_pods import PodState

#: Workloads that have to learn of a hold are waited for at most so long.
HOLD_SECONDS = 30.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HoldTerms:
    """`by` names the maker of the holds, `why` is what others are told.

    `outranked`: a workload of a higher priority goes there all the same. What a queue is entitled to has nothing to do
    with the priority of the next workload of another queue.
    """

    by: str
    why: str = WHY
    outranked: bool = False


class HoldManager:
    """Takes and ends the holds of one maker; used by one thread at a time. Other holds are left alone."""

    def __init__(self, context: SchedulerContext, pod_index: PodIndex, queue: WorkQueue, terms: HoldTerms) -> None:
        self._context, self._pod_index, self._queue, self._terms = context, pod_index, queue, terms

    def begin(self) -> None:
        """A leadership begins, and nothing is held."""
        self._context.promised.clear(self._terms.by)

    def nodes(self, workload: WorkloadKey) -> frozenset[str]:
        """What is held for this workload."""
        hold = self._hold(workload)
        return hold.nodes if hold is not None else frozenset()

    def keep(self, workload: WorkloadKey, nodes: Iterable[str], until: float = math.inf) -> None:
        """Hold these nodes, and what was held for it before, until then at most."""
        hold, members = self._hold(workload), self._pod_index.workload(workload)
        before = hold.nodes if hold is not None else frozenset[str]()
        every = before.union(nodes)
        if not every or members is None or not members.count(PodState.WANTING):
            return
        if hold is not None and every == before:
            hold.until = until
            return
        terms = self._terms
        priority = max(map(priority_of, members.pods(PodState.WANTING))) if terms.outranked else HIGHEST
        hold = NodeHold(workload=workload, priority=priority, nodes=every, by=terms.by, why=terms.why, until=until)
        self._context.promised.put(hold)
        hold.since, hold.others = self._context.clock.now(), self._look_again(workload)

    def is_known(self, workload: WorkloadKey) -> bool:
        """Every other workload has been looked at since the nodes are held, and Slurm knows what it keeps away from."""
        hold = self._hold(workload)
        return hold is None or self._queue.idle(hold.others)

    def is_late(self, workload: WorkloadKey) -> bool:
        """The other workloads had time enough for that."""
        hold = self._hold(workload)
        return hold is not None and self._context.clock.now() - hold.since >= HOLD_SECONDS

    def settle(self) -> None:
        """End the holds of workloads that have nodes, and those whose time is over."""
        now = self._context.clock.now()
        for hold in self._context.promised.made(self._terms.by):
            members = self._pod_index.workload(hold.workload)
            if now >= hold.until or members is None or not members.count(PodState.WANTING):
                self.end(hold.workload)

    def end(self, workload: WorkloadKey) -> None:
        """The nodes are free to all."""
        if self._context.promised.end(workload, self._terms.by):
            self._look_again(workload)

    def _hold(self, workload: WorkloadKey) -> NodeHold | None:
        return self._context.promised.get(workload, self._terms.by)

    def _look_again(self, but: WorkloadKey) -> tuple[WorkloadKey, ...]:
        """Workloads whose jobs wait tell Slurm what they keep away from; the others learn of it in their turn."""
        asking = {one for one in self._context.states.waiting() if self._context.table.of(one)} | self._queue.flying()
        asking |= self._context.promised.returning()
        others = tuple(one for one in sorted(asking - {but}) if self._pod_index.workload(one) is not None)
        for one in others:
            self._queue.activate(one, urgent=True)
        return others
