"""The allocation pass over one partition, step by step; a step gives one allocation or one reservation.

    0  asks for which something was preempted, each alone: on what they hold, then anywhere
    1  where nodes are held: queues, applications and asks in the usual order, those that hold nodes only
       a  each on what it holds      b  each on the nodes that no ask holds
    2  queues by their policy, in a leaf the applications by its policy, in an application the asks

An ask that cannot be placed is passed over and holds up no other. It is not looked at again before something has grown
that it waits for, or the time has come for it to reserve: a pass over many that wait costs little more than those for
which something changed.
"""

import dataclasses
import math
from collections.abc import Iterable, Iterator

from slurm_bridge.families.yunikorn.queues import amounts, crowd, node_search, orders, tree
from slurm_bridge.families.yunikorn.queues.amounts import Amount, Known
from slurm_bridge.families.yunikorn.queues.applications import Application, PendingAsk
from slurm_bridge.families.yunikorn.queues.leaves import Leaf
from slurm_bridge.families.yunikorn.queues.node_search import May
from slurm_bridge.families.yunikorn.queues.nodes import PartitionNode
from slurm_bridge.families.yunikorn.queues.partition import QueuePartition
from slurm_bridge.families.yunikorn.queues.preemptors.attempts import CHECK_EVERY
from slurm_bridge.families.yunikorn.queues.records import Allocation, AskId
from slurm_bridge.families.yunikorn.queues.searches import Searches
from slurm_bridge.families.yunikorn.queues.tree import Queue, State
from slurm_bridge.families.yunikorn.queues.visits import Visit
from slurm_bridge.runtime import frozen_records


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Allocated:
    """The ask has its nodes, as far as the scheduler knows."""

    allocation: Allocation


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """The ask holds this node."""

    ask: AskId
    node: str


Result = Allocated | Reserved


