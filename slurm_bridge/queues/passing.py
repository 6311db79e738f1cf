"""The allocation pass over one partition, step by step; a step gives one allocation or one reservation.

    0  those for whom something was preempted, each alone: on what they hold, then anywhere
    1  where nodes are held: queues, applications and asks in the usual order, those that hold nodes only
       a  each on what it holds      b  each on the nodes that nobody holds
    2  queues by their policy, in a leaf the applications by its policy, in an application the asks

What cannot be placed is passed over and holds nobody up. It is not looked at again before something has grown, or the
time has come for it to reserve: a pass over many that wait costs little more than those for whom something changed.
"""

import dataclasses
import math
from collections.abc import Iterable, Iterator

from slurm_bridge.queues import allocating, amounts, applications, crowding, sorting, tree
from slurm_bridge.queues.allocating import May
from slurm_bridge.queues.amounts import Amount, Known
from slurm_bridge.queues.applications import Application, Leaf, Size, Waiting
from slurm_bridge.queues.nodes import Node
from slurm_bridge.queues.partition import Partition
from slurm_bridge.queues.preempting.attempts import CHECK_EVERY
from slurm_bridge.queues.records import Allocation, AskId
from slurm_bridge.queues.tree import Queue, State
from slurm_bridge.queues.visits import Visit


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
    """The steps of one partition. Without `may` nobody is asked about nodes, and asks of one size find the same."""

    def __init__(self, partition: Partition, may: May | None = None) -> None:
        self._partition = partition
        self._alike = may is None
        self._may = may or allocating.anywhere
        #: What was searched for in vain in this state, and whether a node to hold was, too.
        self._in_vain: dict[Size, bool] = {}
        self._state = -1

    def step(self, now: float) -> Result | None:
        """One result, None where there is none to be had."""
        found = self._promised(now) if self._partition.flights else None
        if found is None and self._partition.holders:
            found = self._reserved(now)
        return found or self._regular(now)

    # -- 0: what others went for -------------------------------------------------------------------------------------

    def _promised(self, now: float) -> Result | None:
        for flight in self._partition.flights:
            waiting = self._partition.waiting(flight.asker)
            if waiting is not None and not crowding.awaits(self._partition, flight):
                visit = Visit(self._partition.leaf(flight.queue), flight.room(), self._partition)
                found = self._first(waiting, visit, now)
                if found is not None:
                    return found
        return None

    def _first(self, waiting: Waiting, visit: Visit, now: float) -> Result | None:
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
                if application.holding and now > application.refused_until:
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

    def _stands(self, waiting: Waiting, room: Known, now: float) -> bool:
        """It fits; one that does not loses what it has held for too long."""
        fits = amounts.fit_in_max_undefined(waiting.total, room)
        timeout = self._partition.rules.reservation_timeout
        for node, since in tuple(waiting.on.items()):
            if allocating.overdue(fits_headroom=fits, seconds=now - since, timeout=timeout):
                self._partition.unreserve(waiting, node)
        return fits

    def _own(self, waiting: Waiting) -> list[Node]:
        nodes = (self._partition.nodes.get(name) for name in waiting.on)
        return [node for node in nodes if node is not None and (node.schedulable or waiting.ask.required_node)]

    def _elsewhere(self, waiting: Waiting) -> Result | None:
        if self._was_in_vain(waiting, reserving=False):
            return None
        found = allocating.pick(
            waiting, self._in_order(waiting), reserving=False, may=self._may, score=self._score(waiting)
        )
        return self._allocate(waiting, found.nodes) if found.nodes else None

    # -- 2: everybody ------------------------------------------------------------------------------------------------

    def _regular(self, now: float) -> Result | None:
        for leaf, room in self._walk(self._partition.root, None):
            if not self._is_blocked(leaf.blocked, now):
                found = self._of_leaf(leaf, room, now)
                if found is not None:
                    return found
        return None

    def _of_leaf(self, leaf: Leaf, room: Known, now: float) -> Result | None:
        state, until, visit = self._partition.grown, math.inf, Visit(leaf, room, self._partition)
        for application in leaf.in_order():
            if not self._is_blocked(application.blocked, now):
                found = self._of_application(application, visit, now)
                if found is not None:
                    return found
            until = min(until, application.blocked[1])
        leaf.blocked = state, until
        return None

    def _is_blocked(self, blocked: applications.Blocked, now: float) -> bool:
        return blocked[0] == self._partition.grown and now <= blocked[1]

    def _of_application(self, application: Application, visit: Visit, now: float) -> Result | None:
        """Its asks in order; where nothing comes of any, it is remembered until when that is so."""
        state, until = self._partition.grown, math.inf
        paused = max(application.not_before, application.refused_until)
        if now <= paused:
            application.blocked = state, paused
            return None
        if application.running or self._may_start(application, visit):
            for waiting in self._tried(application, visit, now):
                found = self._of_ask(waiting, now)
                if found is not None:
                    return found
                until = min(until, self._turns_old(waiting, now))
        if visit.keeps:
            # What a guarantee has left for it becomes less without anything having grown.
            until = min(until, now + CHECK_EVERY)
        application.blocked = state, max(until, application.not_before)
        return None

    def _may_start(self, application: Application, visit: Visit) -> bool:
        """No queue and no limit of its user has as many applications as it may."""
        if not visit.starts:
            return False
        return not self._partition.limited or self._partition.limits.may_start(application.name) is None

    def _tried(self, application: Application, visit: Visit, now: float) -> Iterator[Waiting]:
        """The asks that fit the queue and its user's limits, until too many of them have found no node."""
        count = 0
        allowed = self._partition.limits.room(application.name) if self._partition.limited else None
        for waiting in application.in_order():
            if visit.fits(waiting) and amounts.fit_in_max_undefined(waiting.total, allowed):
                if visit.crowded and visit.keeps_back(waiting, now):
                    continue
                yield waiting
                count += 1
                if count == visit.backoff:
                    application.not_before = now + visit.leaf.queue.settings.backoff_delay
                    return

    def _turns_old(self, waiting: Waiting, now: float) -> float:
        """Until when it may not reserve; infinity for one that may already, or never will."""
        old = waiting.ask.created + self._partition.rules.reservation_delay
        return old if now <= old and not waiting.ask.required_node else math.inf

    def _of_ask(self, waiting: Waiting, now: float) -> Result | None:
        if waiting.ask.required_node:
            return self._required(waiting, now)
        delay, own = self._partition.rules.reservation_delay, self._own(waiting) if waiting.on else ()
        reserving = allocating.may_reserve(waiting, own, now=now, delay=delay)
        if self._was_in_vain(waiting, reserving=reserving):
            return None
        found = allocating.pick(
            waiting, self._in_order(waiting), reserving=reserving, may=self._may, score=self._score(waiting)
        )
        if found.nodes:
            return self._allocate(waiting, found.nodes)
        if found.reserve:
            return self._reserve(waiting, found.reserve, now)
        self._in_vain[self._key(waiting)] = reserving
        return None

    def _required(self, waiting: Waiting, now: float) -> Result | None:
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
        for child in sorting.sorted_queues(queue) if queue.children else ():
            yield from self._walk(child, room)

    def _in_order(self, waiting: Waiting) -> Iterable[Node]:
        return self._partition.nodes.ordered(self._sort(waiting))

    def _sort(self, waiting: Waiting) -> str:
        return self._partition.applications[waiting.ask.application].node_sort

    def _score(self, waiting: Waiting) -> allocating.Score:
        sort, nodes = self._sort(waiting), self._partition.nodes

        def score(node: Node, taken: Amount) -> tuple[float, str]:
            return nodes.score(sort, node, taken)

        return score

    def _placed(self, waiting: Waiting, nodes: Iterable[Node]) -> Result | None:
        found = allocating.place(waiting, nodes, self._may, self._score(waiting))
        return self._allocate(waiting, found) if found else None

    def _allocate(self, waiting: Waiting, nodes: tuple[str, ...]) -> Result:
        return Allocated(allocation=self._partition.allocate(waiting, nodes))

    def _reserve(self, waiting: Waiting, node: str, now: float) -> Result:
        self._partition.reserve(waiting, node, now)
        return Reserved(ask=waiting.id, node=node)

    def _key(self, waiting: Waiting) -> Size:
        return waiting.size if self._alike else waiting.kind

    def _was_in_vain(self, waiting: Waiting, *, reserving: bool) -> bool:
        """One like it has found nothing since something grew; what remains has only become less."""
        if self._state != self._partition.grown:
            self._state = self._partition.grown
            self._in_vain.clear()
        known = self._in_vain.get(self._key(waiting))
        return known is not None and (known or not reserving)
