"""From a plain mapping to the records of a configuration; all that cannot be read is told at once."""

import dataclasses
from collections.abc import Iterable, Mapping

from slurm_bridge.families.yunikorn.queues import amounts
from slurm_bridge.families.yunikorn.queues.config import documents, properties
from slurm_bridge.families.yunikorn.queues.config.problems import QueueProblem
from slurm_bridge.families.yunikorn.queues.config.records import ConfigRecord

#: The name of a partition that has none.
DEFAULT = "default"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """What could be read, and what was wrong with it."""

    document: documents.Document
    problems: tuple[QueueProblem, ...]


def parse(mapping: object) -> Parsed:
    """The document as it is given, a root put above queues that have none."""
    problems: list[QueueProblem] = []
    record = ConfigRecord(mapping, "", problems)
    partitions = tuple(map(_partition, record.records("partitions")))
    record.finish()
    if not partitions and not record.is_noted("partitions"):
        record.note("partitions_missing", "partitions", "has no partitions", "there is at least one")
    warnings = _warnings(problems, partitions)
    return Parsed(
        document=documents.Document(partitions=partitions, warnings=warnings),
        problems=tuple(one for one in problems if not one.warning),
    )


def _warnings(
    noted: Iterable[QueueProblem], partitions: Iterable[documents.PartitionDocument]
) -> tuple[QueueProblem, ...]:
    """The warnings, each with the queue that it is about."""
    found = [one for one in noted if one.warning]
    paths = {queue.where: path for one in partitions if found for path, queue in documents.walk(one.root)}
    told = []
    for one in found:
        near = max((where for where in paths if one.field.startswith(f"{where}.")), key=len, default="")
        told.append(dataclasses.replace(one, there=f"of queue {paths[near]} {one.there}") if near else one)
    return tuple(told)


def _partition(record: ConfigRecord) -> documents.PartitionDocument:
    limits = tuple(map(_limit, record.records("limits")))
    queues = tuple(map(_queue, record.records("queues")))
    read = documents.PartitionDocument(
        name=record.text("name") or DEFAULT,
        root=_rooted(queues, limits, f"{record.where}.queues"),
        limits=limits,
        rules=tuple(map(_rule, record.records("placementrules"))),
        node_sort=_node_sort(record.record("nodesortpolicy")),
        preemption=_preemption(record.record("preemption")),
        where=record.where,
    )
    record.finish()
    if not queues and not record.is_noted("queues"):
        record.note("queues_missing", f"{record.where}.queues", "has no queues", "there is at least a root")
    return read


def _rooted(
    queues: tuple[documents.QueueDocument, ...], limits: tuple[documents.Limit, ...], where: str
) -> documents.QueueDocument:
    """The one queue that is called root, or a root above all; it has the limits of the partition if it has none."""
    if len(queues) == 1 and queues[0].name.lower() == documents.ROOT:
        root = dataclasses.replace(queues[0], name=documents.ROOT, parent=True)
    else:
        root = documents.QueueDocument(name=documents.ROOT, parent=True, queues=queues, where=where)
    return root if root.limits else dataclasses.replace(root, limits=limits)


def _queue(record: ConfigRecord) -> documents.QueueDocument:
    guaranteed, maximum = _resources(record.record("resources"))
    read = documents.QueueDocument(
        name=record.text("name"),
        parent=record.flag("parent"),
        submit_acl=record.text("submitacl"),
        admin_acl=record.text("adminacl"),
        guaranteed=guaranteed,
        max=maximum,
        max_applications=record.count("maxapplications"),
        properties=_properties(record.record("properties")),
        template=_template(record.record("childtemplate")),
        limits=tuple(map(_limit, record.records("limits"))),
        queues=tuple(map(_queue, record.records("queues"))),
        where=record.where,
    )
    record.finish()
    return read


def _resources(record: ConfigRecord | None) -> tuple[Mapping[str, int] | None, Mapping[str, int] | None]:
    if record is None:
        return None, None
    guaranteed, maximum = record.amount("guaranteed"), record.amount("max")
    if maximum and amounts.is_empty(maximum):
        there = "has nothing but zeros, and is ignored, as YuniKorn does"
        allowed = "it is a maximum with a type above 0 beside them, for example vcore"
        record.note("max_zero", f"{record.where}.max", there, allowed, warning=True)
        maximum = None
    record.finish()
    return guaranteed, maximum


def _template(record: ConfigRecord | None) -> documents.Template | None:
    if record is None:
        return None
    guaranteed, maximum = _resources(record.record("resources"))
    read = documents.Template(
        guaranteed=guaranteed,
        max=maximum,
        max_applications=record.count("maxapplications"),
        properties=_properties(record.record("properties")),
        where=record.where,
    )
    record.finish()
    return read


def _properties(record: ConfigRecord | None) -> properties.Stated:
    """The properties that a queue states; values may be written as numbers, as in YuniKorn's own files."""
    said = {}
    for name, where, value in record.items() if record else ():
        known = properties.PROPERTIES.get(name)
        if record and known is None:
            allowed = f"there are {', '.join(properties.PROPERTIES)}"
            record.note("property_unknown", where, "is no property, and is ignored", allowed, warning=True)
        elif record and known:
            try:
                said[known.field] = known.read(value if isinstance(value, str) else repr(value))
            except ValueError:
                record.note("property_value", where, f"is {value!r}", f"use {known.allowed}")
    return properties.Stated(**said)


def _limit(record: ConfigRecord) -> documents.Limit:
    read = documents.Limit(
        note=record.text("limit"),
        users=record.texts("users"),
        groups=record.texts("groups"),
        max_resources=record.amount("maxresources", signed=True),
        max_applications=record.count("maxapplications"),
        where=record.where,
    )
    record.finish()
    return read


def _rule(record: ConfigRecord) -> documents.PlacementRule:
    parent = record.record("parent")
    read = documents.PlacementRule(
        name=record.text("name"),
        value=record.text("value"),
        create=record.flag("create"),
        parent=_rule(parent) if parent else None,
        filter=_filter(record.record("filter")),
        where=record.where,
    )
    record.finish()
    return read


def _filter(record: ConfigRecord | None) -> documents.UserFilter:
    if record is None:
        return documents.UserFilter()
    read = documents.UserFilter(
        kind=record.text("type"), users=record.texts("users"), groups=record.texts("groups"), where=record.where
    )
    record.finish()
    return read


def _node_sort(record: ConfigRecord | None) -> documents.NodeSort:
    if record is None:
        return documents.NodeSort()
    listed = record.record("resourceweights")
    weights = {kind: listed.number(where, value) for kind, where, value in listed.items()} if listed else {}
    read = documents.NodeSort(policy=record.text("type"), weights=weights, where=record.where)
    record.finish()
    return read


def _preemption(record: ConfigRecord | None) -> documents.PreemptionDocument:
    if record is None:
        return documents.PreemptionDocument()
    read = documents.PreemptionDocument(
        enabled=record.flag("enabled", default=True), quota=record.flag("quotapreemptionenabled")
    )
    record.finish()
    return read
