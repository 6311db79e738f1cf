"""On how few nodes all tasks of a gang have room right now; what Slurm would not find by itself.

Left alone, Slurm takes nodes as they come: eight tasks go 4 + 4 where two nodes have room for four, though a third has
room for all eight. Only a maximum makes it look for that one. A maximum costs time where it cannot be kept, so it is
tried only where all of this holds:

    who      a gang of tasks whose number of nodes nobody has set
    where    its partition is known and open, and nothing narrows the nodes of which only Slurm knows (constraints,
             a reservation)
    room     there is enough for all now, on fewer nodes than Slurm might take

    trust    the fewest nodes by Slurm's count are free in Kubernetes too: it would take one where pods run that it
             does not know of, and the gang would have to be placed anew

Room is what both sides leave: Slurm counts jobs of everybody, as of its last reading; Kubernetes counts the pods that
have been bound since then.
"""

import dataclasses
import itertools
import operator
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from slurm_bridge.hooks.base import Nodes
from slurm_bridge.hooks.memo import Memo
from slurm_bridge.hooks.snapshot import NOTHING, Amounts, ClusterSnapshot, NodeFacts
from slurm_bridge.model.job import Gres
from slurm_bridge.model.slurmnode import Partition, SlurmNode
from slurm_bridge.translate import layout, resources, shapes
from slurm_bridge.translate.shapes import Form, Needs, Shape
from slurm_bridge.translate.translator import Translated

#: Words of a node that takes jobs: one of the first, and none beside these. Others only cost a node its room.
TAKING = frozenset({"IDLE", "MIXED"})
HARMLESS = frozenset({"EXTERNAL", "COMPLETING", "CLOUD", "DYNAMIC_NORM"})

#: So many kinds of tasks are remembered together with the room for them on each node.
MOST_KINDS = 32


