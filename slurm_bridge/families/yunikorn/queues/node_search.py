"""Which nodes an ask gets, or holds until it does: one look at some nodes in their order."""

import dataclasses
import heapq
import itertools
from collections.abc import Callable, Iterable

from slurm_bridge.families.yunikorn.queues import amounts
from slurm_bridge.families.yunikorn.queues.amounts import Amount, Known
from slurm_bridge.families.yunikorn.queues.applications import PendingAsk
from slurm_bridge.families.yunikorn.queues.nodes import PartitionNode
from slurm_bridge.families.yunikorn.queues.settings import SortPolicy
from slurm_bridge.families.yunikorn.queues.tree import Queue
from slurm_bridge.runtime import frozen_records

#: Whether a member may run on the node, for reasons other than room; the flag: it is only to be kept.
May = Callable[[PendingAsk, PartitionNode, bool], bool]

#: Where a node would stand in the order with so much more on it.
Score = Callable[[PartitionNode, Amount], tuple[float, str]]

#: Reasons to refuse a gang.
UNSUPPORTED_SORT = "unsupported_sort_type"
LARGER_THAN_MAX = "larger_than_max"


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """The nodes of all members, or the node to reserve, or neither."""

    nodes: tuple[str, ...] = ()
    reserve: str = ""


def anywhere(_waiting: PendingAsk, _node: PartitionNode, _reserving: bool) -> bool:
    """No reasons other than room."""
    return True


def pick(waiting: PendingAsk, nodes: Iterable[PartitionNode], *, reserving: bool, may: May, score: Score) -> Pick:
    """What one regular look at these nodes gives."""
    # Whether a node holds the ask at all is asked of those that have no room now: the first one that has may do.
    first, again = itertools.tee(nodes) if reserving else (nodes, ())
    placed = place(waiting, (node for node in first if _is_open(waiting, node)), may, score)
    if placed or not reserving:
        return Pick(nodes=placed)
    candidates = (node for node in again if _is_open(waiting, node) and node.holds(waiting.ask.resource))
    return Pick(reserve=worth_holding(waiting, candidates, may))


def _is_open(waiting: PendingAsk, node: PartitionNode) -> bool:
    """Free for all asks; a gang counts on what it holds, too."""
    if node.is_open():
        return True
    return waiting.ask.members > 1 and node.schedulable and node.held.keys() == {waiting.id}


def has_room(waiting: PendingAsk, node: PartitionNode) -> bool:
    """As far as room is concerned, a member of it may run there now."""
    return amounts.fit_in(waiting.ask.resource, node.free) and _is_open(waiting, node)


def place(waiting: PendingAsk, nodes: Iterable[PartitionNode], may: May, score: Score) -> tuple[str, ...]:
    """A node for every member, each the first in the order that has room; nothing unless all have one."""
    found = _members(waiting, nodes, may, score) if waiting.ask.members > 1 else _alone(waiting, nodes, may)
    return found if len(found) == waiting.ask.members else ()


def _alone(waiting: PendingAsk, nodes: Iterable[PartitionNode], may: May) -> tuple[str, ...]:
    resource = waiting.ask.resource
    for node in nodes:
        if amounts.fit_in(resource, node.free) and may(waiting, node, False):
            return (node.name,)
    return ()


def _members(waiting: PendingAsk, nodes: Iterable[PartitionNode], may: May, score: Score) -> tuple[str, ...]:
    """Member after member: a node that takes one moves to where it then stands, and one that is full is left out."""
    by_name = {node.name: node for node in nodes}
    heap = [score(node, {}) for node in by_name.values()]
    heapq.heapify(heap)
    on = dict.fromkeys(by_name, 0)
    found: list[str] = []
    while heap and len(found) < waiting.ask.members:
        node = by_name[heapq.heappop(heap)[1]]
        taken = amounts.times(waiting.ask.resource, on[node.name] + 1)
        if amounts.fit_in(taken, node.free) and (on[node.name] or may(waiting, node, False)):
            on[node.name] += 1
            found.append(node.name)
            heapq.heappush(heap, score(node, taken))
    return tuple(found)


def worth_holding(waiting: PendingAsk, nodes: Iterable[PartitionNode], may: May) -> str:
    """The node that lacks least for a member, the first among equals; "" where there is none to be had."""
    resource = waiting.ask.resource
    loose = [node for node in nodes if not node.held]
    for node in sorted(loose, key=lambda one: amounts.fit_in_score(resource, one.free)):
        if may(waiting, node, True):
            return node.name
    return ""


def may_reserve(waiting: PendingAsk, own: Iterable[PartitionNode], *, now: float, delay: float) -> bool:
    """It is older than the delay, and what it holds would not do for all its members, were it empty."""
    if now - waiting.ask.created <= delay:
        return False
    if waiting.ask.members == 1 or not waiting.on:
        return not waiting.on
    counts = [members_of(waiting.ask.resource, node.capacity) for node in own]
    return None not in counts and sum(one or 0 for one in counts) < waiting.ask.members


def members_of(resource: Amount, room: Amount) -> int | None:
    """How many members go into so much room; None for any number of those that take nothing."""
    return min((max(0, room.get(kind, 0)) // one for kind, one in resource.items() if one > 0), default=None)


def overdue(*, fits_headroom: bool, seconds: float, timeout: float) -> bool:
    """A reservation of this age is withdrawn: its ask could not be allocated even if the node were free."""
    return not fits_headroom and seconds > timeout


def gang_obstacle(queue: Queue, placeholders: Known) -> str:
    """Why the leaf cannot take a gang of so much in all, "" where it can.

    The root's maximum is what the cluster has at present, and no reason to refuse what it may have tomorrow.
    """
    if amounts.is_empty(placeholders):
        return ""
    if queue.sort_policy is not SortPolicy.FIFO:
        return UNSUPPORTED_SORT
    most: Known = None
    for above in queue.lineage:
        if above.parent is not None:
            most = amounts.smaller(most, above.max)
    return "" if amounts.fit_in_max_undefined(placeholders, most) else LARGER_THAN_MAX
