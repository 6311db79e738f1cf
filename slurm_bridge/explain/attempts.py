"""The sets of nodes that Slurm is offered one after the other, if hooks prefer some nodes."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from slurm_bridge.hooks.base import Nodes
from slurm_bridge.hooks.chain import Plan
from slurm_bridge.model import hostlist

#: A longer list of nodes is replaced by their number.
MOST_TEXT = 60


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeAttempt:
    """One attempt. `nodes` None: every eligible node; `seconds` None: until the end; `now`: the current attempt."""

    number: int
    name: str
    nodes: Nodes | None
    seconds: float | None
    now: bool


def tries(plan: Plan) -> tuple[NodeAttempt, ...]:
    """The attempts that take time; empty if there is only one."""
    every = plan.course.attempts
    found = tuple(
        NodeAttempt(
            number=number + 1,
            name=attempt.name or "best nodes",
            nodes=attempt.nodes,
            seconds=attempt.window_seconds,
            now=number == plan.state.attempt,
        )
        for number, attempt in enumerate(every)
        if attempt.window_seconds != 0
    )
    return found if len(found) > 1 else ()


def lines(found: Sequence[NodeAttempt]) -> Iterator[str]:
    """The text."""
    width = max((len(one.name) for one in found), default=0)
    for one in found:
        nodes = "every eligible node"
        if one.nodes is not None:
            text = hostlist.compress(one.nodes)
            nodes = "1 node" if len(one.nodes) == 1 else f"{len(one.nodes)} nodes"
            nodes += f": {text}" if len(text) <= MOST_TEXT else ""
        seconds = f", for {one.seconds:g} s after Slurm has considered the job" if one.seconds is not None else ""
        yield f"{one.number}  {one.name:<{width}}  {nodes}{seconds}{' (now)' if one.now else ''}"


def machine(one: NodeAttempt) -> Mapping[str, Any]:
    """The JSON document."""
    return {
        "attempt": one.number,
        "name": one.name,
        "nodes": sorted(one.nodes) if one.nodes is not None else None,
        "seconds": one.seconds,
        "now": one.now,
    }
