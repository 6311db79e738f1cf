"""What stands in each leaf, as attempts of preemption see it: kept with every change, made when it is read."""

from slurm_bridge.families.yunikorn.queues.preemptors.facts import AttemptAllocation
from slurm_bridge.families.yunikorn.queues.records import Allocation, AskId
from slurm_bridge.families.yunikorn.queues.tree import Queue


class Standings:
    """The allocations of a partition by leaf. `behind`: another scheduler starts them, and says when."""

    def __init__(self, *, behind: bool = False) -> None:
        self._behind = behind
        self._started: set[AskId] = set()
        self._leaves: dict[Queue, dict[AskId, Allocation]] = {}
        self._queues: dict[AskId, Queue] = {}
        self._made: dict[AskId, AttemptAllocation] = {}
        self._to_go: set[AskId] = set()
        #: Could not be evicted: until when they are not asked again.
        self._spared: dict[AskId, float] = {}

    def add(self, queue: Queue, allocation: Allocation) -> None:
        """It stands in this leaf."""
        one = allocation.ask.id
        self._leaves.setdefault(queue, {})[one] = allocation
        self._queues[one] = queue

    def drop(self, one: AskId) -> None:
        """The inverse of `add`."""
        queue = self._queues.pop(one)
        del self._leaves[queue][one]
        if not self._leaves[queue]:
            del self._leaves[queue]
        self._made.pop(one, None)
        self._spared.pop(one, None)
        self._to_go.discard(one)
        self._started.discard(one)

    def start(self, one: AskId) -> None:
        """It has its nodes; one that is gone has not."""
        if one in self._queues:
            self._started.add(one)
            self._made.pop(one, None)

    def mark(self, one: AskId) -> None:
        """It is to go."""
        self._to_go.add(one)
        self._made.pop(one, None)

    def unmark(self, one: AskId) -> None:
        """The inverse of `mark`."""
        self._to_go.discard(one)
        self._made.pop(one, None)

    def protect(self, one: AskId, until: float) -> None:
        """It could not be evicted: it is no candidate before then."""
        if one in self._queues:
            self._spared[one] = until

    def of(self, leaf: Queue, now: float) -> list[AttemptAllocation]:
        """Whatever of the leaf may be thought of."""
        return [self.one(key) for key in self._leaves.get(leaf, ()) if self.is_candidate(key, now)]

    def is_candidate(self, one: AskId, now: float) -> bool:
        """It is not known to be impossible to evict."""
        return not self._spared or self._spared.get(one, now) <= now

    def one(self, key: AskId) -> AttemptAllocation:
        """A single one of those that there are."""
        known = self._made.get(key)
        if known is None:
            queue = self._queues[key]
            allocation, started = self._leaves[queue][key], not self._behind or key in self._started
            known = self._made[key] = _standing(queue, allocation, to_go=key in self._to_go, started=started)
        return known


def _standing(queue: Queue, allocation: Allocation, *, to_go: bool, started: bool) -> AttemptAllocation:
    ask = allocation.ask
    return AttemptAllocation(
        key=ask.id,
        queue=queue,
        resource=ask.resource,
        nodes=allocation.nodes,
        priority=ask.priority,
        created=ask.created,
        allow_preempt_self=ask.allow_preempt_self,
        originator=ask.originator,
        required_node=ask.required_node,
        preempted=to_go,
        started=started,
    )
