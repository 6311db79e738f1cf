"""An ask that has to run on one node: what is preempted there, whatever queue it is of."""

from collections.abc import Iterable

from slurm_bridge.families.yunikorn.queues import amounts
from slurm_bridge.families.yunikorn.queues.preemptors import facts, guards
from slurm_bridge.families.yunikorn.queues.preemptors.balance import Balance
from slurm_bridge.families.yunikorn.queues.preemptors.candidates import is_eligible
from slurm_bridge.families.yunikorn.queues.preemptors.facts import (
    Asker,
    AttemptAllocation,
    AttemptNode,
    Outcome,
    Planned,
    Reason,
)
from slurm_bridge.families.yunikorn.queues.preemptors.units import Unit, parts, units


def candidates(asker: Asker, standing: Iterable[AttemptAllocation]) -> list[Unit]:
    """Those of the node's allocations that may be evicted for the ask."""
    return [unit for unit in units(standing) if unit.priority <= asker.priority and is_eligible(unit, asker.resource)]


def victims(asker: Asker, node: AttemptNode, found: Iterable[Unit]) -> tuple[Unit, ...]:
    """As many as cover the ask by themselves; none at all unless with what is free they cover it in every type."""
    taken: list[Unit] = []
    freed: dict[str, int] = {}
    for unit in _ordered(node, found):
        if taken and amounts.fit_in(asker.resource, freed):
            break
        taken.append(unit)
        freed = amounts.plus(freed, unit.on(node.name))
    return tuple(taken) if amounts.fit_in(asker.resource, amounts.plus(freed, node.free)) else ()


def _ordered(node: AttemptNode, found: Iterable[Unit]) -> list[Unit]:
    """Regular ones, then those that opted out, then originators; of low priority, new and small first."""

    def considered(unit: Unit) -> tuple[int, int, float, tuple[float, ...]]:
        kind = 2 if unit.originator else int(unit.opted_out)
        size = amounts.share_key(amounts.shares(unit.on(node.name), node.capacity))
        return (kind, unit.priority, -unit.created, size)

    return sorted(found, key=considered)


def try_preemption(
    asker: Asker, node: AttemptNode, standing: Iterable[AttemptAllocation], *, guarded: bool = True
) -> Outcome:
    """The whole attempt, where `standing` are the node's allocations, each with all of its group.

    Guarded, it evicts nothing from a queue that would end below a guarantee that was met.
    """
    found = candidates(asker, standing)
    taken = victims(asker, node, _borrowed(Balance(asker.queue), _ordered(node, found)) if guarded else found)
    if not taken:
        return facts.refused(asker, Reason.NO_VICTIMS)
    return Planned(
        asker=asker.key,
        queue=asker.queue.path,
        nodes=(node.name,),
        victims=parts(taken),
        message=f"preempted for {asker.key}, which has to run on node {node.name}",
    )


def _borrowed(balance: Balance, found: Iterable[Unit]) -> list[Unit]:
    """Those, one after the other, that their queues can lose."""
    lost, after = list[Unit](), balance
    for unit in found:
        without = guards.without(after, (unit,))
        if guards.keeps_guarantees(balance, without, (unit,)):
            lost.append(unit)
            after = without
    return lost
