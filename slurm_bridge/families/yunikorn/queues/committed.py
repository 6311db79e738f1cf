"""What is committed of one partition: nodes, applications, their asks and allocations, and the usage of its queues.

Nothing here is in flight, held or sorted: that is the scheduler's. A proposal is
checked against all of it and then counted; both under the cache's lock.
"""

import collections
import dataclasses
import functools

from slurm_bridge.families.yunikorn.queues import (
    amounts,
    applications,
    limits,
    partition_names,
    records,
    tree,
)
from slurm_bridge.families.yunikorn.queues.amounts import Amount, Known
from slurm_bridge.families.yunikorn.queues.config import documents, reload, tree_builder
from slurm_bridge.families.yunikorn.queues.records import Allocation, AllocationAsk, AskId, NodeMode, Origin
from slurm_bridge.families.yunikorn.queues.tree import Queue, State


class CommittedNode:
    """A node and what is on it."""

    __slots__ = ("allocated", "allocations", "leaving", "record")

    def __init__(self, record: records.NodeReport) -> None:
        self.record = record
        self.allocated: dict[str, int] = {}
        self.allocations: dict[AskId, Allocation] = {}
        #: Its removal is under way.
        self.leaving = False


class Application:
    """An application; `asks` are those that wait, `preempting` the allocations that are being evicted."""

    __slots__ = ("allocations", "asks", "going", "leaving", "preempting", "queue", "record", "running")

    def __init__(self, record: records.Application, queue: Queue) -> None:
        self.record = record
        self.queue = queue
        self.asks: dict[str, AllocationAsk] = {}
        self.allocations: dict[str, Allocation] = {}
        self.preempting: set[str] = set()
        #: The keys of asks and allocations whose removal is under way.
        self.going: set[str] = set()
        self.running = False
        #: Its removal is under way.
        self.leaving = False


