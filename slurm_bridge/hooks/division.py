"""What layers make of each other's results: node sets within node sets, fields over fields."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from slurm_bridge.hooks.base import Ask, Nodes, NodeSet, Subsets
from slurm_bridge.translate.translator import Value


def layer(outer: NodeSet, answer: Subsets) -> tuple[NodeSet, ...]:
    """The sets within a set: P1 becomes P1R1, P1R2. Where a hook is not relevant the set stays as it is.

    Who may not leave a required set, and only prefers what is within it, may have all of it after that.
    """
    if not answer.relevant:
        return (outer,)
    found = tuple(_within(outer, inner) for inner in answer.sets)
    widens = outer.required and bool(found) and not any(inner.required for inner in answer.sets)
    return (*found, outer) if widens and all(one.nodes != outer.nodes for one in found) else found


def _within(outer: NodeSet, inner: NodeSet) -> NodeSet:
    nodes = _both(outer.nodes, inner.nodes)
    if not (outer.name or outer.required or outer.parts or inner.parts) and len(nodes) == len(inner.nodes):
        # All of it is within a set of which nobody has said anything.
        return inner
    name = "/".join(part for part in (outer.name, inner.name) if part)
    return NodeSet(
        nodes=nodes,
        name=name,
        required=outer.required or inner.required,
        parts=_parts(outer, inner),
    )


def _both(outer: Nodes, inner: Nodes) -> Nodes:
    """Identity first: the last set is often all there is, which may be thousands."""
    return outer if inner is outer else outer & inner


def _parts(outer: NodeSet, inner: NodeSet) -> tuple[Nodes, ...]:
    """For each shape what both leave it; a set without parts leaves each shape all of its nodes."""
    if not (outer.parts and inner.parts):
        part, whole = (outer.parts, inner.nodes) if outer.parts else (inner.parts, outer.nodes)
        return tuple(nodes & whole for nodes in part)
    return tuple(one & other for one, other in zip(outer.parts, inner.parts, strict=True))


def covered(outer: NodeSet, inner: Iterable[NodeSet]) -> int:
    """How many nodes of a set are in some set within it."""
    sets = [one.nodes for one in inner]
    whole = any(nodes is outer.nodes for nodes in sets)
    return len(outer.nodes) if whole else len(frozenset().union(*sets))


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """What a division has come to. It is a text only when somebody reads it: there may be many nodes."""

    name: str
    sets: Sequence[NodeSet]

    def __str__(self) -> str:
        return f"Result of {self.name} logic is {names(self.sets)}"


def names(sets: Iterable[NodeSet]) -> str:
    """`[Node1, Node2], [Node3]`."""
    return ", ".join(f"[{', '.join(sorted(one.nodes))}]" for one in sets)


def merge(ask: Ask, given: Mapping[str, Any], source: str) -> Ask:
    """The request with these fields, each traceable to where it came from."""
    kept = tuple(value for value in ask.values if value.field not in given)
    made = tuple(Value(field=field, value=str(value), source=source) for field, value in given.items())
    return dataclasses.replace(ask, request=dataclasses.replace(ask.request, **given), values=kept + made)
