"""An attempt so far: its victims, what that leaves of guarantees, and what is free on the nodes then."""

from slurm_bridge.families.yunikorn.queues import amounts
from slurm_bridge.families.yunikorn.queues.amounts import Amount
from slurm_bridge.families.yunikorn.queues.preemptors import balance as balances
from slurm_bridge.families.yunikorn.queues.preemptors.balance import Balance
from slurm_bridge.families.yunikorn.queues.preemptors.facts import Asker, AttemptNode
from slurm_bridge.families.yunikorn.queues.preemptors.units import Unit
from slurm_bridge.families.yunikorn.queues.tree import Queue


class Trial:
    """Removals one after the other, for one ask; everything may be put back."""

    __slots__ = ("asker", "balance", "freed", "gone", "guarded")

    def __init__(self, asker: Asker, balance: Balance, *, guarded: bool) -> None:
        self.asker = asker
        self.balance = balance.fork()
        self.guarded = guarded
        self.gone: dict[Unit, None] = {}
        self.freed: dict[str, dict[str, int]] = {}

    def fork(self) -> "Trial":
        """The same, to go on with on its own."""
        other = Trial(self.asker, self.balance, guarded=self.guarded)
        other.gone = dict(self.gone)
        other.freed = {node: dict(amount) for node, amount in self.freed.items()}
        return other

    def free(self, node: AttemptNode) -> Amount:
        """What the ask finds there."""
        freed = self.freed.get(node.name)
        return amounts.plus(node.free, freed) if freed else node.free

    def remove(self, unit: Unit) -> None:
        """It is gone from its queue and its nodes."""
        self.gone[unit] = None
        self.balance.take(unit.queue, unit.total)
        for node, amount in unit.by_node.items():
            amounts.add(self.freed.setdefault(node, {}), amount)

    def put_back(self, unit: Unit) -> None:
        """The inverse of `remove`."""
        del self.gone[unit]
        self.balance.add(unit.queue, unit.total)
        for node, amount in unit.by_node.items():
            amounts.add(self.freed[node], amounts.times(amount, -1))

    def use(self, node: str) -> None:
        """A member of the ask is there."""
        amounts.add(self.freed.setdefault(node, {}), amounts.times(self.asker.resource, -1))

    def has_room_for(self, amount: Amount) -> bool:
        """The asking queue may take over so much more by its guarantee; without any, nothing."""
        remaining = self.balance.remaining(self.asker.queue)
        return remaining is not None and amounts.fit_in_actual(amount, remaining)

    def charge(self, amount: Amount) -> None:
        """The asking queue takes over so much."""
        self.balance.add(self.asker.queue, amount)

    def taken_over(self, unit: Unit) -> Amount:
        """What the asking queue is charged with for a victim.

        By the rules with all of it, but for a gang: of a large one it is charged with what it can use. The rest becomes
        free for all, and would otherwise protect the gang from every small queue. A guarded attempt does so with
        whatever is large, because a resource manager may count a whole gang as one, and never with more than is left of
        the guarantee: it takes no more than it needs, whatever was looked at before.
        """
        if unit.members == 1 and not self.guarded:
            return unit.total
        wanted = self.asker.total
        share = {kind: min(amount, wanted[kind]) for kind, amount in unit.total.items() if kind in wanted}
        left = self.balance.remaining(self.asker.queue) if self.guarded else None
        return {kind: max(0, min(amount, (left or {}).get(kind, amount))) for kind, amount in share.items()}

    def may_lose(self, unit: Unit) -> bool:
        """Its queue is over its guarantee in a type of the ask, as it is now; without any defined it always is."""
        remaining = self.balance.remaining(unit.queue)
        if remaining is not None and not balances.is_over(self.asker.resource, remaining):
            return False
        return not self.guarded or all(
            self._keeps_guarantee(queue, unit.total)
            for queue in unit.queue.lineage
            if not self.balance.contains_asker(queue)
        )

    def _keeps_guarantee(self, queue: Queue, lost: Amount) -> bool:
        """What the queue has been guaranteed is not what it loses.

        A guarantee that is met stays met, in every type. Where it is not met in one type, the queue loses something
        only if it borrows in another one of those that are asked for.
        """
        guaranteed = queue.guaranteed
        if not guaranteed:
            return True
        used = self.balance.kept(queue)
        if any(0 <= used.get(kind, 0) - amount < lost.get(kind, 0) for kind, amount in guaranteed.items()):
            return False
        asked = [kind for kind in self.asker.resource if kind in guaranteed]
        return not asked or any(used.get(kind, 0) > guaranteed[kind] for kind in asked)
