"""The fewest nodes by the plain words of the rule: node after node, in fractions, sorted, and nothing remembered."""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from slurm_bridge.cluster import fewest
from slurm_bridge.cluster.facts import NOTHING, Amounts, NodeFacts
from slurm_bridge.cluster.fewest import TaskRoom
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.hooks.base import Nodes
from slurm_bridge.model.job import Gres
from slurm_bridge.model.slurmnode import Partition, SlurmNode
from slurm_bridge.translate import layout, resources, shapes
from slurm_bridge.translate.shapes import Needs, Shape
from slurm_bridge.translate.translator import Translated

Task = tuple[Needs, Amounts]


def number(settled: Translated, snapshot: ClusterSnapshot, eligible: Nodes) -> int | None:
    """As `Fewest.number`."""
    request = settled.request
    if not fewest.applies(settled) or request.constraints or request.reservation:
        return None
    asked = task(settled.shapes)
    found = (
        fewer(_there(asked, snapshot, partition, eligible), request.tasks, partition.minimum_nodes)
        for partition in _open(request.partition, snapshot.partitions)
    )
    return min((one for one in found if one is not None), default=None)


def task(alike: Sequence[Shape]) -> Task:
    """The largest of each amount."""
    amounts: dict[str, Fraction] = {}
    for shape in alike:
        for name, amount in resources.requests_of(shape.pods[0]).items():
            amounts[name] = max(amount, amounts.get(name, NOTHING))
    needed = {name: amount for name, amount in amounts.items() if amount > 0}
    return shapes.bound(shapes.kinds(alike)), needed


def fewer(rooms: Iterable[TaskRoom], tasks: int, minimum: int = 0) -> int | None:
    """As `filling.fewer`, over nodes that are lined up."""
    there = sorted((one for one in rooms if one.seen > 0), key=lambda one: one.seen, reverse=True)
    largest = sorted((one.real for one in there if one.real > 0), reverse=True)
    least, most = _filled(largest, tasks), _filled(largest[::-1], tasks)
    if least is None or most is None:
        return None
    found = max(least, minimum)
    return found if found < most and not _deceptive(there, tasks, found) else None


def room(asked: Task, facts: NodeFacts) -> TaskRoom:
    """What both sides leave of one node."""
    slurm = facts.slurm
    if slurm is None or not fewest.takes(slurm) or slurm.cpus - slurm.used_cpus < asked[0].cpus:
        return TaskRoom(0, 0)
    most = layout.room_of_tasks(asked[0], _left(slurm))
    return TaskRoom(seen=_pods(facts, facts.placed, asked[1], most), real=_pods(facts, facts.used, asked[1], most))


def _there(asked: Task, snapshot: ClusterSnapshot, partition: Partition, eligible: Nodes) -> Iterator[TaskRoom]:
    for name in partition.nodes:
        known = snapshot.by_slurm.get(name)
        if known is not None and known in eligible:
            yield room(asked, snapshot.nodes[known])


def _open(named: str | None, partitions: Iterable[Partition]) -> Iterator[Partition]:
    names = {name.strip() for name in named.split(",")} if named else None
    for one in partitions:
        if "UP" in one.states and (one.default if names is None else one.name in names):
            yield one


def _deceptive(largest: Sequence[TaskRoom], tasks: int, found: int) -> bool:
    worst = next((place for place, one in enumerate(largest) if min(tasks, one.seen) > one.real), None)
    if worst is None:
        return False
    others = [one.seen for place, one in enumerate(largest[: found + 1]) if place != worst][: found - 1]
    return largest[worst].seen + sum(others) >= tasks


def _filled(rooms: Iterable[int], tasks: int) -> int | None:
    totals = enumerate(itertools.accumulate(rooms), start=1)
    return next((count for count, total in totals if total >= tasks), None)


def _pods(facts: NodeFacts, used: Amounts, needed: Amounts, most: int) -> int:
    for name, amount in needed.items():
        free = facts.allocatable.get(name, NOTHING) - used.get(name, NOTHING)
        if free < amount * most:
            most = max(0, int(free // amount))
    return most


def _left(node: SlurmNode) -> SlurmNode:
    return dataclasses.replace(
        node,
        cpus=node.cpus - node.used_cpus,
        memory_mib=max(0, node.memory_mib - node.used_memory_mib),
        gres=tuple(_unused(one, node.used_gres) for one in node.gres),
    )


def _unused(one: Gres, used: Iterable[Gres]) -> Gres:
    taken = sum(other.count for other in used if other.name == one.name and other.type in ("", one.type))
    return dataclasses.replace(one, count=max(0, one.count - taken))
