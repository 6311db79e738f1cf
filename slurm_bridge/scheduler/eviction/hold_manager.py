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
from slurm_bridge.scheduler.census import Census
from slurm_bridge.scheduler.eviction.hold_table import HIGHEST, WHY, NodeHold
from slurm_bridge.scheduler.members import Standing
from slurm_bridge.scheduler.queue import Queue
from slurm_bridge.scheduler.tools import Tools

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

    def __init__(self, tools: Tools, census: Census, queue: Queue, terms: HoldTerms) -> None:
        self._tools, self._census, self._queue, self._terms = tools, census, queue, terms

    def begin(self) -> None:
        """A leadership begins, and nothing is held."""
        self._tools.promised.clear(self._terms.by)

    def nodes(self, workload: WorkloadKey) -> frozenset[str]:
        """What is held for this workload."""
        hold = self._hold(workload)
        return hold.nodes if hold is not None else frozenset()

    def keep(self, workload: WorkloadKey, nodes: Iterable[str], until: float = math.inf) -> None:
        """Hold these nodes, and what was held for it before, until then at most."""
        hold, crew = self._hold(workload), self._census.crew(workload)
        before = hold.nodes if hold is not None else frozenset[str]()
        every = before.union(nodes)
        if not every or crew is None or not crew.count(Standing.WANTING):
            return
        if hold is not None and every == before:
            hold.until = until
            return
        terms = self._terms
        priority = max(map(priority_of, crew.pods(Standing.WANTING))) if terms.outranked else HIGHEST
        hold = NodeHold(workload=workload, priority=priority, nodes=every, by=terms.by, why=terms.why, until=until)
        self._tools.promised.put(hold)
        hold.since, hold.others = self._tools.clock.now(), self._look_again(workload)

    def is_known(self, workload: WorkloadKey) -> bool:
        """Every other workload has been looked at since the nodes are held, and Slurm knows what it keeps away from."""
        hold = self._hold(workload)
        return hold is None or self._queue.idle(hold.others)

    def is_late(self, workload: WorkloadKey) -> bool:
        """The other workloads had time enough for that."""
        hold = self._hold(workload)
        return hold is not None and self._tools.clock.now() - hold.since >= HOLD_SECONDS

    def settle(self) -> None:
        """End the holds of workloads that have nodes, and those whose time is over."""
        now = self._tools.clock.now()
        for hold in self._tools.promised.made(self._terms.by):
            crew = self._census.crew(hold.workload)
            if now >= hold.until or crew is None or not crew.count(Standing.WANTING):
                self.end(hold.workload)

    def end(self, workload: WorkloadKey) -> None:
        """The nodes are free to all."""
        if self._tools.promised.end(workload, self._terms.by):
            self._look_again(workload)

    def _hold(self, workload: WorkloadKey) -> NodeHold | None:
        return self._tools.promised.get(workload, self._terms.by)

    def _look_again(self, but: WorkloadKey) -> tuple[WorkloadKey, ...]:
        """Workloads whose jobs wait tell Slurm what they keep away from; the others learn of it in their turn."""
        asking = {one for one in self._tools.states.waiting() if self._tools.table.of(one)} | self._queue.flying()
        asking |= self._tools.promised.returning()
        others = tuple(one for one in sorted(asking - {but}) if self._census.crew(one) is not None)
        for one in others:
            self._queue.activate(one, urgent=True)
        return others
