"""Placement rules: their names and filters, and whether the queues of fixed rules can be what they have to be."""

import itertools
import re
from collections.abc import Iterator

from slurm_bridge.families.yunikorn.queues.config import documents, names
from slurm_bridge.families.yunikorn.queues.config.documents import ROOT, PlacementRule, QueueDocument
from slurm_bridge.families.yunikorn.queues.config.problems import QueueProblem, problem

_FILTERS = ("", "allow", "deny")


def partition(checked: documents.PartitionDocument) -> Iterator[QueueProblem]:
    """Every rule of the partition with its parent rules."""
    for rule in checked.rules:
        for part in rule.chain():
            yield from _part(part)
        yield from _fixed(rule, checked.root)


def is_qualified(value: str) -> bool:
    """The value is a path from the root, and no parent rule is asked for what is above it."""
    return value == ROOT or value.startswith(f"{ROOT}.")


# -- one rule by itself ----------------------------------------------------------------------------------------------


def _part(rule: PlacementRule) -> Iterator[QueueProblem]:
    if not names.RULE.fullmatch(rule.name):
        allowed = "use letters, digits and _, and no digit first"
        yield problem("rule_name", f"{rule.where}.name", f"is {rule.name!r}", allowed)
    chosen = rule.filter
    if chosen.kind.lower() not in _FILTERS:
        yield problem("rule_filter_type", f"{chosen.where}.type", f"is {chosen.kind!r}", "use allow or deny")
    yield from _single(chosen.users, f"{chosen.where}.users", names.USER)
    yield from _single(chosen.groups, f"{chosen.where}.groups", names.GROUP)


def _single(entries: tuple[str, ...], where: str, form: re.Pattern[str]) -> Iterator[QueueProblem]:
    """A list of one entry may be a regular expression; names of longer lists that are none match no user."""
    if len(entries) == 1 and not form.fullmatch(entries[0]) and names.expression(entries[0]) is None:
        allowed = f"use names like {form.pattern} or a regular expression"
        yield problem("rule_filter_list", f"{where}[0]", f"is {entries[0]!r}", allowed)


# -- fixed rules -----------------------------------------------------------------------------------------------------


def _fixed(rule: PlacementRule, root: QueueDocument) -> Iterator[QueueProblem]:
    chain = rule.chain()
    fixed = list(itertools.takewhile(lambda part: part.kind == "fixed", chain))
    for part in fixed[1:]:
        if is_qualified(part.value.lower()):
            there = f"is {part.value!r} below {fixed[0].where}"
            allowed = "only the outermost parent rule may begin with root"
            yield problem("rule_qualified_fixed_under_parent", f"{part.where}.value", there, allowed)
            return
    if fixed:
        path = ".".join(part.value.lower() for part in fixed)
        full = path if is_qualified(path) else f"{ROOT}.{path}"
        yield from _walk(rule, root, full, dynamic=len(fixed) < len(chain))


def _walk(rule: PlacementRule, root: QueueDocument, path: str, *, dynamic: bool) -> Iterator[QueueProblem]:
    """Follow the static path through the configured queues."""
    here, passed = root, ROOT
    for name in path.split(".")[1:]:
        child = here.child(name)
        if here.leaf:
            yield problem(
                "rule_last_queue_is_leaf", rule.where, f"goes to {path}", f"{passed} is a leaf, nothing is below it"
            )
            return
        if child is None:
            if not rule.create:
                allowed = f"{passed} has no queue {name!r}, which only a rule with `create: true` makes"
                yield problem("rule_queue_missing", rule.where, f"goes to {path}", allowed)
            return
        here, passed = child, f"{passed}.{name}"
    yield from _end(rule, here, path, dynamic=dynamic)


def _end(rule: PlacementRule, queue: QueueDocument, path: str, *, dynamic: bool) -> Iterator[QueueProblem]:
    if dynamic and queue.leaf:
        allowed = "it is a leaf, and what the next rule finds is below it"
        yield problem("rule_queue_not_parent", rule.where, f"begins with {path}", allowed)
    elif not dynamic and not queue.leaf:
        allowed = "it is a parent, and applications go into leaves"
        yield problem("rule_queue_not_leaf", rule.where, f"goes to {path}", allowed)
