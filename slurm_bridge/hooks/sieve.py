"""Which nodes are left for a workload: where its pods differ, for each kind of them.

Pods of one shape are alike in all that hooks look at on a node, so the hooks are asked once for a shape, however many
pods it has; a workload of one pod, or of equal ones, is asked about as a whole.
"""

import dataclasses
import functools
import operator
from collections.abc import Mapping, Sequence

from slurm_bridge.hooks import explain
from slurm_bridge.hooks.base import Ask, Denied, Nodes
from slurm_bridge.hooks.session import Session
from slurm_bridge.model.verdict import Wait
from slurm_bridge.translate.shapes import Shape

#: A message that names more pods, or more kinds of them, helps nobody.
MOST_NAMES = 3

#: Nodes to keep a workload away from, and why.
Avoid = Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sieved:
    """The nodes for pods of one shape, and who denied the others. `members` names the pods where others differ."""

    nodes: Nodes
    denied: tuple[Denied, ...]
    members: str = ""


def sift(session: Session, ask: Ask, avoid: Avoid) -> tuple[Sieved, ...]:
    """Sampling and filters, in the order of the shapes; a hook's obstacle ends it for all of them."""
    away = Denied(nodes={name: (why,) for name, why in avoid.items()}) if avoid else None
    if len(ask.shapes) <= 1:
        return (_sift(session, ask, away),)
    total = len(ask.workload.pods)
    found = []
    for shape in ask.shapes:
        session.members = members(shape, total)
        found.append(_sift(session, of(ask, shape), away))
    session.members = ""
    return tuple(found)


def union(found: Sequence[Sieved]) -> Nodes:
    """The nodes that some of the pods can use."""
    return functools.reduce(operator.or_, (one.nodes for one in found))


def of(ask: Ask, shape: Shape) -> Ask:
    """The question about the pods of one shape only; the request stays that of all."""
    workload = dataclasses.replace(ask.workload, pods=shape.pods)
    return dataclasses.replace(ask, workload=workload, shapes=(shape,))


def members(shape: Shape, total: int) -> str:
    """`2 of 8 pods (leader-0, leader-1)`."""
    names = [pod.metadata.name for pod in shape.pods[:MOST_NAMES]]
    more = ", …" if len(shape.pods) > MOST_NAMES else ""
    return f"{len(shape.pods)} of {total} pods ({', '.join(names)}{more})"


def nowhere(session: Session, found: Sequence[Sieved]) -> Wait | None:
    """Why there is no node for some of the pods; None when there is one for all."""
    empty = [one for one in found if not one.nodes]
    if not empty:
        return None
    said = [_said(session, one) for one in empty[:MOST_NAMES]]
    more = [f"{len(empty) - MOST_NAMES} more kinds of pods have none either."] if len(empty) > MOST_NAMES else []
    return Wait(reason=explain.UNSCHEDULABLE, message=" ".join([*said, *more]))


def _said(session: Session, one: Sieved) -> str:
    told = explain.unavailable(session.snapshot.names, one.denied)
    return f"no node for {one.members}: {told}" if one.members else told


def _sift(session: Session, ask: Ask, away: Denied | None) -> Sieved:
    before = len(session.denied)
    nodes = session.sample_nodes(ask, session.snapshot.names)
    if away is not None:
        nodes = session.deny("avoided", away, nodes)
    nodes = session.filter_nodes(ask, nodes)
    return Sieved(nodes=nodes, denied=tuple(session.denied[before:]), members=session.members)