class Passing:
    """The steps of one partition. Without `may` nodes are not asked about, and asks of one size find the same."""

    def __init__(self, partition: QueuePartition, may: May | None = None) -> None:
        self._partition = partition
        self._searches = Searches(partition, alike=may is None)
        self._may = may or node_search.anywhere

    def step(self, now: float) -> Result | None:
        """One result, None where there is none to be had."""
        if not self._partition.pending():
            return None
        found = self._promised(now) if self._partition.flights else None
        if found is None and self._partition.holders:
            found = self._reserved(now)
        return found or self._regular(now)

    # -- 0: what others went for -------------------------------------------------------------------------------------

    def _promised(self, now: float) -> Result | None:
        for flight in self._partition.flights:
            waiting = self._partition.waiting(flight.asker)
            if waiting is not None and not crowd.awaits(self._partition, flight):
                visit = Visit(self._partition.leaf(flight.queue), flight.room(), self._partition)
                found = self._first(waiting, visit, now)
                if found is not None:
                    return found
        return None

    def _first(self, waiting: PendingAsk, visit: Visit, now: float) -> Result | None:
        application = self._partition.applications[waiting.ask.application]
        paused = now <= application.refused_until or visit.leaf.queue.state is State.STOPPED
        if paused or not (application.running or self._may_start(application, visit)):
            return None
        room = amounts.smaller(visit.room, self._partition.limits.room(application.name))
        if not amounts.fit_in_max_undefined(waiting.total, room):
            return None
        found = self._placed(waiting, self._own(waiting)) if waiting.on else None
        return found or (None if waiting.ask.required_node else self._elsewhere(waiting))

    # -- 1: what is held ---------------------------------------------------------------------------------------------

    def _reserved(self, now: float) -> Result | None:
        wanted = self._partition.reserving()
        for leaf, room in self._walk(self._partition.root, None):
            if leaf.queue not in wanted:
                continue
            visit = Visit(leaf, room, self._partition)
            for application in leaf.in_order():
                if application.holders and now > application.refused_until:
                    found = self._from_held(application, visit, now)
                    if found is not None:
                        return found
        return None

    def _from_held(self, application: Application, visit: Visit, now: float) -> Result | None:
        if not application.running and not self._may_start(application, visit):
            return None
        room = amounts.smaller(visit.room, self._partition.limits.room(application.name))
        held = [one for one in application.in_order() if one.on and self._stands(one, room, now)]
        for waiting in held:
            found = self._placed(waiting, self._own(waiting))
            if found is not None:
                return found
        for waiting in held:
            found = None if waiting.ask.required_node else self._elsewhere(waiting)
            if found is not None:
                return found
        return None

    def _stands(self, waiting: PendingAsk, room: Known, now: float) -> bool:
        """It fits; one that does not loses what it has held for too long."""
        fits = amounts.fit_in_max_undefined(waiting.total, room)
        timeout = self._partition.rules.reservation_timeout
        for node, since in tuple(waiting.on.items()):
            if node_search.overdue(fits_headroom=fits, seconds=now - since, timeout=timeout):
                self._partition.unreserve(waiting, node)
        return fits

    def _own(self, waiting: PendingAsk) -> list[PartitionNode]:
        nodes = (self._partition.nodes.get(name) for name in waiting.on)
        return [node for node in nodes if node is not None and (node.schedulable or waiting.ask.required_node)]

    def _elsewhere(self, waiting: PendingAsk) -> Result | None:
        if self._searches.is_vain(waiting, reserving=False):
            return None
        found = self._pick(waiting, reserving=False)
        return self._allocate(waiting, found.nodes) if found.nodes else None

    # -- 2: all asks ------------------------------------------------------------------------------------------------

    def _regular(self, now: float) -> Result | None:
        for leaf, room in self._walk(self._partition.root, None):
            if leaf.grown != self._partition.grown:
                # Something has grown; whether that is of any use to this leaf.
                if not Visit(leaf, room, self._partition).stands(self._searches):
                    leaf.open()
                leaf.grown, leaf.unsettled = self._partition.grown, self._partition.unsettled
            if now > leaf.until:
                found = self._of_leaf(Visit(leaf, room, self._partition), now)
                if found is not None:
                    return found
        return None

    def _of_leaf(self, visit: Visit, now: float) -> Result | None:
        leaf, until = visit.leaf, math.inf
        for application in leaf.in_order():
            stands = application.blocked[0] == leaf.opened and now <= application.blocked[1]
            if application.fresh or not stands:
                found = self._of_application(application, visit, now, stands=stands)
                if found is not None:
                    return found
            until = min(until, application.blocked[1])
        leaf.until = until
        return None

    def _of_application(self, application: Application, visit: Visit, now: float, *, stands: bool) -> Result | None:
        """Its asks in order, where nothing came of them before the new ones only.

        Where nothing comes of any, it is remembered until when that is so.
        """
        state, until = visit.leaf.opened, application.blocked[1] if stands else math.inf
        paused = max(application.not_before, application.refused_until)
        if now <= paused:
            application.blocked = state, paused
            application.fresh.clear()
            return None
        if application.running or self._may_start(application, visit):
            asks = application.fresh_in_order() if stands else application.in_order()
            for waiting in self._tried(application, asks, visit, now):
                found = self._of_ask(waiting, visit, now)
                if found is not None:
                    return found
                old = waiting.ask.created + self._partition.rules.reservation_delay
                until = min(until, old if now <= old and not waiting.ask.required_node else math.inf)
        if visit.keeps:
            # What a guarantee has left for it becomes less without anything having grown.
            until = min(until, now + CHECK_EVERY)
            visit.leaf.obstacles.other = True
        application.blocked = state, max(until, application.not_before)
        application.fresh.clear()
        return None

    def _may_start(self, application: Application, visit: Visit) -> bool:
        """No queue and no limit of its user has as many applications as it may."""
        met, limits = visit.leaf.obstacles, self._partition.limits
        if not visit.starts:
            met.start = True
        elif self._partition.limited and limits.may_start(application.name) is not None:
            met.limited(limits.returned)
        else:
            return True
        return False

    def _tried(
        self, application: Application, asks: Iterator[PendingAsk], visit: Visit, now: float
    ) -> Iterator[PendingAsk]:
        """Those of the asks that fit the queue and its user's limits, until they have found no node too often.

        Every time that something is told of nodes counts as well, so that an application with a single ask pauses, too.
        """
        count, news, met = 0, self._partition.news, visit.leaf.obstacles
        allowed = self._partition.limits.room(application.name) if self._partition.limited else None
        for waiting in asks:
            if not visit.fits(waiting):
                met.unfit[waiting.size, waiting.ask.required_node] = waiting
            elif allowed is not None and not amounts.fit_in_max_undefined(waiting.total, allowed):
                met.limited(self._partition.limits.returned)
            elif not (visit.crowded and visit.keeps_back(waiting, now)):
                yield waiting
                count += 1
                if visit.backoff and count + news - application.tried_since >= visit.backoff:
                    application.not_before = now + visit.leaf.queue.settings.backoff_delay
                    application.tried_since = news
                    return

    def _of_ask(self, waiting: PendingAsk, visit: Visit, now: float) -> Result | None:
        met = visit.leaf.obstacles
        if waiting.ask.required_node:
            met.other = True
            return self._required(waiting, now)
        delay, own = self._partition.rules.reservation_delay, self._own(waiting) if waiting.on else ()
        reserving = node_search.may_reserve(waiting, own, now=now, delay=delay)
        if self._searches.is_vain(waiting, reserving=reserving):
            met.in_vain(self._searches.key(waiting), reserving=reserving)
            return None
        found = self._pick(waiting, reserving=reserving)
        if found.nodes:
            return self._allocate(waiting, found.nodes)
        if found.reserve:
            return self._reserve(waiting, found.reserve, now)
        self._searches.failed(waiting, reserving=reserving)
        met.in_vain(self._searches.key(waiting), reserving=reserving)
        return None

    def _required(self, waiting: PendingAsk, now: float) -> Result | None:
        """Its own node or none: those that could go elsewhere give way."""
        node = self._partition.nodes.get(waiting.ask.required_node)
        if waiting.on or node is None or not self._may(waiting, node, True):
            return None
        for holder in tuple(node.held):
            other = self._partition.holders[holder]
            if not other.ask.required_node:
                self._partition.unreserve(other, node.name)
        return self._placed(waiting, [node]) or self._reserve(waiting, node.name, now)

    # -- both --------------------------------------------------------------------------------------------------------

    def _walk(self, queue: Queue, above: Known) -> Iterator[tuple[Leaf, Known]]:
        """The leaves in which something waits, in order, with their headroom."""
        room = tree.headroom_under(queue, above)
        if queue.leaf:
            yield self._partition.leaf(queue), room
        for child in orders.sorted_queues(queue) if queue.children else ():
            yield from self._walk(child, room)

    def _pick(self, waiting: PendingAsk, *, reserving: bool) -> node_search.Pick:
        among = self._searches.nodes(waiting, self._sort(waiting), reserving=reserving)
        return node_search.pick(waiting, among, reserving=reserving, may=self._may, score=self._score(waiting))

    def _sort(self, waiting: PendingAsk) -> str:
        return self._partition.applications[waiting.ask.application].node_sort

    def _score(self, waiting: PendingAsk) -> node_search.Score:
        sort, nodes = self._sort(waiting), self._partition.nodes

        def score(node: PartitionNode, taken: Amount) -> tuple[float, str]:
            return nodes.score(sort, node, taken)

        return score

    def _placed(self, waiting: PendingAsk, nodes: Iterable[PartitionNode]) -> Result | None:
        found = node_search.place(waiting, nodes, self._may, self._score(waiting))
        return self._allocate(waiting, found) if found else None

    def _allocate(self, waiting: PendingAsk, nodes: tuple[str, ...]) -> Result:
        return Allocated(allocation=self._partition.allocate(waiting, nodes))

    def _reserve(self, waiting: PendingAsk, node: str, now: float) -> Result:
        self._partition.reserve(waiting, node, now)
        return Reserved(ask=waiting.id, node=node)
