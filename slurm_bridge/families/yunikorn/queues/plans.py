"""What a preemptor plans, and how it is carried out: what is to become free is held, then the victims are evicted."""

import dataclasses
from collections.abc import Callable, Iterable

from slurm_bridge.families.yunikorn.queues import applications, events
from slurm_bridge.families.yunikorn.queues.applications import PendingAsk
from slurm_bridge.families.yunikorn.queues.partition import QueuePartition
from slurm_bridge.families.yunikorn.queues.records import AskId, Eviction

#: A victim that could not be evicted is asked again so many seconds later at the earliest.
PROTECTED = 60.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PreemptionPlan:
    """These victims make room for the asker on this node, which is held for it before any victim is evicted.

    Several `nodes` are held where it needs them. Without an asker a queue is over its maximum, and nothing is held.
    """

    victims: tuple[AskId, ...]
    message: str
    asker: AskId | None = None
    node: str = ""
    nodes: tuple[str, ...] = ()

    @property
    def held(self) -> tuple[str, ...]:
        """Every node that is held, once."""
        return tuple(dict.fromkeys((*((self.node,) if self.node else ()), *self.nodes)))


#: Looks at a partition after each of its passes. It changes nothing; what it plans is done before it goes on.
Preemptor = Callable[[QueuePartition, float], Iterable[PreemptionPlan]]


def carry_out(partition: QueuePartition, plan: PreemptionPlan, now: float) -> tuple[Eviction, ...]:
    """Hold the nodes, and mark the victims that are left; nothing where the asker, a node or all victims are gone."""
    if plan.asker is not None and not _keep(partition, plan.asker, plan.held, now):
        return ()
    victims = tuple(victim for victim in plan.victims if partition.evict(victim))
    if plan.asker is not None and victims:
        _promise(partition, plan.asker, victims, partition.waiting(plan.asker))
    return tuple(
        Eviction(victim=one, asker=plan.asker, message=plan.message, nodes=plan.held if plan.asker else ())
        for one in victims
    )


def follow(partition: QueuePartition, event: events.ToGo, now: float, *, is_mine: bool) -> None:
    """Victims of a plan, perhaps one from before a restart, are to be evicted."""
    if event.spared:
        partition.spare(event.id)
        if event.refused:
            partition.standing.protect(event.id, now + PROTECTED)
        return
    partition.evict(event.id)
    if event.ask is None:
        return
    # One that has gone already, before a restart perhaps, has left its room to the asker all the same.
    asker, victims = event.ask.id, (event.id,) if partition.is_to_go(event.id) else ()
    if is_mine and asker not in partition.flights:
        _keep(partition, asker, event.nodes, now)
    if not is_mine or partition.waiting(asker) is not None:
        _promise(partition, asker, victims, PendingAsk(event.ask, ""))


def _promise(partition: QueuePartition, asker: AskId, victims: tuple[AskId, ...], waiting: PendingAsk | None) -> None:
    """These victims go for it, whichever scheduler places it."""
    application = partition.applications.get(asker.application)
    if application is not None and waiting is not None:
        there = {one: partition.applications[one.application].allocations[one.key] for one in victims}
        had = {one: applications.total(allocation) for one, allocation in there.items()}
        partition.flights.begin(asker, application.queue, waiting.total, had)


def _keep(partition: QueuePartition, asker: AskId, names: tuple[str, ...], now: float) -> bool:
    """These nodes are the asker's, and of others it holds none any more; False where it or a node is gone."""
    waiting = partition.waiting(asker)
    if waiting is None or any(partition.nodes.get(name) is None for name in names):
        return False
    for name in [name for name in waiting.on if name not in names] if names else ():
        partition.unreserve(waiting, name)
    for name in names:
        if name not in waiting.on:
            partition.give_up(name)
            partition.reserve(waiting, name, now)
    return True
