"""Why an application waits, in words: computed when it is shown, never during a pass."""

import dataclasses
from collections.abc import Iterator

from slurm_bridge.families.yunikorn.queues import amounts, crowd, tree
from slurm_bridge.families.yunikorn.queues.amounts import Amount
from slurm_bridge.families.yunikorn.queues.applications import Application, PendingAsk
from slurm_bridge.families.yunikorn.queues.partition import QueuePartition
from slurm_bridge.families.yunikorn.queues.tree import Queue, State


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class QueueWait:
    """An application that waits, with the ask that is first in it, and the first reason that is found."""

    application: str
    queue: str
    ask: str
    asks: int
    reason: str


def waits(partition: QueuePartition, now: float) -> Iterator[QueueWait]:
    """All that wait; the caller holds the lock of the lane."""
    for application in partition.applications.values():
        first = next(application.in_order(), None)
        if first is not None:
            yield QueueWait(
                application=application.name,
                queue=application.queue.path,
                ask=first.ask.key,
                asks=len(application.asks),
                reason=reason(partition, application, first, now),
            )


def reason(partition: QueuePartition, application: Application, waiting: PendingAsk, now: float) -> str:
    """What keeps this ask from being served at present."""
    return (
        _paused(application, now)
        or _of_flight(partition, waiting)
        or _not_started(partition, application)
        or _of_queues(application.queue, waiting)
        or _of_limits(partition, application, waiting)
        or _of_cluster(partition, application, waiting, now)
        or _of_nodes(partition, waiting)
    )


def _paused(application: Application, now: float) -> str:
    if now <= application.refused_until:
        return f"pauses for {application.refused_until - now:.0f} s more: it was refused again and again"
    if now <= application.not_before:
        return f"pauses for {application.not_before - now:.0f} s more: too many of its asks found no node"
    return ""


def _not_started(partition: QueuePartition, application: Application) -> str:
    """Too many applications run."""
    if application.running:
        return ""
    for queue in tree.upward(application.queue):
        if queue.max_applications and queue.running >= queue.max_applications:
            return f"queue {queue.path} runs {queue.running} of {queue.max_applications} applications"
    refusal = partition.limits.may_start(application.name)
    return refusal.words if refusal else ""


def _of_flight(partition: QueuePartition, waiting: PendingAsk) -> str:
    left = next((len(one.victims) for one in partition.flights if one.asker == waiting.id), 0)
    return (
        f"waits until {left} {'allocation' if left == 1 else 'allocations'} preempted for it have gone" if left else ""
    )


def _of_queues(leaf: Queue, waiting: PendingAsk) -> str:
    for queue in tree.upward(leaf):
        if queue.state is State.STOPPED:
            return f"queue {queue.path} is stopped"
        room = tree.headroom_under(queue, None)
        if not amounts.fit_in_max_undefined(waiting.total, room):
            what = "the cluster" if queue.parent is None else f"queue {queue.path}"
            return f"{what} has {said(room or {})} left of its maximum; {said(waiting.total)} are asked for"
    return ""


def _of_limits(partition: QueuePartition, application: Application, waiting: PendingAsk) -> str:
    refusal = partition.limits.refusal(application.name, waiting.total)
    return refusal.words if refusal else ""


def _of_cluster(partition: QueuePartition, application: Application, waiting: PendingAsk, now: float) -> str:
    if not crowd.keeps_back(partition, waiting, application.queue, now):
        return ""
    return "the cluster is full: room is made for what queues are guaranteed"


def _of_nodes(partition: QueuePartition, waiting: PendingAsk) -> str:
    if waiting.on:
        return f"waits for room on {', '.join(sorted(waiting.on))}, which it holds"
    required = waiting.ask.required_node
    if required:
        return f"waits for node {required}"
    large = sum(node.holds(waiting.ask.resource) for node in partition.nodes)
    if not large:
        return f"no node is large enough for {said(waiting.ask.resource)}"
    each = f"{waiting.ask.members} members, each of " if waiting.ask.members > 1 else ""
    return (
        f"no room for {each}{said(waiting.ask.resource)} on {large} of {len(partition.nodes)} nodes that could hold it"
    )


def said(amount: Amount) -> str:
    """Amounts as people read them."""
    return ", ".join(f"{kind} {one}" for kind, one in sorted(amount.items())) or "nothing"
