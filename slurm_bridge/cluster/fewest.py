"""On how few nodes all tasks of a gang have room right now; what Slurm would not find by itself.

Left alone, Slurm takes nodes as they come: eight tasks go 4 + 4 where two nodes have room for four, though a third has
room for all eight. Only a maximum makes it look for that one. A maximum costs time where it cannot be kept, so it is
tried only where all of this holds:

    gang     its number of nodes is not set
    where    its partition is known and open, and nothing narrows the nodes of which only Slurm knows (constraints,
             a reservation)
    room     there is enough for all now, on fewer nodes than Slurm might take

    trust    the fewest nodes by Slurm's count are free in Kubernetes too: it would take one where pods run that it
             does not know of, and the gang would have to be placed anew

Room is what both sides leave: Slurm counts the jobs of all users, as of the last reading; Kubernetes counts the pods
that have been bound since then. It is computed for all nodes when tasks of a kind are first seen, and after that for
nodes that have changed.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from slurm_bridge.cluster import fullness
from slurm_bridge.cluster.columns import Mask, NodeColumns, Whole
from slurm_bridge.cluster.columns.kept import QuestionCache
from slurm_bridge.cluster.columns.members import NodeRows
from slurm_bridge.cluster.memo import VersionCache
from slurm_bridge.cluster.outside import Nodes
from slurm_bridge.cluster.snapshot import NOTHING, Amounts, ClusterSnapshot, NodeFacts
from slurm_bridge.model.job import MemoryPer
from slurm_bridge.model.slurmnode import Partition, SlurmNode
from slurm_bridge.translate import layout, resources, shapes
from slurm_bridge.translate.shapes import Form, Needs, Shape
from slurm_bridge.translate.translator import Translated

#: Words of a node that takes jobs: one of the first, and none beside these. Others only cost a node its room.
TAKING = frozenset({"IDLE", "MIXED"})
HARMLESS = frozenset({"EXTERNAL", "COMPLETING", "CLOUD", "DYNAMIC_NORM"})

#: So many kinds of tasks are remembered together with the room for them on each node: eight bytes for each.
MOST_KINDS = 32

#: Amounts are counted in the first of these parts of one in which they are whole; of a cpu in thousandths at least.
_SCALES = (1, 1000, 10**6, 10**9)

#: Products beyond it are left to whole numbers without an end.
_LARGEST = 2**62 - 1

#: A room in one number of a column: what is seen above, what is real below.
_BITS = 32
_REAL = (1 << _BITS) - 1


@dataclasses.dataclass(frozen=True, slots=True)
class Amount:
    """So many parts of a resource, of which one whole has `scale`; a task needs more than none of them."""

    resource: str
    scale: int
    parts: int


@dataclasses.dataclass(frozen=True, slots=True)
class TaskNeed:
    """What one task needs: in Slurm, and in Kubernetes."""

    needs: Needs
    amounts: tuple[Amount, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class TaskRoom:
    """For how many tasks a node has room as far as Slurm knows, and for how many it really has."""

    seen: int
    real: int


_NONE = TaskRoom(0, 0)


class Fewest:
    """Used from several threads without a lock: at worst something is worked out twice."""

    def __init__(self) -> None:
        self._rooms: QuestionCache[TaskNeed] = QuestionCache(MOST_KINDS)
        self._inside: VersionCache[str, tuple[NodeRows, Mask]] = VersionCache()
        #: By identity of the nodes, which the answers hold: to hash thousands of names takes longer than all else.
        self._numbers: VersionCache[tuple[str | None, int, TaskNeed, int], tuple[Nodes, int | None]] = VersionCache()

    def number(self, settled: Translated, snapshot: ClusterSnapshot, eligible: Nodes) -> int | None:
        """The node maximum to try first for this gang on these nodes, None for none."""
        request = settled.request
        if not applies(settled) or request.constraints or request.reservation:
            return None
        where, task, tasks = request.partition, task_of(settled.shapes), request.tasks
        key = (where, id(eligible), task, tasks)
        work_out = functools.partial(self._number, where, eligible, task, tasks, snapshot)
        return self._numbers.get(snapshot.use_version, key, lambda: (eligible, work_out()))[1]

    def _number(
        self, named: str | None, eligible: Nodes, task: TaskNeed, tasks: int, snapshot: ClusterSnapshot
    ) -> int | None:
        """Of several partitions the one in which it takes the fewest."""
        names = {name.strip() for name in named.split(",")} if named else None
        opened = (one for one in snapshot.partitions if "UP" in one.states)
        # None where the job names none and the default one is not known.
        partitions = [one for one in opened if (one.default if names is None else one.name in names)]
        if not partitions:
            return None
        columns = snapshot.columns
        rooms = self._rooms.get(task, columns, lambda: packed(task, columns), lambda facts: _packed(room(task, facts)))
        rooms = rooms * columns.mask(eligible)
        inside = (rooms * self._mask(snapshot, columns, one) for one in partitions)
        found = (
            fullness.fewer(there >> _BITS, there & _REAL, tasks, one.minimum_nodes)
            for there, one in zip(inside, partitions, strict=True)
        )
        return min((number for number in found if number is not None), default=None)

    def _mask(self, snapshot: ClusterSnapshot, columns: NodeColumns, partition: Partition) -> Mask:
        """The nodes of a partition. Where snapshots are asked in turns, nodes of one version may be in other rows."""
        version, work_out = snapshot.version, functools.partial(_inside, snapshot, columns, partition)
        members, mask = self._inside.get(version, partition.name, lambda: (columns.members, work_out()))
        return mask if members is columns.members else work_out()


def applies(settled: Translated) -> bool:
    """A gang of tasks that Slurm may put on as many nodes as it likes."""
    request = settled.request
    return (
        settled.form in (Form.TASKS, Form.BOUND)
        and request.tasks > 1
        and request.minimum_nodes is None
        and request.maximum_nodes is None
    )


def takes(node: SlurmNode) -> bool:
    """Slurm starts jobs there now."""
    return bool(node.states & TAKING) and node.states <= TAKING | HARMLESS


def _inside(snapshot: ClusterSnapshot, columns: NodeColumns, partition: Partition) -> Mask:
    by_slurm = snapshot.by_slurm
    return columns.mask([by_slurm[name] for name in partition.nodes if name in by_slurm])


def task_of(alike: Sequence[Shape]) -> TaskNeed:
    """Of pods that differ each is asked for as the largest."""
    amounts: dict[str, Fraction] = {}
    for shape in alike:
        for name, amount in resources.requests_of(shape.pods[0]).items():
            amounts[name] = max(amount, amounts.get(name, NOTHING))
    needed = []
    for name, amount in sorted(amounts.items()):
        if amount > 0:
            whole = (scale for scale in _SCALES[name == "cpu" :] if scale % amount.denominator == 0)
            scale = next(whole, amount.denominator)
            needed.append(Amount(name, scale, amount.numerator * (scale // amount.denominator)))
    return TaskNeed(shapes.bound(shapes.kinds(alike)), tuple(needed))


def packed(task: TaskNeed, columns: NodeColumns) -> Whole:
    """The room on all nodes, each in one number."""
    most = _by_slurm(task.needs, columns)
    largest = int(most.max(initial=1))
    if any(one.parts * largest > _LARGEST for one in task.amounts):
        rooms = (0 if facts is None else _packed(room(task, facts)) for facts in columns.facts)
        return np.fromiter(rooms, np.int64, len(columns))
    seen, real = most, most
    for one in task.amounts:
        real = np.minimum(real, columns.whole(f"fewest real {one.scale} {one.resource}", _real(one)) // one.parts)
        seen = np.minimum(seen, columns.whole(f"fewest seen {one.scale} {one.resource}", _seen(one)) // one.parts)
    return (np.maximum(seen, 0) << _BITS) | np.maximum(real, 0)


def _packed(found: TaskRoom) -> int:
    return (found.seen << _BITS) | found.real


def _by_slurm(needs: Needs, columns: NodeColumns) -> Whole:
    """For how many tasks there is room by Slurm's count: `layout.room_of_tasks` of what is left of each node."""
    cpus, memory = columns.of_slurm("fewest cpus", _cpus), columns.of_slurm("fewest memory", _memory)
    each, gpus = layout.memory_of_task(needs), sum(one.count for one in needs.gres if one.name == layout.GPU)
    if each.per is MemoryPer.GPU:
        by_memory = _often(memory, each.mib * gpus)
    else:
        within = _often(memory, each.mib)
        threads = columns.of_slurm("fewest threads", _threads)
        if threads.max(initial=1) > 1:
            within = within - within % np.maximum(threads, 1)
        by_memory = _often(within, needs.cpus)
    most = np.minimum(_often(cpus, needs.cpus), by_memory)
    for one in needs.gres:
        there = columns.of_slurm(f"fewest gres {one.name}:{one.type}", functools.partial(_gres, one.name, one.type))
        most = np.minimum(most, _often(there, one.count))
    return most


