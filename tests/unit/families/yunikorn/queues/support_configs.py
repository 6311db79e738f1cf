"""Configurations of queues as plain mappings, for several tests."""

from typing import Any

from slurm_bridge.families.yunikorn.queues import tree
from slurm_bridge.families.yunikorn.queues.config import documents, parser, tree_builder, validation
from slurm_bridge.families.yunikorn.queues.config.problems import QueueProblem
from slurm_bridge.families.yunikorn.queues.config.tree_builder import Plan

Mapping = dict[str, Any]


def queue(name: str, *below: Mapping, **fields: Any) -> Mapping:
    """One queue with those below it."""
    return {"name": name, **fields, **({"queues": list(below)} if below else {})}


def partition(*queues: Mapping, name: str = "default", **fields: Any) -> Mapping:
    """A partition with these queues below its root."""
    return {"name": name, "queues": [queue("root", *queues)], **fields}


def config(*partitions: Mapping) -> Mapping:
    """A whole configuration."""
    return {"partitions": list(partitions)}


def problems(mapping: object, **rules: bool) -> list[QueueProblem]:
    """All that is wrong with it, by these sets of rules."""
    return list(validation.problems(parser.parse(mapping), **rules))


def codes(mapping: object, **rules: bool) -> list[str]:
    """Only the codes."""
    return [problem.code for problem in problems(mapping, **rules)]


def loaded(*queues: Mapping, **fields: Any) -> documents.PartitionDocument:
    """The one partition of a configuration without a problem."""
    return validation.load(config(partition(*queues, **fields))).partitions[0]


def planned(*queues: Mapping, **fields: Any) -> Plan:
    """What holds for its queues."""
    return tree_builder.plan(loaded(*queues, **fields))


def paths(root: tree.Queue) -> list[str]:
    """Every queue of a tree."""
    return [one.path for one in tree.downward(root)]
