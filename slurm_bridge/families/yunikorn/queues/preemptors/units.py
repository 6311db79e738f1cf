"""What is evicted at once: an allocation, or all of a group, and the order in which they are considered."""

import dataclasses
import functools
import operator
from collections.abc import Hashable, Iterable, Mapping

from slurm_bridge.families.yunikorn.queues import amounts
from slurm_bridge.families.yunikorn.queues.amounts import Amount
from slurm_bridge.families.yunikorn.queues.preemptors.facts import AttemptAllocation
from slurm_bridge.families.yunikorn.queues.tree import Queue

_NOTHING: Amount = {}


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Unit:
    """Allocations that end together. It is as protected as the most protected of them, and as old as the oldest."""

    parts: tuple[AttemptAllocation, ...]
    queue: Queue
    total: Amount
    by_node: Mapping[str, Amount]
    members: int
    priority: int
    created: float
    opted_out: bool
    originator: bool
    started: bool

    @functools.cached_property
    def place(self) -> tuple[bool, bool, bool, float, int, int, list[int]]:
        """Its place in the order of victims."""
        size = sorted(self.total.values(), reverse=True)
        return (self.opted_out, self.originator, self.started, -self.created, self.members, self.priority, size)

    def on(self, node: str) -> Amount:
        """What becomes free there."""
        return self.by_node.get(node, _NOTHING)


def units(standing: Iterable[AttemptAllocation]) -> list[Unit]:
    """The allocations by what ends together, in the order of the first of each."""
    groups: dict[Hashable, list[AttemptAllocation]] = {}
    for one in standing:
        groups.setdefault(one if one.group is None else (one.queue, one.group), []).append(one)
    return [_alone(parts[0]) if len(parts) == 1 else _unit(tuple(parts)) for parts in groups.values()]


# Attempts look at thousands that have not changed since the last one.
@functools.lru_cache(maxsize=1 << 16)
def _alone(one: AttemptAllocation) -> Unit:
    return _unit((one,))


def _unit(parts: tuple[AttemptAllocation, ...]) -> Unit:
    total, by_node = _amounts(parts)
    return Unit(
        parts=parts,
        queue=parts[0].queue,
        total=total,
        by_node=by_node,
        members=sum(len(part.nodes) for part in parts),
        priority=max(part.priority for part in parts),
        created=min(part.created for part in parts),
        opted_out=not all(part.allow_preempt_self for part in parts),
        originator=any(part.originator for part in parts),
        started=any(part.started for part in parts),
    )


def _amounts(parts: tuple[AttemptAllocation, ...]) -> tuple[Amount, Mapping[str, Amount]]:
    """In all, and by node."""
    first = parts[0]
    if len(parts) == 1 and len(first.nodes) == 1:
        return first.resource, {first.nodes[0]: first.resource}
    by_node: dict[str, Amount] = {}
    total: Amount = {}
    for part in parts:
        for node in part.nodes:
            by_node[node] = amounts.plus(by_node.get(node), part.resource)
            total = amounts.plus(total, part.resource)
    return total, by_node


def victim_order(found: Iterable[Unit]) -> list[Unit]:
    """Those that did not opt out first, then non-originators, then what has not started, the newest, the cheapest."""
    return sorted(found, key=operator.attrgetter("place"))


def parts(found: Iterable[Unit]) -> tuple[AttemptAllocation, ...]:
    """All allocations of these units, in their order."""
    return tuple(part for unit in found for part in unit.parts)