@dataclasses.dataclass(frozen=True, slots=True)
class Task:
    """What one task needs: in Slurm, and in Kubernetes."""

    needs: Needs
    amounts: tuple[tuple[str, Fraction], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Room:
    """For how many tasks a node has room as far as Slurm knows, and for how many it really has."""

    seen: int
    real: int


_NONE = Room(0, 0)

_Key = tuple[str | None, Nodes]


class Fewest:
    """Used from several threads without a lock: at worst a node is looked at twice."""

    def __init__(self) -> None:
        self._rooms: dict[Task, dict[str, tuple[NodeFacts, Room]]] = {}
        self._within: Memo[tuple[str, Nodes], tuple[str, ...]] = Memo()
        self._numbers: Memo[tuple[_Key, Task, int], int | None] = Memo()

    def number(self, settled: Translated, snapshot: ClusterSnapshot, eligible: Nodes) -> int | None:
        """The node maximum to try first for this gang on these nodes, None for none."""
        request = settled.request
        if not applies(settled) or request.constraints or request.reservation:
            return None
        where, task, version = (request.partition, eligible), _task(settled.shapes), snapshot.use_version
        return self._numbers.get(
            version, (where, task, request.tasks), lambda: self._number(where, task, request.tasks, snapshot)
        )

    def _number(self, where: _Key, task: Task, tasks: int, snapshot: ClusterSnapshot) -> int | None:
        """Of several partitions the one in which it takes the fewest."""
        named, eligible = where
        found = (
            fewer(self._there(task, snapshot, partition, eligible), tasks, partition.minimum_nodes)
            for partition in _open(named, snapshot.partitions)
        )
        return min((number for number in found if number is not None), default=None)

    def _there(self, task: Task, snapshot: ClusterSnapshot, partition: Partition, eligible: Nodes) -> list[Room]:
        """What there is in one partition."""
        known, nodes = self._known(task, snapshot), snapshot.nodes
        within = self._within.get(
            snapshot.version, (partition.name, eligible), lambda: _within(snapshot, partition, eligible)
        )
        return [_looked(known, task, nodes[name]) for name in within]

    def _known(self, task: Task, snapshot: ClusterSnapshot) -> dict[str, tuple[NodeFacts, Room]]:
        """The room for such a task, by node; what has gone is forgotten in time."""
        known = self._rooms.get(task)
        if known is None or len(known) > 2 * len(snapshot.nodes):
            if len(self._rooms) >= MOST_KINDS:
                self._rooms = {}
            self._rooms[task] = known = {}
        return known


def _looked(known: dict[str, tuple[NodeFacts, Room]], task: Task, facts: NodeFacts) -> Room:
    """Looked at again only when anything about the node has changed."""
    found = known.get(facts.name)
    if found is None or found[0] is not facts:
        known[facts.name] = found = (facts, room(task, facts))
    return found[1]


def applies(settled: Translated) -> bool:
    """A gang of tasks that Slurm may put on as many nodes as it likes."""
    request = settled.request
    return (
        settled.form in (Form.TASKS, Form.BOUND)
        and request.tasks > 1
        and request.minimum_nodes is None
        and request.maximum_nodes is None
    )


def fewer(rooms: Iterable[Room], tasks: int, minimum: int = 0) -> int | None:
    """On how few nodes so many tasks have room; None where there is not enough, or where as many are taken anyhow.

    `minimum` is how many the partition gives at least.
    """
    there = sorted((room for room in rooms if room.seen > 0), key=operator.attrgetter("seen"), reverse=True)
    largest = sorted((room.real for room in there if room.real > 0), reverse=True)
    least = _filled(largest, tasks)
    most = _filled(largest[::-1], tasks)
    if least is None or most is None:
        return None
    number = max(least, minimum)
    return number if number < most and not _deceptive(there, tasks, number) else None


def _deceptive(largest: Sequence[Room], tasks: int, number: int) -> bool:
    """Among so many nodes Slurm may choose one on which it would put more tasks than there is room for."""
    worst = next((place for place, room in enumerate(largest) if min(tasks, room.seen) > room.real), None)
    if worst is None:
        return False
    others = [room.seen for place, room in enumerate(largest[: number + 1]) if place != worst][: number - 1]
    return largest[worst].seen + sum(others) >= tasks


def takes(node: SlurmNode) -> bool:
    """Slurm starts jobs there now."""
    return bool(node.states & TAKING) and node.states <= TAKING | HARMLESS


def _filled(rooms: Iterable[int], tasks: int) -> int | None:
    """How many of these are needed, in this order."""
    totals = enumerate(itertools.accumulate(rooms), start=1)
    return next((number for number, total in totals if total >= tasks), None)


def _within(snapshot: ClusterSnapshot, partition: Partition, eligible: Nodes) -> tuple[str, ...]:
    known = (snapshot.by_slurm[name] for name in partition.nodes if name in snapshot.by_slurm)
    return tuple(name for name in known if name in eligible)


def _open(named: str | None, partitions: Iterable[Partition]) -> Iterator[Partition]:
    """Those that the job may come to; none where it names none and nobody knows which one is the default."""
    names = {name.strip() for name in named.split(",")} if named else None
    for one in partitions:
        if "UP" in one.states and (one.default if names is None else one.name in names):
            yield one


def _task(alike: Sequence[Shape]) -> Task:
    """Of pods that differ each is asked for as the largest."""
    amounts: dict[str, Fraction] = {}
    for shape in alike:
        for name, amount in resources.requests_of(shape.pods[0]).items():
            amounts[name] = max(amount, amounts.get(name, NOTHING))
    needed = sorted((name, amount) for name, amount in amounts.items() if amount > 0)
    return Task(shapes.bound(shapes.kinds(alike)), tuple(needed))


def room(task: Task, facts: NodeFacts) -> Room:
    """What both sides leave of a node."""
    slurm = facts.slurm
    if slurm is None or not takes(slurm) or slurm.cpus - slurm.used_cpus < task.needs.cpus:
        return _NONE
    most = layout.room_of_tasks(task.needs, _left(slurm))
    real = _pods(facts, facts.used, task, most)
    return Room(seen=real if facts.placed == facts.used else _pods(facts, facts.placed, task, most), real=real)


def _pods(facts: NodeFacts, used: Amounts, task: Task, most: int) -> int:
    """How many of them fit beside what is used."""
    for name, amount in task.amounts:
        free = facts.allocatable.get(name, NOTHING) - used.get(name, NOTHING)
        if free < amount * most:
            most = max(0, int(free // amount))
    return most


def _left(node: SlurmNode) -> SlurmNode:
    if not (node.used_cpus or node.used_memory_mib or node.used_gres):
        return node
    return dataclasses.replace(
        node,
        cpus=node.cpus - node.used_cpus,
        memory_mib=max(0, node.memory_mib - node.used_memory_mib),
        gres=tuple(_unused(one, node.used_gres) for one in node.gres),
    )


def _unused(one: Gres, used: Iterable[Gres]) -> Gres:
    """What is used without a type may be of any type."""
    taken = sum(other.count for other in used if other.name == one.name and other.type in ("", one.type))
    return dataclasses.replace(one, count=max(0, one.count - taken))