def _often(there: Whole, each: int) -> Whole:
    """How often so much is there. It may be more than a column can hold, and then it is nowhere."""
    return there // min(each, _LARGEST)


def _real(one: Amount) -> Callable[[NodeFacts], int]:
    return lambda facts: _free(facts, facts.used, one)


def _seen(one: Amount) -> Callable[[NodeFacts], int]:
    return lambda facts: _free(facts, facts.placed, one)


def _free(facts: NodeFacts, used: Amounts, one: Amount) -> int:
    """Whole parts of a resource that are not used; less than none where more is used than there is."""
    there, taken = facts.allocatable.get(one.resource, NOTHING), used.get(one.resource, NOTHING)
    below = there.denominator * taken.denominator
    above = there.numerator * taken.denominator - taken.numerator * there.denominator
    return above * one.scale // below


def _cpus(slurm: SlurmNode | None) -> int:
    """Of whole cores, where jobs are taken."""
    free = slurm.cpus - slurm.used_cpus if slurm is not None and takes(slurm) else 0
    return max(0, free - free % slurm.threads_per_core) if slurm is not None else 0


def _memory(slurm: SlurmNode | None) -> int:
    return _left(slurm).memory_mib if slurm is not None else 0


def _threads(slurm: SlurmNode | None) -> int:
    return slurm.threads_per_core if slurm is not None else 1


