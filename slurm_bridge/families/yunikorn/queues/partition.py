"""The scheduler's state of one partition: its queues, applications, nodes and reservations, with what is in flight.

Everything here has its inverse. `grown` counts what may have made something possible: as long as it stays the same,
what could not be placed cannot be placed now either, and need not be looked at again. `unsettled` counts what may have
done so in any way; else only those are looked at again for which something has changed.
"""

import dataclasses
import math
from collections.abc import Hashable, Mapping

from slurm_bridge.families.yunikorn.queues import amounts, applications, records
from slurm_bridge.families.yunikorn.queues.applications import Application, PendingAsk
from slurm_bridge.families.yunikorn.queues.config import documents
from slurm_bridge.families.yunikorn.queues.flights import Flights
from slurm_bridge.families.yunikorn.queues.leaves import Leaf
from slurm_bridge.families.yunikorn.queues.limits import MeasuredLimits
from slurm_bridge.families.yunikorn.queues.nodes import NodesOfPartition, NodeSort
from slurm_bridge.families.yunikorn.queues.records import Allocation, AllocationAsk, AskId, NodeMode
from slurm_bridge.families.yunikorn.queues.standings import Standings
from slurm_bridge.families.yunikorn.queues.tree import Queue

_UNLIMITED = documents.QueueDocument(name=documents.ROOT)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AllocationRules:
    """How it allocates, in seconds. `node_sort`: of applications without their own; `alike`: without predicates."""

    mode: NodeMode = NodeMode.FREE
    node_sort: str = "fair"
    reservation_delay: float = 2.0
    reservation_timeout: float = 3600.0
    preempts: bool = False
    alike: bool = False


