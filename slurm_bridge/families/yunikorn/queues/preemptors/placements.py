"""Where an ask would run: for each node the victims that make room there, and the choice among nodes.

A gang is placed member by member. What one member takes and frees counts for the next ones, so a node's solution is
worked out again when something changed since, but only once it is the best one: others can wait.
"""

import dataclasses
import heapq
import itertools
from collections.abc import Iterable, Sequence

from slurm_bridge.families.yunikorn.queues import amounts
from slurm_bridge.families.yunikorn.queues.amounts import Amount
from slurm_bridge.families.yunikorn.queues.preemptors.facts import AttemptNode, AttemptScene
from slurm_bridge.families.yunikorn.queues.preemptors.trial import Trial
from slurm_bridge.families.yunikorn.queues.preemptors.units import Unit, parts

Solution = tuple[Unit, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A node for each member, and the victims that make room there."""

    nodes: tuple[AttemptNode, ...]
    victims: Solution


# -- one node ----------------------------------------------------------------------------------------------------------


def solution(trial: Trial, node: AttemptNode, found: Sequence[Unit]) -> Solution | None:
    """The victims that make room for one member on the node, none of them where it fits; None where it cannot."""
    if amounts.fit_in(trial.asker.resource, trial.free(node)):
        return ()
    # Most often those that help are enough; the rest is gone through only where they are not.
    taken = _sufficient(trial.fork(), node, _promising(trial.fork(), node, found, all_of_them=False))
    return taken or _sufficient(trial.fork(), node, _promising(trial.fork(), node, found, all_of_them=True))


def _promising(trial: Trial, node: AttemptNode, found: Iterable[Unit], *, all_of_them: bool) -> list[Unit]:
    """What may be taken, as long as the asking queue has room for it; what does not help comes last."""
    helpful: list[Unit] = []
    others: list[Unit] = []
    for unit in found:
        if not trial.may_lose(unit):
            continue
        lacking = _lacking(trial, node)
        if not all_of_them and not any(lacking.values()):
            break
        trial.remove(unit)
        if not trial.has_room_for(trial.taken_over(unit)):
            break
        if _lacking(trial, node) == lacking:
            trial.put_back(unit)
            others.append(unit)
        else:
            trial.charge(trial.taken_over(unit))
            helpful.append(unit)
    return helpful + others


def _sufficient(trial: Trial, node: AttemptNode, found: Iterable[Unit]) -> Solution | None:
    """As many of them as it takes, in their order."""
    taken: list[Unit] = []
    for unit in found:
        if not trial.may_lose(unit):
            continue
        trial.remove(unit)
        taken.append(unit)
        if amounts.fit_in(trial.asker.resource, trial.free(node)):
            return tuple(taken)
    return None


def _lacking(trial: Trial, node: AttemptNode) -> Amount:
    free = trial.free(node)
    return {kind: max(0, amount - free.get(kind, 0)) for kind, amount in trial.asker.resource.items()}


# -- choice ------------------------------------------------------------------------------------------------------------


def place(trial: Trial, scene: AttemptScene, found: Sequence[Unit]) -> Placement | None:
    """The best place for all members, all or none. What is decided is in the trial then."""
    return _Search(trial, scene, found).run()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, order=True)
class _Offer:
    """A node's solution; the smaller one is better. `serial` says which is the node's latest."""

    opted_out: bool
    originator: bool
    victims: int
    node: str
    serial: int


class _Search:
    def __init__(self, trial: Trial, scene: AttemptScene, found: Sequence[Unit]) -> None:
        self._trial = trial
        self._scene = scene
        self._by_node: dict[str, list[Unit]] = {}
        for unit in found:
            for node in unit.by_node:
                self._by_node.setdefault(node, []).append(unit)
        self._offers: list[_Offer] = []
        self._serials = itertools.count()
        #: Of each node with an offer: which one stands, at how many placed members it was made, and its victims.
        self._latest: dict[str, tuple[int, int, AttemptNode, Solution]] = {}
        self._placed: list[AttemptNode] = []
        self._victims: list[Unit] = []

    def run(self) -> Placement | None:
        tried = self._tried_all
        for node in map(self._scene.nodes.get, self._by_node) if tried else iter(self._scene.nodes):
            if node is not None and self._is_usable(node):
                self._offer(node)
        while self._offers and len(self._placed) < self._trial.asker.members:
            self._settle(heapq.heappop(self._offers))
        if len(self._placed) < self._trial.asker.members or (self._scene.nodes_tried and not self._victims):
            return None
        return Placement(nodes=tuple(self._placed), victims=tuple(self._victims))

    def _settle(self, best: _Offer) -> None:
        """Take the offer if it still stands."""
        serial, placed, node, victims = self._latest[best.node]
        if serial != best.serial:
            return
        if placed != len(self._placed):
            self._offer(node)
        elif self._scene.acceptable(node.name, parts((*self._victims, *victims))):
            for unit in victims:
                self._trial.remove(unit)
                self._trial.charge(self._trial.taken_over(unit))
            self._trial.use(node.name)
            self._placed.append(node)
            self._victims += victims
            # A gang that is gone makes room on other nodes too: what is better than before has to be found.
            for name in dict.fromkeys((node.name, *(name for unit in victims for name in unit.by_node))):
                other = self._scene.nodes.get(name)
                if other is not None and self._is_usable(other):
                    self._offer(other)

    def _offer(self, node: AttemptNode) -> None:
        gone = self._trial.gone
        found = solution(self._trial, node, [unit for unit in self._by_node.get(node.name, ()) if unit not in gone])
        if found is None or (self._tried_all and not found):
            return
        offer = _Offer(
            opted_out=any(unit.opted_out for unit in found),
            originator=any(unit.originator for unit in found),
            victims=sum(unit.members for unit in found),
            node=node.name,
            serial=next(self._serials),
        )
        self._latest[node.name] = (offer.serial, len(self._placed), node, found)
        heapq.heappush(self._offers, offer)

    @property
    def _tried_all(self) -> bool:
        """Every node has been tried without victims; of a gang that says only that not all of it has its place."""
        return self._scene.nodes_tried and self._trial.asker.members == 1

    def _is_usable(self, node: AttemptNode) -> bool:
        fits = amounts.fit_in(self._trial.asker.resource, node.capacity)
        return fits and node.schedulable and not self._scene.held(node.name)