def _gres(name: str, kind: str, slurm: SlurmNode | None) -> int:
    there = _left(slurm).gres if slurm is not None else ()
    return sum(one.count for one in there if one.name == name and kind in ("", one.type))


def room(task: TaskNeed, facts: NodeFacts) -> TaskRoom:
    """What both sides leave of a node; for all nodes at once it is `packed`."""
    slurm = facts.slurm
    if slurm is None or not takes(slurm) or slurm.cpus - slurm.used_cpus < task.needs.cpus:
        return _NONE
    most = layout.room_of_tasks(task.needs, _left(slurm))
    real = _pods(facts, facts.used, task, most)
    return TaskRoom(seen=real if facts.placed == facts.used else _pods(facts, facts.placed, task, most), real=real)


def _pods(facts: NodeFacts, used: Amounts, task: TaskNeed, most: int) -> int:
    """How many of them fit beside what is used."""
    by_kube = (_free(facts, used, one) // one.parts for one in task.amounts)
    return max(0, min(most, min(by_kube, default=most)))


def _left(node: SlurmNode) -> SlurmNode:
    if not (node.used_cpus or node.used_memory_mib or node.used_gres):
        return node
    gres = []
    for one in node.gres:
        # What is used without a type may be of any type.
        taken = sum(used.count for used in node.used_gres if used.name == one.name and used.type in ("", one.type))
        gres.append(dataclasses.replace(one, count=max(0, one.count - taken)))
    return dataclasses.replace(
        node,
        cpus=node.cpus - node.used_cpus,
        memory_mib=max(0, node.memory_mib - node.used_memory_mib),
        gres=tuple(gres),
    )
