"""The nodes that Slurm would be offered one after the other, where hooks prefer some of them."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from slurm_bridge.hooks.attempts import Attempt
from slurm_bridge.hooks.base import Nodes
from slurm_bridge.hooks.chain import Plan
from slurm_bridge.model import hostlist

#: A longer list of names helps nobody; Slurm's notation for it is as long as the names differ.
MOST_TEXT = 60


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """One attempt. `nodes` None: every eligible one; `seconds` None: it is not left; `now`: it is the one that runs."""

    number: int
    name: str
    nodes: Nodes | None
    seconds: float | None
    now: bool


def tries(plan: Plan) -> tuple[Try, ...]:
    """Those that take time; none where there is only one."""
    every = plan.course.attempts
    found = tuple(
        _try(number, attempt, now=number == plan.state.attempt)
        for number, attempt in enumerate(every)
        if attempt.window_seconds != 0
    )
    return found if len(found) > 1 else ()


def _try(number: int, attempt: Attempt, *, now: bool) -> Try:
    return Try(
        number=number + 1,
        name=attempt.name or "best nodes",
        nodes=attempt.nodes,
        seconds=attempt.window_seconds,
        now=now,
    )


def lines(found: Sequence[Try]) -> Iterator[str]:
    """For people."""
    width = max((len(one.name) for one in found), default=0)
    for one in found:
        nodes = "every eligible node" if one.nodes is None else _nodes(one.nodes)
        seconds = f", for {one.seconds:g} s once Slurm has looked" if one.seconds is not None else ""
        yield f"{one.number}  {one.name:<{width}}  {nodes}{seconds}{' (now)' if one.now else ''}"


def machine(one: Try) -> Mapping[str, Any]:
    """All of it."""
    return {
        "attempt": one.number,
        "name": one.name,
        "nodes": sorted(one.nodes) if one.nodes is not None else None,
        "seconds": one.seconds,
        "now": one.now,
    }


def _nodes(nodes: Nodes) -> str:
    text = hostlist.compress(nodes)
    count = "1 node" if len(nodes) == 1 else f"{len(nodes)} nodes"
    return f"{count}: {text}" if len(text) <= MOST_TEXT else count
