"""What layers make of each other's results: node sets within node sets, fields over fields."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from slurm_bridge.hooks.base import Ask, NodeSet, Subsets
from slurm_bridge.translate.translator import Value


def layer(outer: NodeSet, answer: Subsets) -> tuple[NodeSet, ...]:
    """The sets within a set: P1 becomes P1R1, P1R2. Where a hook is not relevant the set stays as it is."""
    if not answer.relevant:
        return (outer,)
    return tuple(_within(outer, inner) for inner in answer.sets)


def _within(outer: NodeSet, inner: NodeSet) -> NodeSet:
    name = "/".join(part for part in (outer.name, inner.name) if part)
    return NodeSet(nodes=outer.nodes & inner.nodes, name=name, required=outer.required or inner.required)


def names(sets: Iterable[NodeSet]) -> str:
    """`[Node1, Node2], [Node3]`."""
    return ", ".join(f"[{', '.join(sorted(one.nodes))}]" for one in sets)


def merge(ask: Ask, given: Mapping[str, Any], source: str) -> Ask:
    """The request with these fields, each traceable to where it came from."""
    kept = tuple(value for value in ask.values if value.field not in given)
    made = tuple(Value(field=field, value=str(value), source=source) for field, value in given.items())
    return dataclasses.replace(ask, request=dataclasses.replace(ask.request, **given), values=kept + made)
