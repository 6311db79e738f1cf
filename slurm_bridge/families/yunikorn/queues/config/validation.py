"""Whether a configuration can be used: everything that is wrong with it, in a fixed order."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping

from slurm_bridge.families.yunikorn.queues.config import documents, parser
from slurm_bridge.families.yunikorn.queues.config.checks import beyond, limits, resources, rules, structure
from slurm_bridge.families.yunikorn.queues.config.problems import ConfigurationRefused, QueueProblem

#: No order of nodes beside those that are built in.
NO_SORTS: Mapping[str, documents.NodeOrder] = {}

Check = Callable[[documents.PartitionDocument], Iterable[QueueProblem]]

#: From what others rest on to what rests on it: a name that is twice there explains a sum that is too large.
BASE: tuple[Check, ...] = (structure.partition, resources.partition, limits.partition, rules.partition)

#: What a partition may have and still be read as it was meant: none of these hides a value from the checks.
_HARMLESS = frozenset({"unknown_field", "property_value"})


def load(
    mapping: object, *, one_place: bool = True, node_sorts: Mapping[str, documents.NodeOrder] = NO_SORTS
) -> documents.Document:
    """The configuration of a plain mapping; Refused carries all that is wrong with it."""
    parsed = registered(parser.parse(mapping), node_sorts)
    found = tuple(problems(parsed, one_place=one_place))
    if found:
        raise ConfigurationRefused(found)
    return parsed.document


def registered(parsed: parser.Parsed, node_sorts: Mapping[str, documents.NodeOrder]) -> parser.Parsed:
    """The same where partitions may name these orders of nodes, too."""
    if not node_sorts:
        return parsed
    partitions = (
        dataclasses.replace(one, node_sort=dataclasses.replace(one.node_sort, registered=node_sorts))
        for one in parsed.document.partitions
    )
    document = dataclasses.replace(parsed.document, partitions=tuple(partitions))
    return dataclasses.replace(parsed, document=document)


def problems(parsed: parser.Parsed, *, ours: bool = True, one_place: bool = True) -> Iterator[QueueProblem]:
    """What could not be read, then what YuniKorn's rules forbid, then what `ours` do, `one_place` among them.

    A partition of which something could not be read is not checked any further: what is missing would be missed.
    """
    yield from parsed.problems
    yield from structure.partition_names(parsed.document)
    unread = [one.field for one in parsed.problems if one.code not in _HARMLESS]
    readable = [
        one for one in parsed.document.partitions if not any(field.startswith(f"{one.where}.") for field in unread)
    ]
    for partition in readable:
        for check in BASE:
            yield from check(partition)
    if ours:
        for partition in readable:
            yield from beyond.partition(partition)
        if one_place:
            yield from beyond.places(documents.Document(partitions=tuple(readable)))
