"""A cluster that is full: what it has too little of, which asks must not wait for that, and the victims then.

Where another scheduler queues behind us no node is ever full, and what an attempt looks at is the size of all of them:
everything that is let in counts against it, whether it has started or not.
"""

from collections.abc import Collection, Iterable

from slurm_bridge.families.yunikorn.queues import amounts
from slurm_bridge.families.yunikorn.queues.amounts import Amount, Known
from slurm_bridge.families.yunikorn.queues.preemptors.balance import Balance
from slurm_bridge.families.yunikorn.queues.preemptors.facts import Asker
from slurm_bridge.families.yunikorn.queues.preemptors.trial import Trial
from slurm_bridge.families.yunikorn.queues.preemptors.units import Unit
from slurm_bridge.families.yunikorn.queues.tree import Queue


def missing(size: Known, used: Amount, total: Amount) -> dict[str, int]:
    """By type, how much too large it is for what is left; types that the size does not state are never too little."""
    most = size or {}
    short = {kind: used.get(kind, 0) + amount - most[kind] for kind, amount in total.items() if kind in most}
    return {kind: amount for kind, amount in short.items() if amount > 0 and total[kind] > 0}


def is_owed(balance: Balance, queue: Queue, total: Amount, kinds: Collection[str]) -> bool:
    """What is left of guarantees covers the ask, and is guaranteed in all that the cluster has too little of."""
    left = balance.remaining(queue)
    return left is not None and left.keys() >= set(kinds) and amounts.fit_in_actual(total, left)


def shortage(asker: Asker, size: Known, balance: Balance) -> dict[str, int]:
    """What others have to give back of the cluster's room, because it is owed; nothing where there is room."""
    if not size:
        return {}
    root = asker.queue.lineage[-1]
    short = missing(size, balance.kept(root), asker.total)
    return short if short and is_owed(balance, asker.queue, asker.total, short) else {}


def further(
    asker: Asker, balance: Balance, victims: Iterable[Unit], eligible: Iterable[Unit], short: Amount
) -> tuple[Unit, ...] | None:
    """The victims so far, and further ones for the cluster's sake; None where all are too few.

    Unlike room in a queue, that in the cluster is taken by asks that were let in beyond its size: what goes may be more
    than what is asked for.
    """
    chosen = tuple(victims)
    taken, left = _taken(asker, balance, chosen, eligible, short)
    return None if _is_short(left) else (*chosen, *_needed(taken, short, left))


def withdrawn(
    asker: Asker, balance: Balance, victims: tuple[Unit, ...], eligible: Iterable[Unit], short: Amount
) -> tuple[Unit, ...]:
    """The victims that leave nodes for the ask, and what has not started beyond the cluster's size: it lines up anew.

    Nothing else that has started goes: it would leave for nothing.
    """
    taken, left = _taken(asker, balance, victims, (unit for unit in eligible if not unit.started), short)
    return (*victims, *(taken if _is_short(left) else _needed(taken, short, left)))


def may_go(asker: Asker, balance: Balance, units: Iterable[Unit]) -> bool:
    """All of these together, one after the other."""
    trial = Trial(asker, balance, guarded=True)
    trial.charge(asker.total)
    for unit in units:
        if not _may_lose(trial, unit):
            return False
        trial.remove(unit)
    return True


def _taken(
    asker: Asker, balance: Balance, chosen: Iterable[Unit], eligible: Iterable[Unit], short: Amount
) -> tuple[list[Unit], dict[str, int]]:
    """Further ones that help, in order, and what is short all the same."""
    trial, left = Trial(asker, balance, guarded=True), dict(short)
    trial.charge(asker.total)
    for unit in chosen:
        trial.remove(unit)
        amounts.add(left, _given(unit, short, -1))
    taken: list[Unit] = []
    for unit in eligible:
        if not _is_short(left):
            break
        helps = any(amount > 0 and unit.total.get(kind, 0) > 0 for kind, amount in left.items())
        if helps and unit not in trial.gone and _may_lose(trial, unit):
            trial.remove(unit)
            amounts.add(left, _given(unit, short, -1))
            taken.append(unit)
    return taken, left


def _needed(taken: Iterable[Unit], short: Amount, left: dict[str, int]) -> tuple[Unit, ...]:
    """Without those that turn out not to be needed; the last one is spared first."""
    kept: list[Unit] = []
    for unit in reversed(tuple(taken)):
        without = amounts.plus(left, _given(unit, short, 1))
        if _is_short(without):
            kept.append(unit)
        else:
            left = without
    return tuple(reversed(kept))


def _given(unit: Unit, short: Iterable[str], sign: int) -> Amount:
    return {kind: sign * unit.total.get(kind, 0) for kind in short}


def _is_short(left: Amount) -> bool:
    return any(amount > 0 for amount in left.values())


def _may_lose(trial: Trial, unit: Unit) -> bool:
    """As in any trial; and what the asking queue shares with others above keeps its guarantee, with the ask in it."""
    shared = (queue for queue in unit.queue.lineage if trial.balance.contains_asker(queue))
    return trial.may_lose(unit) and not any(_falls_below(queue, unit.total, trial.balance) for queue in shared)


def _falls_below(queue: Queue, lost: Amount, balance: Balance) -> bool:
    used = balance.kept(queue)
    guaranteed = (queue.guaranteed or {}).items()
    return any(0 <= used.get(kind, 0) - amount < lost.get(kind, 0) for kind, amount in guaranteed)
