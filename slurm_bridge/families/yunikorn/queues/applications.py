"""The scheduler's view of an application: what it waits for, in its order, and what it has.

Sums are kept with every change. An ask keeps the place that its priority, age and arrival give it.
"""

import bisect
import functools
import math
import sys
from collections.abc import Iterator

from slurm_bridge.families.yunikorn.queues import amounts, orders, priorities, records
from slurm_bridge.families.yunikorn.queues.amounts import Amount
from slurm_bridge.families.yunikorn.queues.records import Allocation, AllocationAsk, AskId
from slurm_bridge.families.yunikorn.queues.tree import Queue

#: What asks have in common that find the same as long as only room counts. A text, because millions are looked up.
Size = str

#: Of so many that text is remembered.
_MOST_SIZES = 4096

#: How often its leaf had been opened when nothing of it could be placed, and until when that stands.
Blocked = tuple[int, float]
NEVER: Blocked = (-1, -math.inf)


class PendingAsk:
    """A pending ask. `total` is what all members take together; `on` are the nodes that it holds, since when."""

    __slots__ = ("ask", "id", "kind", "on", "place", "size", "total")

    def __init__(self, ask: AllocationAsk, node_sort: str, arrival: int = 0) -> None:
        self.ask = ask
        #: Its place among those of its application: by priority, then age, then arrival.
        self.place = (*orders.ask_key(ask), arrival, ask.key)
        self.id: AskId = ask.id
        self.total: Amount = of_members(ask, ask.members)
        self.on: dict[str, float] = {}
        # What a gang finds depends on what it holds.
        self.size = _size(node_sort, tuple(ask.resource.items()), f"{self.id}" if ask.members > 1 else "")
        #: And also where the resource manager is asked.
        self.kind: Size = sys.intern(f"{self.size} {ask.shape}" if ask.shape else f"{self.size} {self.id}")


@functools.lru_cache(maxsize=_MOST_SIZES)
def _size(node_sort: str, resource: tuple[tuple[str, int], ...], own: str) -> Size:
    return sys.intern(f"{node_sort} {sorted(resource)} {own}")


class Application:
    """One application in its leaf queue."""

    __slots__ = (
        "_arrivals",
        "_order",
        "allocated",
        "allocations",
        "asks",
        "blocked",
        "fresh",
        "holders",
        "node_sort",
        "not_before",
        "pending",
        "preempting",
        "queue",
        "ran",
        "record",
        "refusals",
        "refused_until",
        "running",
        "tried_since",
    )

    def __init__(self, record: records.Application, queue: Queue, node_sort: str) -> None:
        self.record = record
        self.queue = queue
        self.node_sort = node_sort
        self.asks: dict[str, PendingAsk] = {}
        self.allocations: dict[str, Allocation] = {}
        #: The allocations that are to go.
        self.preempting: set[str] = set()
        self.allocated: dict[str, int] = {}
        self.pending: dict[str, int] = {}
        self._order: list[tuple[int, float, int, str]] = []
        self._arrivals = 0
        #: How many of its asks hold nodes.
        self.holders = 0
        #: It counts as one that runs; and it does so for good, because something of it has been committed.
        self.running = False
        self.ran = False
        #: How often it was refused in a row what it had been given here.
        self.refusals = 0
        #: Nothing is proposed for it until then, because it was refused again.
        self.refused_until = -math.inf
        #: Set aside until then, because its asks found nothing too often; what holds nodes is tried all the same.
        self.not_before = -math.inf
        #: How much had been told of nodes when its tries in vain began to count.
        self.tried_since = 0
        self.blocked: Blocked = NEVER
        #: Asks that have come since: they are looked at although nothing came of the others.
        self.fresh: dict[str, PendingAsk] = {}

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def submitted(self) -> float:
        return self.record.submitted

    @property
    def priority(self) -> int:
        """The highest of its pending asks."""
        return -self._order[0][0] if self._order else priorities.NOTHING

    def in_order(self) -> Iterator[PendingAsk]:
        """Pending asks by priority, then age, then arrival."""
        return (self.asks[entry[-1]] for entry in self._order)

    def fresh_in_order(self) -> Iterator[PendingAsk]:
        """The same of those that were not looked at yet."""
        return iter(sorted(self.fresh.values(), key=lambda waiting: waiting.place))

    def add(self, ask: AllocationAsk) -> PendingAsk:
        """Let it wait."""
        self._arrivals += 1
        waiting = PendingAsk(ask, self.node_sort, self._arrivals)
        self.asks[ask.key] = self.fresh[ask.key] = waiting
        bisect.insort(self._order, waiting.place)
        self.pending = amounts.plus(self.pending, waiting.total)
        return waiting

    def drop(self, key: str) -> PendingAsk | None:
        """It waits no longer; None where it did not."""
        waiting = self.asks.pop(key, None)
        if waiting is None:
            return None
        self.fresh.pop(key, None)
        del self._order[bisect.bisect_left(self._order, waiting.place)]
        self.pending = amounts.minus(self.pending, waiting.total)
        return waiting

    def take(self, allocation: Allocation) -> None:
        """Count what it got."""
        self.allocations[allocation.ask.key] = allocation
        self.allocated = amounts.plus(self.allocated, total(allocation))

    def give_back(self, key: str) -> Allocation:
        """The inverse of `take`."""
        allocation = self.allocations.pop(key)
        self.allocated = amounts.minus(self.allocated, total(allocation))
        return allocation


def total(allocation: Allocation) -> Amount:
    """What all members of an allocation hold together."""
    return of_members(allocation.ask, len(allocation.nodes))


def of_members(ask: AllocationAsk, members: int) -> Amount:
    """What so many of them take together: mostly there is one."""
    return ask.resource if members == 1 else amounts.times(ask.resource, members)
