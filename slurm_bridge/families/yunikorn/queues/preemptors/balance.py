"""Guarantees, as usage would be: an overlay of changes on a tree that stays as it is.

What is left of a queue's guarantee depends on the asker: siblings of the asking queue are judged by their own guarantee
only, all others also by what is left of all guarantees above.
"""

from collections.abc import Mapping

from slurm_bridge.families.yunikorn.queues import amounts
from slurm_bridge.families.yunikorn.queues.amounts import Amount, Known
from slurm_bridge.families.yunikorn.queues.tree import Queue


class Balance:
    """The usage of every queue with some changes, and what follows for guarantees, for one asking queue."""

    __slots__ = ("_above", "_changes", "asking")

    def __init__(self, asking: Queue, changes: Mapping[Queue, Amount] | None = None) -> None:
        self.asking = asking
        self._above = frozenset(asking.lineage)
        self._changes = {queue: dict(change) for queue, change in (changes or {}).items()}

    def fork(self) -> "Balance":
        """The same, to be changed on its own."""
        return Balance(self.asking, self._changes)

    def seen_from(self, asking: Queue) -> "Balance":
        """The same usage, for another asking queue."""
        return Balance(asking, self._changes)

    # -- usage -------------------------------------------------------------------------------------------------------

    def add(self, queue: Queue, amount: Amount) -> None:
        """So much more is in use, here and above."""
        for above in queue.lineage:
            amounts.add(self._changes.setdefault(above, {}), amount)

    def take(self, queue: Queue, amount: Amount) -> None:
        """The inverse of `add`."""
        self.add(queue, amounts.times(amount, -1))

    def allocated(self, queue: Queue) -> Amount:
        """All that is in use."""
        change = self._changes.get(queue)
        return amounts.plus(queue.allocated, change) if change else queue.allocated

    def kept(self, queue: Queue) -> Amount:
        """What is in use and not being taken back already."""
        used = self.allocated(queue)
        return amounts.minus(used, queue.preempting) if queue.preempting else used

    def contains_asker(self, queue: Queue) -> bool:
        """It is the asking queue, or above it."""
        return queue in self._above

    # -- guarantees --------------------------------------------------------------------------------------------------

    def preemptable(self, queue: Queue) -> Known:
        """What may be taken back of it at most, by type; None for nothing."""
        guaranteed = queue.guaranteed or {}
        surplus = {kind: amount - guaranteed.get(kind, 0) for kind, amount in self.kept(queue).items()}
        own = {kind: amount for kind, amount in surplus.items() if amount > 0}
        above = self.preemptable(queue.parent) if queue.parent and own else None
        return {kind: min(amount, (above or {}).get(kind, amount)) for kind, amount in own.items()} or None

    def left(self, queue: Queue) -> Known:
        """What its own guarantee leaves, by guaranteed type, negative where it uses more; None without a guarantee."""
        if not queue.guaranteed:
            return None
        used = self.kept(queue)
        return {kind: amount - used.get(kind, 0) for kind, amount in queue.guaranteed.items()}

    def remaining(self, queue: Queue) -> Known:
        """What is left of its guarantee and of those above it, as far as they count for the asking queue.

        asking queue          with a guarantee: its own, and the types that only those above define
        above the asking one  where both have a guarantee: nothing is defined
        otherwise             the smaller of its own and that above
        """
        own = self.left(queue)
        if queue.parent is None:
            return own
        if own is not None and queue in self._above and queue is not self.asking and self.asking.guaranteed:
            return None
        above = self.remaining(queue.parent)
        if own is not None and queue is self.asking:
            return {**(above or {}), **own}
        return amounts.smaller(own, above)


def is_over(ask: Amount, remaining: Known) -> bool:
    """The queue is over its guarantee: some type of the ask has less than nothing left."""
    return any((remaining or {}).get(kind, 0) < 0 for kind in ask)
