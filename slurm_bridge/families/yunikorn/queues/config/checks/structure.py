"""Names, access control lists, and what is said of a partition as a whole."""

from collections.abc import Iterable, Iterator

from slurm_bridge.families.yunikorn.queues.config import documents, names, records
from slurm_bridge.families.yunikorn.queues.config.problems import QueueProblem, problem

#: Users, then groups.
_ACL_FIELDS = 2

NODE_SORTS = ("fair", "binpacking")


def partition_names(document: documents.Document) -> Iterator[QueueProblem]:
    """Two partitions differ in more than their case."""
    seen: dict[str, documents.PartitionDocument] = {}
    for partition in document.partitions:
        first = seen.setdefault(partition.name.lower(), partition)
        if first is not partition:
            there = f"is {partition.name!r}, as {first.where} is ignoring case"
            yield problem("duplicate_partition", f"{partition.where}.name", there, "every partition has its own name")


def partition(checked: documents.PartitionDocument) -> Iterator[QueueProblem]:
    """The root, the names and lists of all queues, the limits on the partition, and its order of nodes."""
    root = checked.root
    if root.guaranteed or root.max:
        there = f"has {' and '.join(word for word in ('guaranteed', 'max') if getattr(root, word))}"
        yield problem("root_resources", f"{root.where}.resources", there, "the root has what the cluster has")
    for _, queue in documents.walk(root):
        yield from _children(queue)
        yield from _acls(queue)
    if checked.limits and checked.limits != root.limits:
        there = f"differ from those of the root, {root.where}.limits"
        yield problem("partition_and_root_limits_differ", f"{checked.where}.limits", there, "say them once, or equally")
    yield from _node_sort(checked.node_sort)


def _children(queue: documents.QueueDocument) -> Iterator[QueueProblem]:
    seen: dict[str, str] = {}
    for child in queue.queues:
        if not names.QUEUE.fullmatch(child.name):
            allowed = f"use 1 to 64 {names.IN_QUEUES}"
            yield problem("queue_name", f"{child.where}.name", f"is {child.name!r}", allowed)
        first = seen.setdefault(child.name.lower(), child.where)
        if first != child.where:
            there = f"is {child.name!r}, as {first} is ignoring case"
            yield problem(
                "duplicate_queue", f"{child.where}.name", there, "every queue below a parent has its own name"
            )


def _acls(queue: documents.QueueDocument) -> Iterator[QueueProblem]:
    for field, text in (("submitacl", queue.submit_acl), ("adminacl", queue.admin_acl)):
        fields = text.strip().split(" ")
        if len(fields) > _ACL_FIELDS:
            there = f"is {text!r}, {len(fields)} fields"
            yield problem("acl_fields", f"{queue.where}.{field}", there, "use 'users groups', or '*' for all")


def _node_sort(sort: documents.NodeSort) -> Iterable[QueueProblem]:
    known = (*NODE_SORTS, *sorted(sort.registered))
    if sort.policy and sort.policy not in known:
        allowed = f"use {', '.join(known[:-1])} or {known[-1]}"
        yield problem("unknown_node_sort_policy", f"{sort.where}.type", f"is {sort.policy!r}", allowed)
    for kind, weight in sort.weights.items():
        if weight < 0:
            where = records.field(f"{sort.where}.resourceweights", kind)
            yield problem("negative_node_weight", where, f"is {weight:g}", "use 0 or more")
