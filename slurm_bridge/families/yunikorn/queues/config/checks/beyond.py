"""What this program asks of a configuration beyond YuniKorn's rules: they are checked after those, not instead."""

import dataclasses
from collections.abc import Iterator

from slurm_bridge.families.yunikorn.queues import acl
from slurm_bridge.families.yunikorn.queues.config import documents
from slurm_bridge.families.yunikorn.queues.config.documents import QueueDocument
from slurm_bridge.families.yunikorn.queues.config.problems import QueueProblem, problem

RULES = ("user", "fixed", "provided", "tag")

_WITH_VALUE = ("fixed", "tag")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a name of a queue stands: below which one, in which partition, and where in the document."""

    parent: str
    path: str
    partition: str
    where: str


def places(document: documents.Document) -> Iterator[QueueProblem]:
    """The name of a queue has one place: it is below the same parent in every partition that has it.

    A partition need not have it, which is as if no user might submit to it there. All below a queue that is elsewhere
    is elsewhere too; only the topmost is reported.
    """
    known: dict[str, _Place] = {}
    for partition in document.partitions:
        for name, place in _places(partition):
            first = known.setdefault(name, place)
            if first.parent != place.parent:
                there = f"{name} is {place.path} in partition {place.partition}"
                allowed = (
                    f"a name has one place, and {first.where} has it as {first.path} in partition {first.partition}; "
                    "`one_place: false` of the hook allows several"
                )
                yield problem("queue_place", f"{place.where}.name", there, allowed)


def _places(partition: documents.PartitionDocument) -> Iterator[tuple[str, _Place]]:
    for path, queue in documents.walk(partition.root):
        above, _, name = path.rpartition(".")
        parent = above.rpartition(".")[2]
        yield name, _Place(parent=parent, path=path, partition=partition.name, where=queue.where)


def partition(checked: documents.PartitionDocument) -> Iterator[QueueProblem]:
    """The rules that exist, lists that mean one thing only, and templates where children can come to be."""
    for rule in checked.rules:
        for part in rule.chain():
            yield from _rule(part)
    for path, queue in documents.walk(checked.root):
        yield from _acls(path, queue)
        if queue.leaf and queue.template is not None:
            where, there = queue.template.where, "stands on a leaf"
            allowed = "a template is for children, and `parent: true` allows some"
            yield problem("template_on_leaf", where, there, allowed)


def _rule(rule: documents.PlacementRule) -> Iterator[QueueProblem]:
    if rule.kind not in RULES:
        there, allowed = f"is {rule.name!r}", f"use one of {', '.join(RULES)}"
        yield problem("rule_unknown", f"{rule.where}.name", there, allowed)
    elif rule.kind in _WITH_VALUE and not rule.value:
        allowed = "it is the queue" if rule.kind == "fixed" else "it is the name of the tag"
        yield problem("rule_value", f"{rule.where}.value", "is missing", allowed)


def _acls(path: str, queue: QueueDocument) -> Iterator[QueueProblem]:
    for field, text in (("submitacl", queue.submit_acl), ("adminacl", queue.admin_acl)):
        for word, wrong in acl.unreadable(text):
            there = f"of queue {path} has the {word} {wrong!r}"
            allowed = (
                f"a {word} is a name like {acl.NAMES[word].pattern}, with a comma to the next one; '*' stands alone, "
                "and one space before the groups"
            )
            yield problem("acl_name", f"{queue.where}.{field}", there, allowed)
        name = text.strip()
        if " " not in name and text.startswith("  ") and name:
            allowed = f"with so many spaces {name!r} may be users or groups: '{name}' or ' {name}'"
            yield problem("acl_spaces", f"{queue.where}.{field}", f"is {text!r}", allowed)
