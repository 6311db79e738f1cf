"""Whole attempts: what is preempted for an ask that waits.

1. gate     the asking queue is entitled to it by guarantees
2. nodes    for each node, the victims that make room there
3. choice   the node with the least harm
4. more     further victims, where a maximum of queues is in the way
5. trim     only as many as the ask needs; and in a full cluster, as many as it takes besides
   rooms    where another scheduler shares out the nodes, the fewest that leave the ask room on these, instead of 2 to 5
6. guard    no queue ends below a guarantee that was met, or is preempted for the victims in turn
"""

import dataclasses
import itertools
from collections.abc import Collection, Iterable, Sequence

from slurm_bridge.families.yunikorn.queues import amounts
from slurm_bridge.families.yunikorn.queues.preemptors import balance as balances
from slurm_bridge.families.yunikorn.queues.preemptors import candidates, crowded, facts, guards, placements
from slurm_bridge.families.yunikorn.queues.preemptors.balance import Balance
from slurm_bridge.families.yunikorn.queues.preemptors.facts import (
    Asker,
    AttemptScene,
    Outcome,
    Planned,
    Reason,
)
from slurm_bridge.families.yunikorn.queues.preemptors.placements import Placement
from slurm_bridge.families.yunikorn.queues.preemptors.trial import Trial
from slurm_bridge.families.yunikorn.queues.preemptors.units import Unit, parts

#: How long an ask waits before anything is preempted for it, and until the next attempt, in seconds.
DELAY = 30.0
CHECK_EVERY = 15.0
#: So many ways to make room on nodes are compared where a maximum takes further victims.
MOST_WAYS = 8


def is_allowed(asker: Asker, *, now: float, delay: float = DELAY) -> bool:
    """An attempt may be made for the ask: it may preempt, has not yet, is bound to no node, and waits long enough."""
    may = asker.allow_preempt_other and not asker.triggered and not asker.required_node
    return may and now >= asker.created + delay and now >= asker.last_check + CHECK_EVERY


def try_preemption(asker: Asker, scene: AttemptScene) -> Outcome:
    """The whole attempt for one ask, on the tree as it is; nothing is changed."""
    balance = Balance(asker.queue)
    for queue, amount in scene.promised:
        balance.add(queue, amount)
    found = _find(asker, scene, balance)
    if isinstance(found, _Found) and scene.guarded and _is_taken_back(asker, scene, balance, found):
        found = Reason.TAKEN_BACK
    if isinstance(found, Reason):
        return facts.refused(asker, found)
    return Planned(
        asker=asker.key,
        queue=asker.queue.path,
        nodes=tuple(node.name for node in found.placement.nodes),
        victims=parts(found.victims),
        message=f"preempted for {asker.key} of queue {asker.queue.path}, which is below its guarantee",
    )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    placement: Placement
    victims: tuple[Unit, ...]


def _find(asker: Asker, scene: AttemptScene, balance: Balance) -> _Found | Reason:
    if is_hopeless(asker, balance):
        return Reason.DOES_NOT_GUARANTEE
    eligible = candidates.candidates(asker, balance, scene.standing).units
    short = crowded.shortage(asker, scene.size, balance)
    placement = _placed(asker, scene, balance, eligible)
    if isinstance(placement, Reason):
        return placement
    # Whether its nodes, or a maximum above it, need a victim at all.
    is_admitted = scene.guarded and guards.has_place(asker, placement.nodes, (), balance)
    if is_admitted and not short:
        return Reason.NOT_NEEDED
    victims: tuple[Unit, ...] | Reason = ()
    if not is_admitted:
        victims = _chosen(asker, scene, balance, placement, eligible)
    if scene.rooms is not None and not isinstance(victims, Reason):
        victims = _roomy(asker, scene, balance, eligible, victims)
        if short and not isinstance(victims, Reason):
            victims = crowded.withdrawn(asker, balance, victims, eligible, short) or Reason.NOT_NEEDED
    elif short and not isinstance(victims, Reason):
        victims = crowded.further(asker, balance, victims, eligible, short) or Reason.SHORTFALL
    if isinstance(victims, Reason):
        return victims
    after = guards.served(asker, victims, balance)
    if scene.guarded and not guards.keeps_guarantees(balance, after, victims):
        return Reason.BELOW_GUARANTEE
    return _Found(placement=placement, victims=victims)


def _placed(asker: Asker, scene: AttemptScene, balance: Balance, eligible: Sequence[Unit]) -> Placement | Reason:
    if not _is_entitled(asker, balance, eligible):
        return Reason.DOES_NOT_GUARANTEE
    placement = placements.place(Trial(asker, balance, guarded=scene.guarded), scene, eligible)
    if placement is None:
        return Reason.NO_NODE
    return placement


def _roomy(
    asker: Asker, scene: AttemptScene, balance: Balance, eligible: Sequence[Unit], needed: tuple[Unit, ...]
) -> tuple[Unit, ...] | Reason:
    """The fewest victims that leave nodes for all members, and let it in; `needed` are some that let it in."""

    def may(numbers: Sequence[int]) -> bool:
        return crowded.may_go(asker, balance, (eligible[number] for number in numbers))

    assert scene.rooms is not None
    ways = scene.rooms([unit.parts for unit in eligible], may)
    if ways is None:
        return Reason.NOT_YET
    found: list[tuple[Unit, ...]] = []
    for way in itertools.islice(ways, MOST_WAYS):
        victims = tuple(eligible[number] for number in way)
        more = guards.beyond(asker, victims, needed, balance)
        if crowded.may_go(asker, balance, (*victims, *more)):
            found.append((*victims, *more))
            if not more:
                # Those that follow cost more.
                break
    return min(found, key=lambda victims: sum(unit.members for unit in victims), default=Reason.NO_ROOM)


