"""Preemptions under way: askers with their victims, and which of these are still there.

What an asker was promised counts against guarantees until it has it, so that none is given twice. What becomes free of
its victims is kept for it, so that no queue above gives it to others. A flight whose last victim has gone stays until
a pass has tried its asker: it lands then, and an asker that still waits may be planned for anew.
"""

from collections.abc import Iterator, Mapping

from slurm_bridge.families.yunikorn.queues import amounts, tree
from slurm_bridge.families.yunikorn.queues.amounts import Amount, Known
from slurm_bridge.families.yunikorn.queues.records import AskId
from slurm_bridge.families.yunikorn.queues.tree import Queue


class Flight:
    """One asker in its queue, what all its members take, and the victims that have not gone yet, with what they have.

    `kept` is what is free for it already, here and above; `spared`: one victim turned out to stay.
    """

    __slots__ = ("asker", "kept", "queue", "spared", "total", "victims")

    def __init__(self, asker: AskId, queue: Queue, total: Amount) -> None:
        self.asker = asker
        self.queue = queue
        self.total = total
        self.victims: dict[AskId, Amount] = {}
        self.kept: Amount = {}
        self.spared = False

    def keep(self, amount: Amount) -> None:
        """From now on so much, as far as it was promised."""
        kept = {kind: min(most, max(0, amount.get(kind, 0))) for kind, most in self.total.items()}
        change = amounts.minus(kept, self.kept)
        for queue in self.queue.lineage:
            amounts.add(queue.promised, change)
        self.kept = kept

    def room(self) -> Known:
        """The headroom of the asker, with what is kept for it."""
        room = tree.headroom(self.queue)
        return room and {kind: most + self.kept.get(kind, 0) for kind, most in room.items()}


class Flights:
    """All of a partition, in the order in which they began."""

    def __init__(self) -> None:
        self._flights: dict[AskId, Flight] = {}
        self._of_victim: dict[AskId, Flight] = {}

    def __contains__(self, asker: AskId) -> bool:
        return asker in self._flights

    def get(self, asker: AskId) -> Flight | None:
        """That of this asker, None where nothing is evicted for it."""
        return self._flights.get(asker)

    def __iter__(self) -> Iterator[Flight]:
        return iter(tuple(self._flights.values()))

    def __len__(self) -> int:
        return len(self._flights)

    def begin(self, asker: AskId, queue: Queue, total: Amount, victims: Mapping[AskId, Amount]) -> None:
        """These are to go for it; further victims join those that it has."""
        flight = self._flights.get(asker)
        if flight is None:
            flight = self._flights[asker] = Flight(asker, queue, total)
            flight.keep(total)
        for victim, amount in victims.items():
            if victim not in self._of_victim:
                self._of_victim[victim] = flight
                flight.victims[victim] = amount
                flight.keep(amounts.minus(flight.kept, amount))

    def gone(self, victim: AskId) -> None:
        """What it had is kept."""
        flight = self._of_victim.pop(victim, None)
        if flight is not None:
            flight.keep(amounts.plus(flight.kept, flight.victims.pop(victim)))

    def spared(self, victim: AskId) -> None:
        """It is not to go any more."""
        flight = self._of_victim.pop(victim, None)
        if flight is not None:
            del flight.victims[victim]
            flight.spared = True

    def end(self, asker: AskId) -> bool:
        """It has its place, or waits no longer; False where nothing was evicted for it."""
        flight = self._flights.pop(asker, None)
        if flight is None:
            return False
        flight.keep({})
        for victim in flight.victims:
            del self._of_victim[victim]
        return True

    def end_all(self, application: str) -> None:
        """The application has gone with all its asks."""
        for asker in [one for one in self._flights if one.application == application]:
            self.end(asker)

    def land(self) -> int:
        """All askers whose victims have gone were tried by now; how many there were."""
        return sum(self.end(flight.asker) for flight in self if not flight.victims)

    def promised(self, but: AskId) -> tuple[tuple[Queue, Amount], ...]:
        """What all askers but this one will take in their queues."""
        return tuple((one.queue, one.total) for one in self._flights.values() if one.asker != but)
