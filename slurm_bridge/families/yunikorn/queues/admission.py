"""What may enter the committed state: the reason why something may not, "" where it may. Nothing is changed here."""

from collections.abc import Iterable

from slurm_bridge.families.yunikorn.queues import amounts, records
from slurm_bridge.families.yunikorn.queues.amounts import Amount
from slurm_bridge.families.yunikorn.queues.committed import CommittedPartition
from slurm_bridge.families.yunikorn.queues.orders import NodePolicy
from slurm_bridge.families.yunikorn.queues.records import Allocation, AllocationAsk


def node_obstacle(node: records.NodeReport, partition: CommittedPartition, others: Iterable[CommittedPartition]) -> str:
    """A node is in one partition only, and has no less than nothing of anything."""
    wrong = _negative(node.capacity)
    if not node.name or wrong:
        return f"node {node.name!r}: {wrong or 'has no name'}"
    known = partition.nodes.get(node.name)
    if known is not None and known.leaving:
        return f"node {node.name}: is still leaving; add it again once its removal is confirmed"
    for other in others:
        if other is not partition and node.name in other.nodes:
            return f"node {node.name}: is in partition {other.title} already; partitions share no node"
    return ""


def application_obstacle(application: records.Application, partition: CommittedPartition) -> str:
    """Its name is free, and it chooses an order of nodes that there is."""
    name, known = application.name, partition.applications.get(application.name)
    if not name:
        return "an application has a name"
    if known is not None and known.leaving:
        return f"application {name}: one of this name is still leaving; add it again once its removal is confirmed"
    if known is not None:
        return f"application {name}: is in queue {known.queue.path} already"
    sorts = {*NodePolicy, *partition.settings.node_sort.registered}
    if application.node_sort and application.node_sort not in sorts:
        allowed = ", ".join(sorted(sorts))
        return f"application {name}: node sort {application.node_sort!r} is unknown; use one of {allowed}"
    return ""


def ask_obstacle(ask: AllocationAsk, partition: CommittedPartition) -> str:
    """Its application is there, it asks for something, and has not got it already."""
    where = f"ask {ask.key} of application {ask.application}"
    application = partition.applications.get(ask.application)
    if application is None or application.leaving:
        return f"{where}: there is no such application in partition {partition.title}"
    if ask.key in application.going:
        return f"{where}: one of this key is still leaving; ask again once its removal is confirmed"
    if not ask.key or ask.key in application.allocations:
        return f"{where}: {'is allocated already' if ask.key else 'has no key'}"
    if ask.members < 1:
        return f"{where}: has {ask.members} members; use 1 or more"
    if not amounts.is_positive(ask.resource):
        return f"{where}: {_negative(ask.resource) or 'asks for nothing'}; use positive amounts"
    return ""


def standing_obstacle(allocation: Allocation, partition: CommittedPartition) -> str:
    """What stands is an ask like any other, and on nodes that are there."""
    if not allocation.nodes or len(allocation.nodes) > allocation.ask.members:
        of = f"{len(allocation.nodes)} nodes for {allocation.ask.members} members"
        return f"allocation {allocation.ask.key} of application {allocation.ask.application}: has {of}"
    there = {name for name, node in partition.nodes.items() if not node.leaving}
    unknown = sorted({name for name in allocation.nodes if name not in there})
    if unknown:
        where = f"allocation {allocation.ask.key} of application {allocation.ask.application}"
        return f"{where}: node {unknown[0]} is not in partition {partition.title}"
    return ask_obstacle(allocation.ask, partition)


def _negative(amount: Amount) -> str:
    kind = next((kind for kind, one in sorted(amount.items()) if one < 0), None)
    return "" if kind is None else f"{kind} is {amount[kind]}, less than nothing"
