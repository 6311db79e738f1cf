"""The scheduler's view of a partition's nodes: what is on each, the asks that hold it, and their order.

Orders are kept: a change of a node moves that node in them and leaves the others where they are.
"""

import bisect
import functools
import itertools
from collections.abc import Collection, Iterator, Mapping

from slurm_bridge.families.yunikorn.queues import amounts, orders, records
from slurm_bridge.families.yunikorn.queues.amounts import Amount, Known
from slurm_bridge.families.yunikorn.queues.config import documents
from slurm_bridge.families.yunikorn.queues.orders import NodePolicy
from slurm_bridge.families.yunikorn.queues.records import Allocation, AskId, NodeMode

#: Capacity and what is allocated of it, to a score; low scores are tried first.
NodeSort = documents.NodeOrder
_USUAL = documents.NodeSort()


def sorts(configured: documents.NodeSort = _USUAL) -> Mapping[str, NodeSort]:
    """The orders that are built in, and those that are registered, by name."""
    builtin = {
        policy.value: functools.partial(orders.node_score, policy=policy, weights=configured.weights)
        for policy in NodePolicy
    }
    return {**configured.registered, **builtin}


class PartitionNode:
    """One node. `held` are the asks that reserve it, since when; several only where they all require it.

    `elsewhere` are the other schedulers that hold it.
    """

    __slots__ = (
        "allocated",
        "allocations",
        "capacity",
        "elsewhere",
        "free",
        "held",
        "name",
        "schedulable",
        "size",
        "stated",
    )

    def __init__(self, record: records.NodeReport) -> None:
        self.name = record.name
        self.capacity: Amount = record.capacity
        self.size = _size(record)
        self.stated = record.size is not None
        self.schedulable = record.schedulable
        self.allocated: dict[str, int] = {}
        self.free: Amount = record.capacity
        self.allocations: dict[AskId, Allocation] = {}
        self.held: dict[AskId, float] = {}
        self.elsewhere: set[int] = set()

    def holds(self, resource: Amount) -> bool:
        """The node is large enough, were it empty."""
        return amounts.fit_in(resource, self.capacity)

    def is_open(self) -> bool:
        """Any ask may use it."""
        return self.schedulable and not self.held and not self.elsewhere


def _size(record: records.NodeReport) -> Amount:
    return record.capacity if record.size is None else record.size


class NodesOfPartition:
    """All nodes of a partition, each in its place in every order that is used."""

    def __init__(self, sorts: Mapping[str, NodeSort], mode: NodeMode) -> None:
        self._sorts = sorts
        self._mode = mode
        self._nodes: dict[str, PartitionNode] = {}
        self._orders: dict[str, list[tuple[float, str]]] = {}
        self._places: dict[str, dict[str, tuple[float, str]]] = {}
        self.total: dict[str, int] = {}
        #: How often a node has got room again; and which ones, the last one last, with the count then.
        self.freed = 0
        self._freed: dict[str, int] = {}
        self._unstated = 0

    @property
    def are_shared_out(self) -> bool:
        """What is allocated on a node is room that others do not have."""
        return self._mode is NodeMode.FREE

    @property
    def stated(self) -> Known:
        """How large all of them say they are, where another scheduler shares them out; None where one does not say."""
        return None if self.are_shared_out or self._unstated else self.total

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[PartitionNode]:
        return iter(self._nodes.values())

    def __getitem__(self, name: str) -> PartitionNode:
        return self._nodes[name]

    def get(self, name: str) -> PartitionNode | None:
        return self._nodes.get(name)

    def put(self, record: records.NodeReport) -> PartitionNode:
        """A new node, or other facts about a known one, which keeps its allocations."""
        node = self._nodes.get(record.name)
        if node is None:
            node = self._nodes[record.name] = PartitionNode(record)
        else:
            self.total = amounts.minus(self.total, node.size)
            node.capacity, node.size, node.schedulable = record.capacity, _size(record), record.schedulable
            self._unstated -= not node.stated
            node.stated = record.size is not None
        self.total = amounts.plus(self.total, node.size)
        self._unstated += not node.stated
        self._changed(node)
        return node

    def remove(self, name: str) -> PartitionNode | None:
        """Forget it; None where it is not known."""
        node = self._nodes.pop(name, None)
        if node is None:
            return None
        self._freed.pop(name, None)
        self.total = amounts.minus(self.total, node.size)
        self._unstated -= not node.stated
        for sort, places in self._places.items():
            self._leave(sort, places.pop(name))
        return node

    def add(self, allocation: Allocation) -> None:
        """Count it on each of its nodes, once for each member there."""
        for name in allocation.nodes:
            node = self._nodes.get(name)
            if node is not None:
                node.allocations[allocation.ask.id] = allocation
                node.allocated = amounts.plus(node.allocated, allocation.ask.resource)
                self._changed(node)

    def take_off(self, allocation: Allocation) -> None:
        """The inverse of `add`."""
        for name in allocation.nodes:
            node = self._nodes.get(name)
            if node is not None:
                node.allocations.pop(allocation.ask.id, None)
                node.allocated = amounts.minus(node.allocated, allocation.ask.resource)
                self._changed(node)
                if self.are_shared_out:
                    self.freed += 1
                    self._freed.pop(name, None)
                    self._freed[name] = self.freed

    def freed_since(self, count: int) -> Iterator[PartitionNode]:
        """The nodes that have got room since so many had."""
        late = itertools.takewhile(lambda name: self._freed[name] > count, reversed(self._freed))
        return (self._nodes[name] for name in late)

    def hold(self, name: str, holder: AskId, since: float) -> None:
        """Reserve it."""
        self._nodes[name].held[holder] = since

    def let_go(self, name: str, holder: AskId) -> None:
        """The inverse of `hold`."""
        node = self._nodes.get(name)
        if node is not None:
            node.held.pop(holder, None)

    def sort_by(self, sorts: Mapping[str, NodeSort]) -> None:
        """From now on these are the orders."""
        self._sorts = sorts
        self._orders.clear()
        self._places.clear()

    def ordered(self, sort: str) -> Iterator[PartitionNode]:
        """All of them, by ascending score, then by name."""
        return (self._nodes[name] for _, name in self._order(sort))

    def some_ordered(self, sort: str, names: Collection[str]) -> Iterator[PartitionNode]:
        """Some of them, in the same order."""
        self._order(sort)
        places = self._places[sort]
        return (self._nodes[name] for _, name in sorted(places[name] for name in names if name in places))

    def score(self, sort: str, node: PartitionNode, taken: Amount) -> tuple[float, str]:
        """Where the node would stand with so much more on it."""
        return orders.node_key(self._sorts[sort](node.capacity, amounts.plus(node.allocated, taken)), node.name)

    def _order(self, sort: str) -> list[tuple[float, str]]:
        if sort not in self._orders:
            self._places[sort] = {node.name: self.score(sort, node, {}) for node in self}
            self._orders[sort] = sorted(self._places[sort].values())
        return self._orders[sort]

    def _changed(self, node: PartitionNode) -> None:
        free = self._mode is NodeMode.FREE
        node.free = amounts.minus(node.capacity, node.allocated) if free else node.capacity
        for sort, places in self._places.items():
            before, place = places.get(node.name), self.score(sort, node, {})
            if place == before:
                continue
            if before is not None:
                self._leave(sort, before)
            places[node.name] = place
            bisect.insort(self._orders[sort], place)

    def _leave(self, sort: str, place: tuple[float, str]) -> None:
        order = self._orders[sort]
        del order[bisect.bisect_left(order, place)]
