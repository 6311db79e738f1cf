"""A queue's maximum was lowered: what is taken back of it, from which leaves, and the victims."""

import dataclasses
from collections.abc import Callable, Iterable

from slurm_bridge.families.yunikorn.queues import amounts
from slurm_bridge.families.yunikorn.queues.amounts import Amount, Known
from slurm_bridge.families.yunikorn.queues.preemptors import guards
from slurm_bridge.families.yunikorn.queues.preemptors.balance import Balance
from slurm_bridge.families.yunikorn.queues.preemptors.candidates import is_eligible
from slurm_bridge.families.yunikorn.queues.preemptors.facts import AttemptAllocation, Planned
from slurm_bridge.families.yunikorn.queues.preemptors.units import Unit, parts, units
from slurm_bridge.families.yunikorn.queues.tree import Queue

HOUR = 3600


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class QuotaVictims:
    """The victims in order, and what they have together; None where there are none."""

    victims: tuple[Unit, ...]
    claimed: Known


# -- how much ----------------------------------------------------------------------------------------------------------


def preemptable(
    maximum: Known, used: Known, preempting: Known = None, guaranteed_on_path: Iterable[tuple[Known, Known]] = ()
) -> Known:
    """What is in use beyond the maximum and not being taken back already; None for nothing.

    The guarantees on the path, each with the usage of its queue, cap it at what is in use beyond them.
    """
    kept = amounts.minus(used, preempting)
    beyond = {kind: kept.get(kind, 0) - most for kind, most in (maximum or {}).items()} if used else {}
    for guaranteed, usage in guaranteed_on_path:
        surplus = {kind: (usage or {}).get(kind, 0) - amount for kind, amount in (guaranteed or {}).items()}
        beyond = {kind: min(amount, surplus.get(kind, amount)) for kind, amount in beyond.items()}
    return {kind: amount for kind, amount in beyond.items() if amount > 0} or None


def preemptable_of(queue: Queue) -> Known:
    """As `preemptable`, of a queue as it is."""
    path = ((above.guaranteed, above.allocated) for above in queue.lineage if above.guaranteed)
    return preemptable(queue.max, queue.allocated, queue.preempting, path)


def distribute(queue: Queue, amount: Amount) -> dict[Queue, dict[str, int]]:
    """The amount by leaf: each child's part of it is its part of what all use beyond their guarantees, rounded down."""
    if not queue.children:
        return {queue: dict(amount)}
    surplus = {child: beyond for child in queue.children.values() if (beyond := _surplus(child))}
    total: dict[str, int] = {}
    for beyond in surplus.values():
        total = amounts.plus(total, beyond)
    leaves: dict[Queue, dict[str, int]] = {}
    for child, beyond in surplus.items():
        part = {kind: one * amount[kind] // total[kind] for kind, one in beyond.items() if kind in amount}
        leaves |= distribute(child, part)
    return leaves


def _surplus(queue: Queue) -> dict[str, int]:
    """What it uses beyond its guarantee, or all it uses without one; only what there is."""
    guaranteed = queue.guaranteed or dict.fromkeys(queue.allocated, 0)
    beyond = {kind: queue.allocated.get(kind, 0) - amount for kind, amount in guaranteed.items()}
    return {kind: amount for kind, amount in beyond.items() if amount > 0}


# -- victims -----------------------------------------------------------------------------------------------------------


def candidates(preemptable: Known, standing: Iterable[AttemptAllocation]) -> list[Unit]:
    """Those that have something of what is taken back and may be evicted, in the order they are in."""
    if amounts.is_empty(preemptable):
        return []
    return [unit for unit in units(standing) if is_eligible(unit, preemptable or ())]


def ordered(found: Iterable[Unit], preemptable: Amount, maximum: Known) -> list[Unit]:
    """Protected ones last; then what matches best, of low priority, of a late hour, and small."""

    def considered(unit: Unit) -> tuple[bool, bool, int, int, int, tuple[float, ...]]:
        matching = amounts.type_matching(unit.total, preemptable)
        size = amounts.share_key(amounts.shares_of_types(unit.total, maximum, preemptable.keys()))
        return (unit.opted_out, unit.originator, -matching, unit.priority, -(int(unit.created) // HOUR), size)

    return sorted(found, key=considered)


def victims(found: Iterable[Unit], preemptable: Known, maximum: Known, guarded: Balance | None = None) -> QuotaVictims:
    """Those that together do not exceed what is taken back, in order.

    With a balance no victim is of a queue that would end below a guarantee that was met.
    """
    if preemptable is None:
        return QuotaVictims(victims=(), claimed=None)
    taken: list[Unit] = []
    claimed: dict[str, int] = {}
    for unit in ordered(found, preemptable, maximum):
        with_it = amounts.plus(claimed, unit.total)
        fits = _within(unit.total, preemptable) and _within(with_it, preemptable)
        if fits and (
            guarded is None or guards.keeps_guarantees(guarded, guards.without(guarded, (*taken, unit)), (unit,))
        ):
            taken.append(unit)
            claimed = with_it
    return QuotaVictims(victims=tuple(taken), claimed=claimed if taken else None)


def _within(amount: Amount, preemptable: Amount) -> bool:
    """It does not exceed it, in the types that both define."""
    return all(amount[kind] <= most for kind, most in preemptable.items() if kind in amount)


# -- the whole ---------------------------------------------------------------------------------------------------------


def plan(queue: Queue, standing: Callable[[Queue], Iterable[AttemptAllocation]]) -> tuple[Planned, ...]:
    """The victims that bring the queue back within its maximum, a plan for each leaf that loses something.

    Nothing is evicted from a queue that would end below a guarantee that was met.
    """
    amount = preemptable_of(queue)
    if amount is None:
        return ()
    plans: list[Planned] = []
    balance = Balance(queue)
    for leaf, part in distribute(queue, amount).items():
        claim = victims(candidates(part, standing(leaf)), part, queue.max, balance)
        balance = guards.without(balance, claim.victims)
        if claim.victims:
            message = f"preempted by queue {queue.path} (over its maximum)"
            plans.append(Planned(asker=None, queue=queue.path, nodes=(), victims=parts(claim.victims), message=message))
    return tuple(plans)
