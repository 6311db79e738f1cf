"""yunikorn: which configurations are refused, and where placement rules put an application."""

from collections.abc import Mapping
from typing import Any

from slurm_bridge.families.yunikorn.queues import acl, placement, tree
from slurm_bridge.families.yunikorn.queues.config import documents, parser, validation
from slurm_bridge.families.yunikorn.queues.settings import QueueSettings
from tests.conformance.fields import Fields, Malformed

Result = Mapping[str, Any]

# -- config_validation -----------------------------------------------------------------------------------------------


def _validation(given: Fields, expect: Fields) -> None:
    parsed = parser.parse(given.raw("config"))
    found = list(validation.problems(parsed, ours=False))
    for problem in found:
        if problem.code == "unknown_field":  # of the case, not of a configuration: no rule is about them
            raise Malformed(f"{given.where}.config: {problem}")
    expect.compare({"valid": not found, "error": found[0].code if found else None})


# -- placement -------------------------------------------------------------------------------------------------------


def _placement(given: Fields, expect: Fields) -> None:
    root = _queue(given.fields("tree"), None)
    rules = tuple(map(_rule, given.records("rules", ())))
    expect.compare(_placed(placement.place(root, rules, _candidate(given.fields("app")))))


def _placed(result: placement.Placed | placement.Rejected) -> Result:
    if isinstance(result, placement.Rejected):
        return {"rejected": True, "error": result.error}
    return {"queue": result.path}


def _queue(record: Fields, parent: tree.Queue | None) -> tree.Queue:
    children = record.records("children", ())
    settings = QueueSettings(
        submit_acl=acl.parse(record.text("submitacl", "")), admin_acl=acl.parse(record.text("adminacl", ""))
    )
    leaf = not (record.flag("parent", default=False) or children)
    queue = tree.Queue(record.text("name"), parent, leaf=leaf, settings=settings)
    if record.flag("draining", default=False):
        queue.turn(tree.State.DRAINING)
    for child in children:
        _queue(child, queue)
    return queue


def _rule(record: Fields) -> documents.PlacementRule:
    parent, chosen = record.fields("parent", None), record.fields("filter", None)
    return documents.PlacementRule(
        name=record.text("name"),
        value=record.text("value", ""),
        create=record.flag("create", default=False),
        parent=_rule(parent) if parent else None,
        filter=_filter(chosen) if chosen else documents.UserFilter(),
    )


def _filter(record: Fields) -> documents.UserFilter:
    return documents.UserFilter(
        kind=record.text("type", ""), users=record.texts("users", ()), groups=record.texts("groups", ())
    )


def _candidate(record: Fields) -> placement.ApplicationCandidate:
    return placement.ApplicationCandidate(
        user=record.text("user", ""),
        groups=record.texts("groups", ()),
        queue=record.text("queue", ""),
        tags=record.mapping("tags", {}),
        forced=record.flag("forced", default=False),
    )


FILES = {"config_validation": _validation, "placement": _placement}
