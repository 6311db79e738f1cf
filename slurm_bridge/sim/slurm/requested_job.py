"""From the fields of a request to the requested job; submit and update have the same rules."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from slurm_bridge.sim.slurm import fields, state, tres

Values = Mapping[str, Any]
Changes = dict[str, Any]

#: Fields that are kept as written.
TEXTS = (
    "account admin_comment comment current_working_directory dependency extra licenses mcs_label memory_per_tres"
    " prefer qos tres_per_job tres_per_node tres_per_task wckey"
).split()

#: Field -> attribute of the requested job, without a conversion.
_SAME = {
    "name": "name",
    "constraints": "constraints",
    "reservation": "reservation",
    "nice": "nice",
    "hold": "hold",
    "time_limit": "minutes",
    "priority": "priority",
    "kill_on_node_fail": "kill_on_node_fail",
    "begin_time": "begin",
}


def apply(ask: state.RequestedJob, values: Values) -> state.RequestedJob:
    """The request with these fields changed; raises ValueError (tres.BadAmount) for an invalid value."""
    changes: Changes = {attribute: values[name] for name, attribute in _SAME.items() if name in values}
    for name, change in _CHANGES.items():
        if name in values:
            changes.update(change(values[name]))
    texts = {name: values[name] for name in TEXTS if name in values}
    for name in ("required_nodes", "excluded_nodes"):
        if values.get(name):
            texts[name] = ",".join(entry for entry in values[name] if entry)
    return dataclasses.replace(ask, **changes, texts={**ask.texts, **texts})


def _tasks(count: int) -> Changes:
    return {"tasks": count, "tasks_given": True} if count > 0 else {}


def _tasks_per_node(count: int) -> Changes:
    return {"tasks_per_node": count if count > 0 else None}


def _positive(attribute: str) -> Callable[[int], Changes]:
    return lambda count: {attribute: count} if count > 0 else {}


def _nodes(text: str) -> Changes:
    """`4` is exactly four, `1-8` a range."""
    low, _, high = text.partition("-")
    return {"minimum_nodes": int(low), "maximum_nodes": int(high or low)}


def _maximum_nodes(count: int) -> Changes:
    return {"maximum_nodes": count if count > 0 else None}


def _memory(per: state.MemoryPer) -> Callable[[int | None], Changes]:
    def change(mib: int | None) -> Changes:
        return {"memory_mib": max(0, mib or 0), "memory_per": per, "memory_given": (mib or 0) > 0}

    return change


def _memory_per_tres(text: str) -> Changes:
    if not text:
        return {}
    return {"memory_mib": tres.parse_gres(text)[0].count, "memory_per": state.MemoryPer.GPU, "memory_given": True}


def _gres(attribute: str) -> Callable[[str], Changes]:
    return lambda text: {attribute: tres.parse_gres(text)}


def _hosts(attribute: str) -> Callable[[list[str]], Changes]:
    """`[]` changes nothing; `[""]` clears."""

    def change(entries: list[str]) -> Changes:
        return {attribute: fields.hosts([entry for entry in entries if entry])} if entries else {}

    return change


def _partition(text: str) -> Changes:
    return {"partitions": tuple(text.split(",")) if text else ()}


def _shared(words: list[str]) -> Changes:
    return {"exclusive": "none" in words}


def _licenses(text: str) -> Changes:
    return {"licenses": tres.parse_licenses(text)}


def _flags(words: list[str]) -> Changes:
    return {"prefer_few": "PREFER_MINIMUM_NODE_COUNT" in words}


#: The order matters if two fields have the same effect: minimum_nodes and maximum_nodes override nodes.
_CHANGES: Mapping[str, Callable[[Any], Changes]] = {
    "tasks": _tasks,
    "tasks_per_node": _tasks_per_node,
    "cpus_per_task": _positive("cpus_per_task"),
    "minimum_cpus": _positive("minimum_cpus"),
    "nodes": _nodes,
    "minimum_nodes": _positive("minimum_nodes"),
    "maximum_nodes": _maximum_nodes,
    "memory_per_node": _memory(state.MemoryPer.NODE),
    "memory_per_cpu": _memory(state.MemoryPer.CPU),
    "memory_per_tres": _memory_per_tres,
    "tres_per_node": _gres("gres_per_node"),
    "tres_per_task": _gres("gres_per_task"),
    "tres_per_job": _gres("gres_per_job"),
    "required_nodes": _hosts("required"),
    "excluded_nodes": _hosts("excluded"),
    "partition": _partition,
    "shared": _shared,
    "licenses": _licenses,
    "flags": _flags,
}
