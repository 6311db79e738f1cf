"""What may become a victim: the part of the tree that an ask reaches, and what is eligible there."""

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping

from slurm_bridge.families.yunikorn.queues import amounts, tree
from slurm_bridge.families.yunikorn.queues.preemptors.balance import Balance
from slurm_bridge.families.yunikorn.queues.preemptors.facts import Asker, AttemptAllocation
from slurm_bridge.families.yunikorn.queues.preemptors.units import Unit, units, victim_order
from slurm_bridge.families.yunikorn.queues.priorities import PriorityPolicy
from slurm_bridge.families.yunikorn.queues.settings import PreemptionPolicy
from slurm_bridge.families.yunikorn.queues.tree import Queue


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How far up an ask reaches, and its priority inside each queue from its own up to there."""

    fence: Queue
    priorities: Mapping[Queue, int]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """All that may be evicted for an ask, in the order in which it is considered."""

    fence: Queue
    units: tuple[Unit, ...]


def reach(asker: Asker, balance: Balance) -> Reach:
    """Up to the first queue that fences preemption, or that would exceed its maximum with the ask, or the root."""
    priority, known = asker.priority, dict[Queue, int]()
    here = asker.queue
    while True:
        known[here] = priority
        if here.parent is None or here.preemption_policy is PreemptionPolicy.FENCE:
            return Reach(fence=here, priorities=known)
        wanted = amounts.plus(balance.allocated(here), asker.total)
        if not amounts.fit_in_max_undefined(wanted, tree.effective_max(here)):
            return Reach(fence=here, priorities=known)
        fenced = here.priority_policy is PriorityPolicy.FENCE
        priority = here.offset if fenced else priority + here.offset
        here = here.parent


def candidates(asker: Asker, balance: Balance, standing: Callable[[Queue], Iterable[AttemptAllocation]]) -> Candidates:
    """What is eligible in the reach of the ask; only queues under the fence are looked at."""
    reached = reach(asker, balance)
    found = [
        unit
        for leaf, limit in _leaves(reached.fence, reached.priorities, reached.priorities[reached.fence])
        if leaf is not asker.queue and _may_lose(leaf, balance)
        for unit in units(standing(leaf))
        if unit.priority <= limit and is_eligible(unit, asker.resource)
    ]
    return Candidates(fence=reached.fence, units=tuple(victim_order(found)))


def is_eligible(unit: Unit, wanted: Iterable[str]) -> bool:
    """It shares a type with what is wanted, is bound to no node, and not on its way out; and so is all of its group."""
    shared = not unit.total.keys().isdisjoint(wanted)
    return shared and not any(part.required_node or part.preempted or part.released for part in unit.parts)


def _leaves(
    queue: Queue, inside: Mapping[Queue, int], current: float, *, fenced: bool = False
) -> Iterator[tuple[Queue, float]]:
    """The leaves below with the highest priority that is eligible there.

    Outside the ask's own path a queue that fences priorities stands for its offset alone: behind it either everything
    is eligible or nothing.
    """
    if queue.leaf:
        yield queue, math.inf if fenced else current
        return
    for child in queue.children.values():
        if child in inside:
            yield from _leaves(child, inside, inside[child])
        elif child.priority_policy is PriorityPolicy.DEFAULT:
            yield from _leaves(child, inside, current - child.offset, fenced=fenced)
        elif child.offset <= current:
            yield from _leaves(child, inside, current, fenced=True)


def _may_lose(leaf: Queue, balance: Balance) -> bool:
    if is_disabled(leaf):
        return False
    remaining = balance.remaining(leaf)
    return remaining is None or any(amount < 0 for amount in remaining.values())


def is_disabled(queue: Queue) -> bool:
    """Nothing is taken from it: it says so, or a queue above does and it says nothing of its own."""
    if queue.preemption_policy is PreemptionPolicy.DEFAULT and queue.parent is not None:
        return is_disabled(queue.parent)
    return queue.preemption_policy is PreemptionPolicy.DISABLED