def _chosen(
    asker: Asker, scene: AttemptScene, balance: Balance, placement: Placement, eligible: Iterable[Unit]
) -> tuple[Unit, ...] | Reason:
    # The rules always look further; an attempt with few victims does so only where the nodes' victims do not do.
    least = _takes_least(asker, scene)
    found = _least(asker, balance, placement, placement.victims) if least else None
    if found is not None:
        return found
    more = _further(Trial(asker, balance, guarded=scene.guarded), placement, eligible)
    if more is None:
        return Reason.INSUFFICIENT
    if not placement.victims and not more:
        return Reason.NO_VICTIMS
    return _trimmed(asker, scene, balance, placement, more) or Reason.SHORTFALL


def is_hopeless(asker: Asker, balance: Balance) -> bool:
    """Its queue's own guarantee does not cover it, and no removal elsewhere changes that: most asks end here."""
    own = balance.left(asker.queue) or {}
    return any(amount > own.get(kind, amount) for kind, amount in asker.total.items())


def _is_entitled(asker: Asker, balance: Balance, eligible: Sequence[Unit]) -> bool:
    """It fits into what is left of the guarantee, or would be within it if everything eligible were gone.

    Less usage never leaves less of a guarantee, so to look after the last removal is to look after each.
    """
    left = balance.remaining(asker.queue)
    if left is not None and amounts.fit_in_actual(asker.total, left):
        return True
    without = guards.served(asker, eligible, balance) if eligible else balance
    left = without.remaining(asker.queue)
    return bool(eligible) and left is not None and not balances.is_over(asker.resource, left)


def _further(trial: Trial, placement: Placement, eligible: Iterable[Unit]) -> list[Unit] | None:
    """Victims beyond those of the nodes that the asking queue may take over; None where that exceeds its guarantee."""
    for unit in placement.victims:
        trial.remove(unit)
    taken: list[Unit] = []
    over = trial.guarded and guards.is_over(trial.asker.queue, trial.balance)
    before = trial.balance.fork() if over else trial.balance
    for unit in eligible:
        if unit in trial.gone or not trial.may_lose(unit):
            continue
        # Beyond a maximum already: more has to go than the ask is entitled to, or it does not get in.
        lacking = over and not guards.has_place(trial.asker, placement.nodes, taken, before)
        trial.remove(unit)
        was = trial.balance.remaining(trial.asker.queue)
        share = trial.taken_over(unit)
        if not trial.has_room_for(share):
            break
        trial.charge(share)
        if amounts.same(trial.balance.remaining(trial.asker.queue), was) and not lacking:
            trial.charge(amounts.times(share, -1))
            trial.put_back(unit)
        else:
            taken.append(unit)
    left = trial.balance.remaining(trial.asker.queue)
    return None if taken and balances.is_over(trial.asker.resource, left) else taken


def _trimmed(
    asker: Asker, scene: AttemptScene, balance: Balance, placement: Placement, more: Iterable[Unit]
) -> tuple[Unit, ...] | None:
    """As many as the ask needs; None where all of them are not enough.

    Where a single ask has its node emptied, victims elsewhere are no use. By the rules it takes as much as it asks for,
    whatever is free besides; a guarded attempt, and a gang, take as little as lets all members run.
    """
    victims = (*placement.victims, *more)
    names = {node.name for node in placement.nodes}
    if asker.members == 1 and placement.victims:
        victims = tuple(unit for unit in victims if not names.isdisjoint(unit.by_node))
    if _takes_least(asker, scene):
        return _least(asker, balance, placement, victims)
    return _covering(asker, victims, names if placement.victims else None)


def _takes_least(asker: Asker, scene: AttemptScene) -> bool:
    return scene.guarded or asker.members > 1


def _covering(asker: Asker, victims: Iterable[Unit], names: Collection[str] | None) -> tuple[Unit, ...] | None:
    """The first that cover the ask, with what they have on some nodes, or all they have."""
    kept: list[Unit] = []
    covered: dict[str, int] = {}
    for unit in victims:
        kept.append(unit)
        for given in [unit.total] if names is None else map(unit.on, names):
            covered = amounts.plus(covered, given)
        if all(covered[kind] >= amount for kind, amount in asker.total.items() if kind in covered):
            return tuple(kept)
    return None


def _least(asker: Asker, balance: Balance, placement: Placement, victims: Sequence[Unit]) -> tuple[Unit, ...] | None:
    """The first that let all members run, except those that are not needed; the last one is spared first."""
    enough = (
        count
        for count in range(1, len(victims) + 1)
        if guards.has_place(asker, placement.nodes, victims[:count], balance)
    )
    kept = list(victims[: next(enough, 0)])
    for unit in reversed(tuple(kept)):
        others = [other for other in kept if other is not unit]
        if guards.has_place(asker, placement.nodes, others, balance):
            kept = others
    return tuple(kept) or None


def _is_taken_back(asker: Asker, scene: AttemptScene, balance: Balance, found: _Found) -> bool:
    """Once the plan is carried out, the queue of a victim would have something of the asking queue preempted."""
    later = guards.later(asker, scene, found.placement, found.victims)
    after = guards.served(asker, found.victims, balance)
    outcomes = (_find(again, later, after.seen_from(again.queue)) for again in guards.asked_again(found.victims))
    return any(
        unit.queue is asker.queue for outcome in outcomes if isinstance(outcome, _Found) for unit in outcome.victims
    )