class CommittedPartition:
    """One thread at a time uses it: the cache's lock is held."""

    def __init__(self, name: str, origin: Origin, settings: documents.PartitionDocument) -> None:
        self.name = name
        self.origin = origin
        self.settings = settings
        self.plan = tree_builder.plan(settings)
        self.root = tree_builder.build(self.plan)
        self.limits = limits.MeasuredLimits(settings.root)
        self.nodes: dict[str, CommittedNode] = {}
        self.applications: dict[str, Application] = {}
        self._members: collections.Counter[Queue] = collections.Counter()
        self.total: dict[str, int] = {}

    @property
    def title(self) -> str:
        """Its name as its resource manager has it."""
        return partition_names.own(self.origin.rm, self.name)

    @property
    def size(self) -> Known:
        """What all of it must fit into for guarantees to hold; None where nothing is evicted for that."""
        sizes = [node.record.size for node in self.nodes.values()]
        counts = self.origin.mode is NodeMode.ALLOCATABLE and self.settings.preemption.enabled and None not in sizes
        nothing: Amount = {}
        return functools.reduce(amounts.plus, sizes, nothing) if counts else None

    # -- configuration -----------------------------------------------------------------------------------------------

    def busy(self) -> frozenset[str]:
        """The leaves with applications."""
        return frozenset(application.queue.path for application in self.applications.values())

    def check(self, settings: documents.PartitionDocument) -> None:
        """Refused where a queue in use would change its kind."""
        reload.diff(self.root, tree_builder.plan(settings), self.busy())

    def follow(self, settings: documents.PartitionDocument) -> None:
        """It is configured so from now on."""
        self.settings, self.plan = settings, tree_builder.plan(settings)
        reload.reload(self.root, self.plan, self.busy())
        self.limits.configure(settings.root)

    def leaf(self, path: str) -> Queue:
        """The leaf of this path, made where it does not exist."""
        return tree.find(self.root, path) or tree_builder.create(self.root, self.plan, path)

    # -- nodes -------------------------------------------------------------------------------------------------------

    def put_node(self, record: records.NodeReport) -> None:
        """A new node, or other facts about a known one."""
        node = self.nodes.get(record.name)
        if node is None:
            self.nodes[record.name] = CommittedNode(record)
        else:
            self.total = amounts.minus(self.total, node.record.capacity)
            node.record = record
        self.total = amounts.plus(self.total, record.capacity)
        self._resize()

    def remove_node(self, name: str) -> tuple[Allocation, ...]:
        """Forget it; what was on it, of which a gang keeps its other members."""
        node = self.nodes[name]
        on_it = tuple(node.allocations.values())
        for allocation in on_it:
            self.release(allocation.ask.id)
        del self.nodes[name]
        for allocation in on_it:
            rest = tuple(one for one in allocation.nodes if one != name)
            if rest:
                self.commit(dataclasses.replace(allocation, nodes=rest))
        self.total = amounts.minus(self.total, node.record.capacity)
        self._resize()
        return on_it

    def _resize(self) -> None:
        if self.origin.mode is NodeMode.FREE:
            self.root.resize(self.total)

    # -- applications ------------------------------------------------------------------------------------------------

    def add_application(self, record: records.Application, queue: Queue) -> None:
        """It is in this leaf."""
        self.applications[record.name] = Application(record, queue)
        self._members[queue] += 1
        self.limits.enter(record.name, queue.path, record.user, record.groups)

    def remove_application(self, name: str) -> tuple[Allocation, ...]:
        """Forget it; what it had."""
        application = self.applications[name]
        had = tuple(application.allocations.values())
        for allocation in had:
            self.release(allocation.ask.id)
        if application.running:
            application.queue.finish()
        self.limits.leave(name)
        del self.applications[name]
        self._members[application.queue] -= 1
        self.retire(application.queue)
        return had

    def retire(self, leaf: Queue) -> None:
        """A leaf that drains, or is not configured, is removed when nothing is in it, and those above it."""
        reload.retire(leaf, (leaf.path,) if self._members[leaf] else ())

    # -- allocations -------------------------------------------------------------------------------------------------

    def obstacle(self, allocation: Allocation) -> str:
        """Why this proposal cannot be committed as things are now, "" where it can."""
        ask = allocation.ask
        application = self.applications.get(ask.application)
        if application is None or application.leaving:
            return f"application {ask.application} is not in partition {self.title} any more"
        known = application.asks.get(ask.key)
        if ask.key in application.going or (known is not ask and known != ask):
            return f"ask {ask.key} of application {ask.application} does not wait, or has changed"
        return self._node_obstacle(allocation) or self._queue_obstacle(application, allocation)

    def _node_obstacle(self, allocation: Allocation) -> str:
        nodes = allocation.nodes
        counts = collections.Counter(nodes) if len(nodes) > 1 else dict.fromkeys(nodes, 1)
        for name, members in counts.items():
            node = self.nodes.get(name)
            if node is None or node.leaving:
                return f"node {name} is not in partition {self.title} any more"
            if not node.record.schedulable and not allocation.ask.required_node:
                return f"node {name} is not schedulable any more"
            free = self._free(node)
            if not amounts.fit_in(applications.of_members(allocation.ask, members), free):
                wanted = f"{members} x {_said(allocation.ask.resource)}"
                return f"node {name} has {_said(free)} left; {wanted} are asked for"
        return ""

    def _free(self, node: CommittedNode) -> Amount:
        if self.origin.mode is NodeMode.ALLOCATABLE:
            return node.record.capacity
        return amounts.minus(node.record.capacity, node.allocated)

    def _queue_obstacle(self, application: Application, allocation: Allocation) -> str:
        queue, name, amount = application.queue, application.record.name, applications.total(allocation)
        if queue.state is State.STOPPED:
            return f"queue {queue.path} is stopped"
        room = tree.headroom(queue)
        if not amounts.fit_in_max_undefined(amount, room):
            left, asked = _said(room or {}), _said(amount)
            return f"queue {queue.path} may have {left} more; {asked} are asked for"
        if not application.running and not tree.can_run(queue):
            return f"queue {queue.path}, or one above it, runs as many applications as it may"
        refused = None if application.running else self.limits.may_start(name)
        refused = refused or self.limits.refusal(name, amount)
        return refused.words if refused else ""

    def commit(self, allocation: Allocation) -> None:
        """Count it, whatever the limits are."""
        ask, amount = allocation.ask, applications.total(allocation)
        application = self.applications[ask.application]
        application.asks.pop(ask.key, None)
        application.allocations[ask.key] = allocation
        application.queue.allocate(amount)
        self.limits.allocate(ask.application, amount)
        if not application.running:
            application.running = True
            application.queue.start()
            self.limits.start(ask.application)
        for name in allocation.nodes:
            node = self.nodes[name]
            node.allocations[ask.id] = allocation
            node.allocated = amounts.plus(node.allocated, ask.resource)

    def release(self, allocation_id: AskId) -> Allocation:
        """The inverse of `commit`, except that the application goes on running."""
        application = self.applications[allocation_id.application]
        self.spare(allocation_id)
        allocation = application.allocations.pop(allocation_id.key)
        amount = applications.total(allocation)
        application.queue.release(amount)
        self.limits.release(allocation_id.application, amount)
        for name in allocation.nodes:
            node = self.nodes[name]
            node.allocations.pop(allocation_id, None)
            node.allocated = amounts.minus(node.allocated, allocation.ask.resource)
        return allocation

    def allocation(self, allocation_id: AskId) -> Allocation | None:
        """The one of this id, None where there is none."""
        application = self.applications.get(allocation_id.application)
        return application.allocations.get(allocation_id.key) if application else None

    def waiting(self, ask_id: AskId) -> AllocationAsk | None:
        """The ask of this id, None where none waits or it is about to go."""
        application = self.applications.get(ask_id.application)
        if application is None or application.leaving or ask_id.key in application.going:
            return None
        return application.asks.get(ask_id.key)

    # -- preemption --------------------------------------------------------------------------------------------------

    def evict(self, allocation_id: AskId) -> bool:
        """Mark it as being evicted; False where it is gone, or marked already."""
        application, allocation = self.applications.get(allocation_id.application), self.allocation(allocation_id)
        if application is None or allocation is None or allocation_id.key in application.preempting:
            return False
        application.preempting.add(allocation_id.key)
        application.queue.mark_preempting(applications.total(allocation))
        return True

    def spare(self, allocation_id: AskId) -> bool:
        """The inverse of `evict`; False where it was not marked."""
        application, allocation = self.applications.get(allocation_id.application), self.allocation(allocation_id)
        if application is None or allocation is None or allocation_id.key not in application.preempting:
            return False
        application.preempting.remove(allocation_id.key)
        application.queue.unmark_preempting(applications.total(allocation))
        return True

    def is_to_go(self, allocation_id: AskId) -> bool:
        """It is being evicted, and still there."""
        application = self.applications.get(allocation_id.application)
        return application is not None and allocation_id.key in application.preempting


def _said(amount: Amount) -> str:
    """Amounts as people read them."""
    return ", ".join(f"{kind} {one}" for kind, one in sorted(amount.items())) or "nothing"
