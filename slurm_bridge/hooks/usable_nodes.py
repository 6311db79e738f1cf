"""Which nodes a request can have: one set for a plain job, one for each part of a heterogeneous one.

    plain          any pod may come on any node of the job: what is left for all shapes, and in the job's partitions
    heterogeneous  each part has the nodes of its own shape; Slurm never puts two parts on one node

Slurm would take a request that these nodes can never serve, and leave it waiting without a word.
"""

import dataclasses
import functools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence

from slurm_bridge.cluster import node_shares
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.hooks import explain
from slurm_bridge.hooks.base import Ask, Denied, Nodes, NodeSet
from slurm_bridge.hooks.emitter import Emitter, partition_words
from slurm_bridge.hooks.session import Session
from slurm_bridge.model.job import JobRequest
from slurm_bridge.model.slurmnode import SlurmNode
from slurm_bridge.model.verdict import Wait
from slurm_bridge.runtime import frozen_records
from slurm_bridge.translate import layout, shapes
from slurm_bridge.translate.layout import LayoutTerms
from slurm_bridge.translate.shapes import Form, Shape
from slurm_bridge.translate.translator import Translated

#: A message that names more pods, or more kinds of them, is too long to help.
MOST_NAMES = 3

#: Nodes to keep a workload away from, and why.
Avoid = Mapping[str, str]


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FilterResult:
    """The nodes for pods of one shape, and the hooks that denied others. `members` names the pods if shapes differ."""

    nodes: Nodes
    denied: tuple[Denied, ...]
    members: str = ""


def filter_nodes(session: Session, ask: Ask, avoid: Avoid) -> tuple[FilterResult, ...]:
    """Sampling and filters, in the order of the shapes; a hook's obstacle ends it for all of them."""
    # They are avoided until a pod on them ends, among others.
    away = Denied(nodes={name: (why,) for name, why in avoid.items()}, moving=True) if avoid else None
    if len(ask.shapes) <= 1:
        return (_sift(session, ask, away),)
    total = len(ask.workload.pods)
    found = []
    for shape in ask.shapes:
        session.members = members(shape, total)
        found.append(_sift(session, of(ask, shape), away))
    session.members = ""
    return tuple(found)


def union(found: Sequence[FilterResult]) -> Nodes:
    """The nodes that some of the pods can use."""
    return functools.reduce(operator.or_, (one.nodes for one in found))


def of(ask: Ask, shape: Shape) -> Ask:
    """The question about the pods of one shape only; the request stays that of all."""
    workload = dataclasses.replace(ask.workload, pods=shape.pods)
    return dataclasses.replace(ask, workload=workload, shapes=(shape,), members=ask.every_pod)


def members(shape: Shape, total: int) -> str:
    """`2 of 8 pods (leader-0, leader-1)`."""
    names = [pod.metadata.name for pod in shape.pods[:MOST_NAMES]]
    more = ", …" if len(shape.pods) > MOST_NAMES else ""
    return f"{len(shape.pods)} of {total} pods ({', '.join(names)}{more})"


def nowhere(session: Session, found: Sequence[FilterResult]) -> Wait | None:
    """Why there is no node for some of the pods; None when there is one for all."""
    empty = [one for one in found if not one.nodes]
    if not empty:
        return None
    said = []
    for one in empty[:MOST_NAMES]:
        told = explain.unavailable(session.snapshot.names, one.denied)
        said.append(f"no node for {one.members}: {told}" if one.members else told)
    more = [f"{len(empty) - MOST_NAMES} more kinds of pods have none either."] if len(empty) > MOST_NAMES else []
    return Wait(reason=explain.UNSCHEDULABLE, message=" ".join([*said, *more]))


def _sift(session: Session, ask: Ask, away: Denied | None) -> FilterResult:
    before = len(session.denied)
    nodes = session.sample_nodes(ask, session.snapshot.names)
    if away is not None:
        nodes = session.deny("avoided", away, nodes)
    nodes = session.filter_nodes(ask, nodes)
    return FilterResult(nodes=nodes, denied=tuple(session.denied[before:]), members=session.members)


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class UsableNodes:
    """The nodes for each part of a request, and all of them. `least` is how many each part takes at least.

    `count` is how many the whole takes, as far as it says. `partial`: other nodes were not looked at. `fit`: whether
    components fit on nodes of their own, of those that each may have, if these were empty.
    """

    parts: tuple[Nodes, ...]
    least: tuple[int, ...]
    every: Nodes
    count: int
    partial: bool = False
    fit: Callable[[Sequence[Nodes]], bool] = lambda _parts: True

    @property
    def changeable(self) -> bool:
        """Of several components Slurm takes no update."""
        return len(self.parts) == 1

    def suits(self, nodes: Nodes) -> bool:
        """Whether the job could start on these nodes alone."""
        if len(self.parts) == 1:
            return len(nodes) >= self.least[0]
        return self.holds([part & nodes for part in self.parts])

    def holds(self, parts: Sequence[Nodes]) -> bool:
        """Whether each component finds its nodes among these."""
        return apart(parts, self.least) and self.fit(parts)


