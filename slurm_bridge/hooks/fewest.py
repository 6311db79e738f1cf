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
have been bound since then. A node is looked at again when it has changed, and equal nodes are looked at once.
"""

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from slurm_bridge.hooks.base import Nodes
from slurm_bridge.hooks.memo import Memo
from slurm_bridge.hooks.snapshot import NOTHING, ClusterSnapshot, NodeFacts
from slurm_bridge.model.job import Gres, JobRequest
from slurm_bridge.model.slurmnode import Partition, SlurmNode
from slurm_bridge.translate import layout, resources, shapes
from slurm_bridge.translate.shapes import Form, Needs, Shape
from slurm_bridge.translate.translator import Translated

#: Words of a node that takes jobs: one of the first, and none beside these. Others only cost a node its room.
TAKING = frozenset({"IDLE", "MIXED"})
HARMLESS = frozenset({"EXTERNAL", "COMPLETING", "CLOUD", "DYNAMIC_NORM"})

#: So many different nodes are remembered; in a cluster that has more of them they are looked at anew.
MOST_KINDS = 10_000

Amounts = tuple[tuple[str, Fraction], ...]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Free:
    """What some nodes have left: in Slurm, as a node of that size; in Kubernetes, beside its pods, and beside all."""

    slurm: SlurmNode
    known: Mapping[str, Fraction]
    amounts: Mapping[str, Fraction]


@dataclasses.dataclass(frozen=True, slots=True)
class _Task:
    """What one task needs: in Slurm, and in Kubernetes."""

    needs: Needs
    amounts: Amounts


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Room:
    """For how many tasks a node has room as far as Slurm knows, and for how many it really has."""

    seen: int
    real: int


_Park = tuple[tuple[_Free, int], ...]
_Key = tuple[str | None, Nodes]


class Fewest:
    """Used from several threads without a lock: at worst a node is looked at twice."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[NodeFacts, _Free | None]] = {}
        self._kinds: dict[object, _Free] = {}
        self._parks: Memo[_Key, tuple[tuple[_Park, int], ...]] = Memo()
        self._numbers: Memo[tuple[_Key, _Task, int], int | None] = Memo()

    def number(self, settled: Translated, snapshot: ClusterSnapshot, eligible: Nodes) -> int | None:
        """The node maximum to try first for this gang on these nodes, None for none."""
        request = settled.request
        if not applies(settled) or request.constraints or request.reservation:
            return None
        where, task, version = (request.partition, eligible), _task(settled.shapes), snapshot.use_version
        return self._numbers.get(
            version, (where, task, request.tasks), lambda: self._number(request, task, snapshot, eligible)
        )

    def _number(self, request: JobRequest, task: _Task, snapshot: ClusterSnapshot, eligible: Nodes) -> int | None:
        """Of several partitions the one in which it takes the fewest."""
        parks = self._parks.get(
            snapshot.use_version,
            (request.partition, eligible),
            lambda: tuple(self._by_partition(request.partition, snapshot, eligible)),
        )
        found = (fewer(_rooms(park, task), request.tasks, minimum) for park, minimum in parks)
        return min((number for number in found if number is not None), default=None)

    def _by_partition(
        self, named: str | None, snapshot: ClusterSnapshot, eligible: Nodes
    ) -> Iterator[tuple[_Park, int]]:
        for partition in _open(named, snapshot.partitions):
            within = [snapshot.by_slurm[name] for name in partition.nodes if name in snapshot.by_slurm]
            yield self._park(snapshot, (name for name in within if name in eligible)), partition.minimum_nodes

    def _park(self, snapshot: ClusterSnapshot, names: Iterable[str]) -> _Park:
        nodes = snapshot.nodes
        if len(self._seen) > 2 * len(nodes):
            # Most of them have gone.
            self._seen = {}
        seen = self._seen
        counts: Counter[_Free | None] = Counter()
        for name in names:
            facts, known = nodes[name], seen.get(name)
            if known is None or known[0] is not facts:
                seen[name] = known = (facts, self._free(facts))
            counts[known[1]] += 1
        return tuple((free, count) for free, count in counts.items() if free is not None)

    def _free(self, facts: NodeFacts) -> _Free | None:
        slurm = facts.slurm
        if slurm is None or not takes(slurm) or slurm.used_cpus >= slurm.cpus:
            return None
        left = _left(slurm)
        known, amounts = _beside(facts, facts.placed), _beside(facts, facts.used)
        key = (left.cpus, left.memory_mib, left.threads_per_core, left.gres, *(known.items()), *(amounts.items()))
        if len(self._kinds) >= MOST_KINDS:
            self._kinds = {}
        return self._kinds.setdefault(key, _Free(left, known, amounts))


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
    there = sorted((room for room in rooms if room.seen > 0), reverse=True)
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


def _open(named: str | None, partitions: Iterable[Partition]) -> Iterator[Partition]:
    """Those that the job may come to; none where it names none and nobody knows which one is the default."""
    names = {name.strip() for name in named.split(",")} if named else None
    for one in partitions:
        if "UP" in one.states and (one.default if names is None else one.name in names):
            yield one


def _task(alike: Sequence[Shape]) -> _Task:
    """Of pods that differ each is asked for as the largest."""
    amounts: dict[str, Fraction] = {}
    for shape in alike:
        for name, amount in resources.requests_of(shape.pods[0]).items():
            amounts[name] = max(amount, amounts.get(name, NOTHING))
    needed = sorted((name, amount) for name, amount in amounts.items() if amount > 0)
    return _Task(shapes.bound(shapes.kinds(alike)), tuple(needed))


def _rooms(park: _Park, task: _Task) -> list[Room]:
    found = ((_room(free, task), count) for free, count in park if free.slurm.cpus >= task.needs.cpus)
    return [room for room, count in found for _ in range(count)]


def _room(free: _Free, task: _Task) -> Room:
    slurm = layout.room_of_tasks(task.needs, free.slurm)
    seen, real = (min(slurm, *_pods(amounts, task)) for amounts in (free.known, free.amounts))
    return Room(seen, real)


def _pods(free: Mapping[str, Fraction], task: _Task) -> Iterator[int]:
    return (int(free.get(name, NOTHING) // amount) for name, amount in task.amounts)


def _beside(facts: NodeFacts, used: Mapping[str, Fraction]) -> dict[str, Fraction]:
    return {name: amount - used.get(name, NOTHING) for name, amount in facts.allocatable.items()}


def _left(node: SlurmNode) -> SlurmNode:
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
