"""What a guarded attempt makes sure of before an eviction."""

import collections
import math
from collections.abc import Iterable, Iterator, Sequence

from slurm_bridge.families.yunikorn.queues import amounts
from slurm_bridge.families.yunikorn.queues.preemptors.balance import Balance
from slurm_bridge.families.yunikorn.queues.preemptors.facts import (
    Asker,
    AttemptAllocation,
    AttemptNode,
    AttemptScene,
    ImaginedNode,
    ImaginedNodes,
)
from slurm_bridge.families.yunikorn.queues.preemptors.placements import Placement
from slurm_bridge.families.yunikorn.queues.preemptors.units import Unit, parts
from slurm_bridge.families.yunikorn.queues.tree import Queue


def has_place(asker: Asker, nodes: Sequence[AttemptNode], gone: Sequence[Unit], balance: Balance) -> bool:
    """With these gone, and all that are on their way out, the ask fits on its nodes and into every maximum above it."""
    return _fits_maxima(asker, gone, balance) and _fits_nodes(asker, nodes, gone)


def _fits_nodes(asker: Asker, nodes: Sequence[AttemptNode], gone: Iterable[Unit]) -> bool:
    by_name = {node.name: node for node in nodes}
    members = collections.Counter(node.name for node in nodes)
    freed = _freed(gone)
    return all(
        amounts.fit_in(amounts.times(asker.resource, count), amounts.plus(by_name[name].free, freed.get(name)))
        for name, count in members.items()
    )


def _freed(gone: Iterable[Unit]) -> dict[str, dict[str, int]]:
    """What becomes free, by node."""
    freed: dict[str, dict[str, int]] = {}
    for unit in gone:
        for node, amount in unit.by_node.items():
            amounts.add(freed.setdefault(node, {}), amount)
    return freed


def _fits_maxima(asker: Asker, gone: Iterable[Unit], balance: Balance) -> bool:
    after = served(asker, gone, balance)
    limited = ((queue.max, after.kept(queue)) for queue in asker.queue.lineage if queue.max)
    return all(
        amount <= 0 or used.get(kind, 0) <= most.get(kind, math.inf)
        for most, used in limited
        for kind, amount in asker.total.items()
    )


def beyond(asker: Asker, victims: Sequence[Unit], needed: Iterable[Unit], balance: Balance) -> tuple[Unit, ...]:
    """Those of the `needed` without which the ask does not fit into every maximum above it, victims or not."""
    more = [unit for unit in needed if unit not in victims]
    for unit in reversed(tuple(more)):
        others = [other for other in more if other is not unit]
        if _fits_maxima(asker, (*victims, *others), balance):
            more = others
    return tuple(more)


def is_over(queue: Queue, balance: Balance) -> bool:
    """There is more than a maximum here or above: it was lowered."""
    return any(not amounts.fit_in_max_undefined(balance.kept(one), one.max) for one in queue.lineage)


def served(asker: Asker, gone: Iterable[Unit], balance: Balance) -> Balance:
    """The balance with the plan carried out: the victims gone, the ask in their place."""
    after = without(balance, gone)
    after.add(asker.queue, asker.total)
    return after


def without(balance: Balance, gone: Iterable[Unit]) -> Balance:
    """The balance with these gone."""
    lost: dict[Queue, dict[str, int]] = {}
    for unit in gone:
        amounts.add(lost.setdefault(unit.queue, {}), unit.total)
    after = balance.fork()
    for queue, amount in lost.items():
        after.take(queue, amount)
    return after


def keeps_guarantees(before: Balance, after: Balance, gone: Iterable[Unit]) -> bool:
    """No queue is below a guarantee that it was not below before."""
    touched = {queue for unit in gone for queue in unit.queue.lineage}
    return not any(_falls_below(queue, before, after) for queue in touched)


def _falls_below(queue: Queue, before: Balance, after: Balance) -> bool:
    was, now = before.kept(queue), after.kept(queue)
    guaranteed = (queue.guaranteed or {}).items()
    return any(now.get(kind, 0) < amount <= was.get(kind, 0) for kind, amount in guaranteed)


def asked_again(gone: Iterable[Unit]) -> Iterator[Asker]:
    """What the victims will ask for in turn, each different one once."""
    known = set()
    for part in parts(gone):
        alike = (part.queue, tuple(sorted(part.resource.items())), len(part.nodes), part.priority)
        if alike not in known:
            known.add(alike)
            yield Asker(
                key=part.key,
                queue=part.queue,
                resource=part.resource,
                members=len(part.nodes),
                priority=part.priority,
            )


def later(asker: Asker, scene: AttemptScene, placement: Placement, gone: tuple[Unit, ...]) -> AttemptScene:
    """The scene with the plan carried out, where the ask is the newest that runs and every node does."""
    ended = {part.key for part in parts(gone)}
    names = tuple(node.name for node in placement.nodes)
    placed = AttemptAllocation(
        key=asker.key,
        queue=asker.queue,
        resource=asker.resource,
        nodes=names,
        priority=asker.priority,
        created=math.inf,
    )

    def standing(queue: Queue) -> list[AttemptAllocation]:
        there = [one for one in scene.standing(queue) if one.key not in ended]
        return [*there, placed] if queue is asker.queue else there

    changes = _freed(gone)
    for name in names:
        amounts.add(changes.setdefault(name, {}), amounts.times(asker.resource, -1))
    nodes = [node for node in map(scene.nodes.get, changes) if node is not None]
    rooms = [
        ImaginedNode(
            name=node.name,
            capacity=node.capacity,
            free=amounts.plus(node.free, changes[node.name]),
            schedulable=node.schedulable,
        )
        for node in nodes
    ]
    return AttemptScene(standing=standing, nodes=ImaginedNodes(rooms, scene.nodes), held=scene.held, size=scene.size)