def find_usable_nodes(
    session: Session,
    request: JobRequest,
    found: Sequence[FilterResult],
    emitter: Emitter,
    told: str = "",
    fit: Callable[[Sequence[Nodes]], bool] = lambda _parts: True,
) -> UsableNodes | Wait:
    """The nodes for this request, or why they do not suffice. `told` is why the request is as it is.

    `fit`: whether components fit on nodes of their own, of those that each may have.
    """
    requests = (request, *request.components)
    kinds = found if request.components else (_together(found),)
    if not all(one.nodes for one in kinds):
        return _no_common(session, found, told)
    inside = [_inside(session, *pair, emitter) for pair in zip(requests, kinds, strict=True)]
    if obstacle := nowhere(session, inside):
        return obstacle
    parts = tuple([one.nodes for one in inside])
    least = tuple([one.minimum_nodes or 1 for one in requests])
    count = sum([one.minimum_nodes or one.maximum_nodes or 1 for one in requests])
    every = functools.reduce(operator.or_, parts)
    reached = UsableNodes(parts=parts, least=least, every=every, count=count, partial=session.partial, fit=fit)
    if not apart(parts, least):
        return _too_few(session, inside, least)
    return reached if len(parts) == 1 or fit(parts) else _too_small(inside)


def fit_apart(snapshot: ClusterSnapshot, settled: Translated, parts: Sequence[Nodes]) -> bool:
    """Whether the components fit on nodes of their own, if these were empty: Slurm keeps a job that never fits.

    What cannot be found out in bounded time counts as fitting.
    """
    requests = (settled.request, *settled.request.components)
    if len(requests) > node_shares.MOST_COMPONENTS:
        return True
    terms = LayoutTerms(one_per_node=settled.one_per_node, node_memory_mib=settled.node_memory_mib)
    every = sorted(functools.reduce(operator.or_, parts))

    def takes(name: str) -> list[int]:
        node = snapshot.nodes[name].slurm
        if node is None:
            return [0] * len(parts)
        pairs = zip(parts, settled.shapes, requests, strict=True)
        return [_tasks(shape, request, node, terms) if name in part else 0 for part, shape, request in pairs]

    counts = tuple(one.tasks for one in requests)
    try:
        return node_shares.shared(counts, ((name, takes(name)) for name in every), len(every)) is not None
    except node_shares.UnclearShares:
        return True