class QueuePartition:
    """One thread at a time changes it."""

    def __init__(
        self,
        root: Queue,
        sorts: Mapping[str, NodeSort],
        rules: AllocationRules,
        configured: documents.QueueDocument | None = None,
    ) -> None:
        self.root = root
        self.rules = rules
        self.limits = MeasuredLimits(configured or _UNLIMITED)
        # Most partitions need not ask for every application.
        self.limited = bool(self.limits)
        self.nodes = NodesOfPartition(sorts, rules.mode)
        self.applications: dict[str, Application] = {}
        #: Asks that hold nodes.
        self.holders: dict[AskId, PendingAsk] = {}
        self.standing = Standings(behind=rules.mode is NodeMode.ALLOCATABLE)
        self.flights = Flights()  # askers with their victims
        self.vain: dict[Hashable, float] = {}  # kinds of asks for which no eviction makes room, until when
        self.grown = self.unsettled = 0
        self.news = 0  # how often something was told of a node
        self._leaves: dict[Queue, Leaf] = {}

    def follow(
        self, rules: AllocationRules, sorts: Mapping[str, NodeSort], configured: documents.QueueDocument
    ) -> None:
        """It is configured so from now on; its tree has been changed already."""
        self.rules = rules
        self.nodes.sort_by(sorts)
        self.limits.configure(configured)
        self.limited = bool(self.limits)
        self.unsettle()

    # -- nodes -------------------------------------------------------------------------------------------------------

    def put_node(self, record: records.NodeReport) -> None:
        """A new node, or other facts about a known one."""
        self.nodes.put(record)
        self.news += 1
        if not self.nodes.are_shared_out:
            # What was missing there was no room, but a place with the other scheduler: there may be one now.
            for application in self.applications.values():
                if application.not_before > -math.inf:
                    application.not_before, application.tried_since = -math.inf, self.news
        self._resize()

    def remove_node(self, name: str) -> None:
        """Forget it with all that is on it and all asks that hold it; a gang keeps its other members."""
        node = self.nodes.get(name)
        if node is None:
            return
        self.give_up(name)
        on_it = tuple(node.allocations.values())
        for allocation in on_it:
            self.release(allocation.ask.id)
        self.nodes.remove(name)
        for allocation in on_it:
            rest = tuple(one for one in allocation.nodes if one != name)
            if rest:
                self.adopt(dataclasses.replace(allocation, nodes=rest))
        self._resize()

    def _resize(self) -> None:
        if self.rules.mode is NodeMode.FREE:
            self.root.resize(self.nodes.total)
        elif self.nodes.total != self.root.measured:
            self.root.measure(self.nodes.total)
        self.unsettle()

    # -- applications ------------------------------------------------------------------------------------------------

    def add_application(self, record: records.Application, queue: Queue) -> Application:
        """Let it wait in its leaf."""
        application = Application(record, queue, record.node_sort or self.rules.node_sort)
        application.tried_since = self.news
        self.applications[record.name] = application
        self.limits.enter(record.name, queue.path, record.user, record.groups)
        self._refresh(application)
        return application

    def remove_application(self, name: str) -> None:
        """It goes with its asks, reservations and allocations."""
        application = self.applications.get(name)
        if application is None:
            return
        for key in tuple(application.asks):
            self.withdraw(application, key)
        for allocation in tuple(application.allocations.values()):
            self.release(allocation.ask.id)
        self.flights.end_all(name)
        if application.running:
            application.queue.finish()
        self.limits.leave(name)
        self.leaf(application.queue).drop(application)
        del self.applications[name]
        self.grown += 1

    def leaf(self, queue: Queue) -> Leaf:
        """The applications of a leaf queue."""
        if queue not in self._leaves:
            self._leaves[queue] = Leaf(queue)
        return self._leaves[queue]

    def forget(self, queue: Queue) -> None:
        """The queue is gone."""
        self._leaves.pop(queue, None)

    def _refresh(self, application: Application) -> None:
        """Its place, and that of its queue, follow its asks and allocations."""
        self.leaf(application.queue).put(application)

    # -- asks --------------------------------------------------------------------------------------------------------

    def add_ask(self, ask: AllocationAsk) -> PendingAsk:
        """Let it wait; one with its key is replaced, unless it is the same."""
        application = self.applications[ask.application]
        known = application.asks.get(ask.key)
        if known is not None and known.ask == ask:
            return known
        self.withdraw(application, ask.key)
        waiting = application.add(ask)
        application.queue.add_pending(waiting.total)
        self.leaf(application.queue).until = -math.inf
        self._refresh(application)
        return waiting

    def withdraw(self, application: Application, key: str) -> None:
        """It waits no longer, and holds nothing."""
        if self._take_out(application, key):
            self._refresh(application)

    def _take_out(self, application: Application, key: str) -> bool:
        """Whether there was one; the place of its application has to follow."""
        record = application.record
        if self.flights and self.flights.end(AskId(partition=record.partition, application=record.name, key=key)):
            self.grown += 1
        waiting = application.asks.get(key)
        if waiting is None:
            return False
        for node in tuple(waiting.on):
            self.unreserve(waiting, node)
        application.drop(key)
        application.queue.remove_pending(waiting.total)
        return True

    # -- reservations ------------------------------------------------------------------------------------------------

    def reserve(self, waiting: PendingAsk, node: str, now: float) -> None:
        """Keep the node for it."""
        if not waiting.on:
            self.holders[waiting.id] = waiting
            self.applications[waiting.ask.application].holders += 1
        waiting.on[node] = now
        self.nodes.hold(node, waiting.id, now)

    def unreserve(self, waiting: PendingAsk, node: str) -> None:
        """The inverse of `reserve`."""
        del waiting.on[node]
        if not waiting.on:
            del self.holders[waiting.id]
            self.applications[waiting.ask.application].holders -= 1
        self.nodes.let_go(node, waiting.id)
        self.unsettle()

    def give_up(self, name: str) -> None:
        """No ask holds the node any more."""
        for holder in tuple(self.nodes[name].held):
            self.unreserve(self.holders[holder], name)

    # -- allocations -------------------------------------------------------------------------------------------------

    def allocate(self, waiting: PendingAsk, nodes: tuple[str, ...]) -> Allocation:
        """The ask has its nodes; whether that stands, others say."""
        allocation = Allocation(ask=waiting.ask, nodes=nodes)
        self.adopt(allocation)
        return allocation

    def adopt(self, allocation: Allocation) -> None:
        """Count what stands, of any origin; its ask, if it still waited here, waits no longer."""
        application = self.applications[allocation.ask.application]
        self._take_out(application, allocation.ask.key)
        application.take(allocation)
        application.tried_since = self.news
        amount = applications.total(allocation)
        application.queue.allocate(amount)
        self.limits.allocate(application.name, amount)
        self.nodes.add(allocation)
        self.standing.add(application.queue, allocation)
        if not application.running:
            application.running = True
            self.leaf(application.queue).wake(application)
            application.queue.start()
            self.limits.start(application.name)
        self._refresh(application)

    def release(self, allocation_id: AskId) -> Allocation | None:
        """The inverse of `adopt`, except that the application goes on running; None where there is none."""
        application = self.applications.get(allocation_id.application)
        if application is None or allocation_id.key not in application.allocations:
            return None
        self.flights.gone(allocation_id)
        self.spare(allocation_id)
        self.standing.drop(allocation_id)
        allocation = application.give_back(allocation_id.key)
        amount = applications.total(allocation)
        application.queue.release(amount)
        self.limits.release(application.name, amount)
        self.nodes.take_off(allocation)
        self._refresh(application)
        self.grown += 1
        return allocation

    def undo(self, allocation: Allocation, *, again: AllocationAsk | None) -> None:
        """The inverse of `allocate`, even if its node has gone meanwhile; this ask waits `again`, as old as it is."""
        application = self.applications.get(allocation.ask.application)
        if application is None:
            return
        self.release(allocation.ask.id)
        # The caller that undoes it may also set the pause anew.
        self.leaf(application.queue).wake(application)
        if application.running and not application.ran and not application.allocations:
            application.running = False
            application.queue.finish()
            self.limits.finish(application.name)
        if again is not None:
            self.add_ask(again)

    # -- preemption --------------------------------------------------------------------------------------------------

    def evict(self, allocation_id: AskId) -> bool:
        """It is to go; its room is not free before it has gone. False where it is gone, or is to go already."""
        application = self.applications.get(allocation_id.application)
        allocation = application.allocations.get(allocation_id.key) if application else None
        if application is None or allocation is None or allocation_id.key in application.preempting:
            return False
        application.preempting.add(allocation_id.key)
        application.queue.mark_preempting(applications.total(allocation))
        self.standing.mark(allocation_id)
        return True

    def spare(self, allocation_id: AskId) -> None:
        """The inverse of `evict`; nothing where it was not to go."""
        application = self.applications.get(allocation_id.application)
        if application is None or allocation_id.key not in application.preempting:
            return
        application.preempting.remove(allocation_id.key)
        application.queue.unmark_preempting(applications.total(application.allocations[allocation_id.key]))
        self.standing.unmark(allocation_id)
        self.flights.spared(allocation_id)

    def is_to_go(self, allocation_id: AskId) -> bool:
        """It is being evicted, and still there."""
        application = self.applications.get(allocation_id.application)
        return application is not None and allocation_id.key in application.preempting

    def unsettle(self) -> None:
        """All waiting asks are to be looked at again."""
        self.unsettled += 1
        self.grown += 1

    def land(self) -> int:
        """A pass is over: all askers whose victims have gone were tried; how many there were."""
        landed = self.flights.land()
        self.grown += landed
        return landed

    # -- what may be tried -------------------------------------------------------------------------------------------

    def reserving(self) -> frozenset[Queue]:
        """The queues with asks that hold nodes, here or below."""
        leaves = {self.applications[holder.application].queue for holder in self.holders}
        return frozenset(queue for leaf in leaves for queue in leaf.lineage)

    def waiting(self, ask_id: AskId) -> PendingAsk | None:
        """The ask of this id, None where none waits."""
        application = self.applications.get(ask_id.application)
        return application.asks.get(ask_id.key) if application else None

    def pending(self) -> bool:
        """An ask waits."""
        return not amounts.is_empty(self.root.pending)
