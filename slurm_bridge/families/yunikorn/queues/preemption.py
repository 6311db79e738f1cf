"""When something is preempted in a partition: attempts for asks that are entitled to it by a guarantee.

Attempts cost, so few are made at a time: only for asks that wait long enough in queues with something left of a
guarantee, and of those that are alike only one in a while, when the last of them was in vain.

    each second    the leaves with such a guarantee, in the order of a pass, in each of them the asks in theirs
    15 s later     refused asks are tried again, and asks that still wait though all victims have gone
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

from slurm_bridge.families.yunikorn.queues import amounts, crowd, orders, tree
from slurm_bridge.families.yunikorn.queues.applications import Application, PendingAsk
from slurm_bridge.families.yunikorn.queues.config.documents import PreemptionDocument as Settings
from slurm_bridge.families.yunikorn.queues.nodes import PartitionNode
from slurm_bridge.families.yunikorn.queues.partition import QueuePartition
from slurm_bridge.families.yunikorn.queues.plans import PreemptionPlan
from slurm_bridge.families.yunikorn.queues.preemptors import attempts, required
from slurm_bridge.families.yunikorn.queues.preemptors.facts import (
    Asker,
    AttemptAllocation,
    AttemptNode,
    AttemptRefused,
    AttemptScene,
    ImaginedNode,
    Outcome,
    Planned,
    Reason,
    WaysToRoom,
)
from slurm_bridge.families.yunikorn.queues.quotas import Quotas
from slurm_bridge.families.yunikorn.queues.records import AskId, RoomQuestion, Rooms, Ways
from slurm_bridge.families.yunikorn.queues.tree import Queue

#: Between two looks of which the first has found nothing, in seconds; attempts of a look; asks of a leaf it goes by.
LOOK_EVERY = 1.0
MOST_ATTEMPTS = 4
MOST_ASKS = 1_000

#: Whether a member of the ask may run on the node once these have gone.
WouldDo = Callable[[PendingAsk, str, tuple[AskId, ...]], bool]


class PartitionPreemption:
    """A preemptor for one partition, which remembers what it tried."""

    def __init__(self, settings: Settings, would_do: WouldDo, rooms: Rooms | None = None) -> None:
        self.quotas = Quotas()
        self._settings = settings
        self._would_do = would_do
        self._rooms = rooms
        self._next_look = 0.0
        #: When an attempt was made last: in vain for those that are alike, at all for an ask.
        self._tried: dict[Hashable, float] = {}
        #: Asks for which it was not known yet what would make room: the others come before these.
        self._put_off: set[AskId] = set()

    def follow(self, settings: Settings, lowered: Iterable[Queue], now: float) -> None:
        """It is configured so from now on, and the maxima of these queues were lowered."""
        self._settings = settings
        for queue in lowered:
            self.quotas.lowered(queue, now)

    def __call__(self, partition: QueuePartition, now: float) -> Iterator[PreemptionPlan]:
        """What is to be done, each plan made after the one before it was carried out."""
        if self._settings.quota and self.quotas:
            yield from self.quotas.plans(partition, now)
        if self._settings.enabled and now >= self._next_look and partition.pending():
            yield from self._for_asks(partition, now)

    # -- for waiting asks --------------------------------------------------------------------------------------------

    def _for_asks(self, partition: QueuePartition, now: float) -> Iterator[PreemptionPlan]:
        self._tried = {key: at for key, at in self._tried.items() if now < at + attempts.CHECK_EVERY}
        again = False
        left = MOST_ATTEMPTS
        for waiting in self._in_turn(partition, now):
            outcome = self._attempt(partition, waiting, now)
            if isinstance(outcome, AttemptRefused) and outcome.reason is Reason.NOT_YET:
                # Mostly that is so for all of them: each attempt of this look would be in vain.
                self._put_off.add(waiting.id)
                again = True
                break
            self._tried[waiting.id] = now
            if isinstance(outcome, Planned):
                again = True
                nodes = tuple(dict.fromkeys(outcome.nodes)) if partition.nodes.are_shared_out else ()
                yield PreemptionPlan(
                    victims=_keys(outcome.victims), message=outcome.message, asker=waiting.id, nodes=nodes
                )
            else:
                # Which nodes have room is another question for an ask of the same size that may run elsewhere.
                alike = waiting.id if outcome.reason is Reason.NO_ROOM else crowd.kind(partition, waiting)
                self._tried[alike] = now
                _give_up(partition, waiting, alike, now)
            left -= 1
            if not left:
                break
        # An ask that got room changes what there is for the next ones: they need not wait.
        self._next_look = now if again else now + LOOK_EVERY

    def _in_turn(self, partition: QueuePartition, now: float) -> Iterator[PendingAsk]:
        """All candidates: one of which nothing is known yet for long holds up no other."""
        yield from self._candidates(partition, now, lambda one: one not in self._put_off)
        late, self._put_off = self._put_off, set()
        if late:
            yield from self._candidates(partition, now, late.__contains__)

    def _candidates(
        self, partition: QueuePartition, now: float, among: Callable[[AskId], bool]
    ) -> Iterator[PendingAsk]:
        """Those that an attempt may be made for; what was carried out since the last one counts already."""
        bound = [one for one in partition.holders.values() if one.ask.required_node and among(one.id)]
        for waiting in bound:
            if self._may_try_required(partition, waiting, now):
                yield waiting
        for leaf in _entitled(partition, partition.root):
            for application, waiting in _first(partition, leaf):
                if not among(waiting.id):
                    continue
                # Nothing but room keeps it from being served.
                allowed = self._is_allowed(partition, waiting, leaf, now) and _may_start(partition, application, now)
                room = partition.limits.room(application.name) if allowed and partition.limited else None
                if allowed and amounts.fit_in_max_undefined(waiting.total, room):
                    yield waiting

    def _is_allowed(self, partition: QueuePartition, waiting: PendingAsk, leaf: Queue, now: float) -> bool:
        if not waiting.ask.allow_preempt_other or now < waiting.ask.since + leaf.preemption_delay:
            return False
        if waiting.id in self._tried or crowd.kind(partition, waiting) in self._tried:
            return False
        asker = _asker(partition, waiting)
        return attempts.is_allowed(asker, now=now, delay=leaf.preemption_delay) and not attempts.is_hopeless(
            asker, crowd.promised(partition, leaf)
        )

    def _may_try_required(self, partition: QueuePartition, waiting: PendingAsk, now: float) -> bool:
        """It need not wait for its turn: it can run nowhere else, and holds its node already."""
        application = partition.applications[waiting.ask.application]
        may = waiting.ask.allow_preempt_other and waiting.id not in partition.flights and waiting.id not in self._tried
        room = tree.max_headroom(application.queue)
        return may and amounts.fit_in_max_undefined(waiting.total, room) and _may_start(partition, application, now)

    # -- one attempt -------------------------------------------------------------------------------------------------

    def _attempt(self, partition: QueuePartition, waiting: PendingAsk, now: float) -> Outcome:
        asker = _asker(partition, waiting)
        node = partition.nodes.get(waiting.ask.required_node) if waiting.ask.required_node else None
        if node is not None:
            there = [key for key in node.allocations if partition.standing.is_candidate(key, now)]
            return required.try_preemption(asker, node, [partition.standing.one(key) for key in there])
        return attempts.try_preemption(asker, self._scene(partition, waiting, now))

    def _scene(self, partition: QueuePartition, waiting: PendingAsk, now: float) -> AttemptScene:
        def acceptable(node: str, victims: tuple[AttemptAllocation, ...], /) -> bool:
            return self._would_do(waiting, node, _keys(victims))

        return AttemptScene(
            standing=lambda leaf: partition.standing.of(leaf, now),
            nodes=_Rooms(partition),
            acceptable=acceptable,
            held=lambda node: _is_kept(partition, waiting, node),
            promised=partition.flights.promised(waiting.id),
            size=crowd.size(partition),
            rooms=self._rooms_of(waiting),
        )

    def _rooms_of(self, waiting: PendingAsk) -> WaysToRoom | None:
        asked = self._rooms
        if asked is None:
            return None

        def rooms(victims: Sequence[tuple[AttemptAllocation, ...]], may: Callable[[Sequence[int]], bool], /) -> Ways:
            return asked(RoomQuestion(ask=waiting.ask, victims=tuple(map(_keys, victims)), may=may))

        return rooms


# -- entitled asks ---------------------------------------------------------------------------------------------------


def _entitled(partition: QueuePartition, queue: Queue) -> Iterator[Queue]:
    """The leaves below in which something waits and a guarantee, there or above, has something left."""
    if queue.leaf:
        if _has_claim(partition, queue):
            yield queue
        return
    for child in orders.sorted_queues(queue):
        yield from _entitled(partition, child)


def _has_claim(partition: QueuePartition, leaf: Queue) -> bool:
    if not any(queue.guaranteed for queue in leaf.lineage):
        return False
    return any(amount > 0 for amount in (crowd.promised(partition, leaf).remaining(leaf) or {}).values())


def _first(partition: QueuePartition, leaf: Queue) -> Iterator[tuple[Application, PendingAsk]]:
    """The first asks of a leaf, in order."""
    count = 0
    for application in partition.leaf(leaf).in_order():
        for waiting in tuple(application.in_order()):
            yield application, waiting
            count += 1
            if count == MOST_ASKS:
                return


def _may_start(partition: QueuePartition, application: Application, now: float) -> bool:
    if now <= application.refused_until:
        return False
    if application.running:
        return True
    starts = tree.can_run(application.queue)
    return starts and (not partition.limited or partition.limits.may_start(application.name) is None)


def _is_kept(partition: QueuePartition, waiting: PendingAsk, name: str) -> bool:
    """For an ask that is as entitled to it; any other reservation gives way to a guarantee."""
    node = partition.nodes.get(name)
    if node is None or node.elsewhere:
        return True
    for holder in (partition.holders[one] for one in node.held if one != waiting.id):
        leaf = partition.applications[holder.ask.application].queue
        if holder.ask.required_node or holder.id in partition.flights or _has_claim(partition, leaf):
            return True
    return False


def _asker(partition: QueuePartition, waiting: PendingAsk) -> Asker:
    ask = waiting.ask
    return Asker(
        key=waiting.id,
        queue=partition.applications[ask.application].queue,
        resource=ask.resource,
        members=ask.members,
        priority=ask.priority,
        created=ask.since,
        required_node=ask.required_node,
        allow_preempt_other=ask.allow_preempt_other,
        triggered=waiting.id in partition.flights,
    )


def _give_up(partition: QueuePartition, waiting: PendingAsk, alike: Hashable, now: float) -> None:
    """No eviction makes room in the cluster for this ask, or those like it: they are let in, and wait there."""
    leaf = partition.applications[waiting.ask.application].queue
    if crowd.size(partition) and crowd.keeps_back(partition, waiting, leaf, now):
        partition.vain = {key: until for key, until in partition.vain.items() if until > now}
        partition.vain[alike] = now + attempts.CHECK_EVERY
        partition.grown += 1


# -- what comes of it ------------------------------------------------------------------------------------------------


def _keys(victims: Iterable[AttemptAllocation]) -> tuple[AskId, ...]:
    return tuple(one.key for one in victims if isinstance(one.key, AskId))


# -- nodes ------------------------------------------------------------------------------------------------------------


class _Rooms:
    """The nodes of a partition as attempts see them. Where nodes are shared out here they stand for themselves.

    Elsewhere another scheduler queues behind us what does not fit: no node has less than nothing left.
    """

    __slots__ = ("_nodes",)

    def __init__(self, partition: QueuePartition) -> None:
        self._nodes = partition.nodes

    def get(self, name: str, /) -> AttemptNode | None:
        """The node of this name."""
        node = self._nodes.get(name)
        return node if node is None or self._nodes.are_shared_out else _left(node)

    def __iter__(self) -> Iterator[AttemptNode]:
        return iter(self._nodes) if self._nodes.are_shared_out else map(_left, self._nodes)


def _left(node: PartitionNode) -> ImaginedNode:
    free = {kind: max(0, amount - node.allocated.get(kind, 0)) for kind, amount in node.capacity.items()}
    return ImaginedNode(name=node.name, capacity=node.capacity, free=free, schedulable=node.schedulable)