def _tasks(shape: Shape, request: JobRequest, node: SlurmNode, terms: LayoutTerms) -> int:
    """How many tasks of a component an empty node takes; of a fixed number of nodes each takes one."""
    if request.fixed:
        return min(1, layout.room(shapes.times(shape.needs, -(-len(shape.pods) // request.tasks)), node, terms))
    return min(request.tasks, layout.room_of_tasks(shape.needs, node))


def large_enough(
    snapshot: ClusterSnapshot, settled: Translated, found: tuple[FilterResult, ...]
) -> tuple[FilterResult, ...]:
    """Where all pods are asked for on one node together: without the nodes on which they never fit."""
    if settled.form is not Form.SUM:
        return found
    needs, terms = shapes.total(settled.shapes), LayoutTerms(node_memory_mib=settled.node_memory_mib)
    known, columns = snapshot.by_slurm, snapshot.columns
    large = columns.mask(
        known[name] for name, node in snapshot.slurm_nodes.items() if name in known and layout.room(needs, node, terms)
    )
    # By way of the columns, so that equal sets are one set: hooks are asked about them.
    kept = [columns.nodes(columns.mask(one.nodes) & large) for one in found]
    reason = "node(s) are too small for all pods together"
    return tuple([only(one, nodes, reason) for one, nodes in zip(found, kept, strict=True)])


def only(one: FilterResult, nodes: Nodes, reason: str) -> FilterResult:
    """These of its nodes, and why the others are gone."""
    if len(nodes) == len(one.nodes):
        return one
    denied = (*one.denied, Denied.because(reason, one.nodes - nodes))
    return dataclasses.replace(one, nodes=nodes, denied=denied)


def within(sets: Iterable[NodeSet], reached: UsableNodes) -> list[NodeSet]:
    """What is left of the node sets, without those on which the job could not start."""
    return [inside for one in sets if (inside := _left(one, reached)) is not None]


def _left(one: NodeSet, reached: UsableNodes) -> NodeSet | None:
    every = reached.every
    if one.parts:
        # Only a job with a component for each shape can keep its shapes apart.
        if reached.changeable or len(one.parts) != len(reached.parts):
            return None
        parts = tuple(mine & left for mine, left in zip(one.parts, reached.parts, strict=True))
        left = dataclasses.replace(one, nodes=functools.reduce(operator.or_, parts), parts=parts)
        return left if reached.holds(parts) else None
    nodes = one.nodes if one.nodes is every else one.nodes & every
    if not reached.suits(nodes) or (one.each is not None and len(nodes) < len(one.nodes)):
        return None
    return one if len(nodes) == len(one.nodes) else dataclasses.replace(one, nodes=nodes)


def apart(sets: Sequence[Nodes], least: Sequence[int]) -> bool:
    """Whether each set can give so many nodes that no node is given twice."""
    total = sum(least)
    # A set of at least so many always finds enough, whatever the others take: only small ones are matched.
    small = [(nodes, count) for nodes, count in zip(sets, least, strict=True) if len(nodes) < total]
    rivals = [nodes for nodes, _ in small]
    holder: dict[str, int] = {}
    return all(_take(part, rivals, holder, set()) for part, (_, count) in enumerate(small) for _ in range(count))


def _take(part: int, sets: Sequence[Nodes], holder: dict[str, int], tried: set[int]) -> bool:
    """One more node for a part, if need be one of a part that can take another instead."""
    tried.add(part)
    for name in sets[part]:
        owner = holder.get(name)
        if owner is None or (owner not in tried and _take(owner, sets, holder, tried)):
            holder[name] = part
            return True
    return False


def _together(found: Sequence[FilterResult]) -> FilterResult:
    """What is left for all pods: any of them may come on any node of the job."""
    if len(found) == 1:
        return found[0]
    nodes = functools.reduce(operator.and_, (one.nodes for one in found))
    return FilterResult(nodes=nodes, denied=tuple(denied for one in found for denied in one.denied))


def _no_common(session: Session, found: Sequence[FilterResult], told: str) -> Wait:
    """Each pod has nodes of its own, and none of them would do for all."""
    kinds = ", ".join(f"{len(one.nodes)} for {one.members}" for one in found)
    said = explain.unavailable(session.snapshot.names, _together(found).denied)
    message = f"no node that all pods of the job can use ({kinds}): {said}"
    return Wait(reason=explain.UNSCHEDULABLE, message=f"{message} {told}".rstrip())


def _inside(session: Session, request: JobRequest, one: FilterResult, emitter: Emitter) -> FilterResult:
    """Those of the nodes that the request's partitions have."""
    nodes = emitter.reach(request, session.snapshot, one.nodes)
    where = partition_words(session.snapshot, request.partition or "")
    return only(one, nodes, f"node(s) are not in {where}")


def _too_few(session: Session, inside: Sequence[FilterResult], least: Sequence[int]) -> Wait:
    names = session.snapshot.names
    said = "; ".join(
        f"{count} needed{f' for {one.members}' if one.members else ''}: "
        + explain.unavailable(names, one.denied, str(len(one.nodes)))
        for one, count in zip(inside, least, strict=True)
    )
    different = "; parts of a heterogeneous job share no node" if len(inside) > 1 else ""
    return Wait(reason=explain.UNSCHEDULABLE, message=f"too few nodes{different}: {said}")


def _too_small(inside: Sequence[FilterResult]) -> Wait:
    said = "; ".join(f"{len(one.nodes)} node(s) for {one.members}" for one in inside[:MOST_NAMES])
    text = "the nodes have no room for all pods, even if they were empty; parts of a heterogeneous job share no node"
    return Wait(reason=explain.UNSCHEDULABLE, message=f"{text}: {said}")
