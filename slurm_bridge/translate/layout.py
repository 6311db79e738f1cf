"""How Slurm is asked for equal pods: exactly, on as few nodes as possible. Pure arithmetic.

    tasks      one task for each pod; memory per cpu, or per GPU where pods have some. Slurm packs them by itself.
    per node   so many nodes, and of each what its pods need together. One task a node: where a node takes several,
               Slurm would split the tasks otherwise than the GPUs.

The form has to be per node where tasks are not exact:

    typed GPUs        of external nodes leak when they are counted by task
    whole nodes       memory per cpu counts all cpus of the node, memory per GPU all its GPUs
    a cap of pods     on a node, by number or by memory
    threads of cores  a task that leaves half a core takes the memory of the whole one, and may then fit nowhere

All resources of Slurm's nodes count, not only the free ones: for those a job waits in Slurm. Equal nodes are computed
once, with their number in `NodeCounts`.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Sequence

from slurm_bridge.model.job import Gres, GresPer, Memory, MemoryPer
from slurm_bridge.model.slurmnode import SlurmNode
from slurm_bridge.translate import shapes
from slurm_bridge.translate.shapes import Form, Needs

#: Nodes, each with the number of nodes that have the same resources.
NodeCounts = tuple[tuple[SlurmNode, int], ...]

#: No limit by this resource.
_ANY = 1 << 30

GPU = "gpu"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LayoutTerms:
    """What the user and the partition demand beside the amounts. `whole`: nodes are not shared with other jobs."""

    minimum: int | None = None
    maximum: int | None = None
    one_per_node: bool = False
    node_memory_mib: int | None = None
    whole: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The amounts of a request, and how many empty nodes it needs."""

    form: Form
    nodes: int
    tasks: int
    cpus_per_task: int
    memory: Memory
    gres: tuple[Gres, ...] = ()
    gres_per: GresPer = GresPer.NODE
    minimum_nodes: int | None = None
    maximum_nodes: int | None = None


#: The fields of a request that a layout decides.
FIELDS = ("tasks", "cpus_per_task", "memory", "gres", "gres_per", "minimum_nodes", "maximum_nodes")


def count_nodes(nodes: Iterable[SlurmNode]) -> NodeCounts:
    """These nodes, grouped by their resources."""
    found: dict[object, list[SlurmNode]] = {}
    for node in nodes:
        found.setdefault((node.cpus, node.memory_mib, node.threads_per_core, node.gres), []).append(node)
    return tuple((equal[0], len(equal)) for equal in found.values())


def lay(needs: Needs, count: int, there: NodeCounts, terms: LayoutTerms) -> Layout | None:
    """The layout of `count` equal pods on these nodes, None when they do not fit."""
    fixed = _per_node(needs, count, there, terms)
    names = {one.name for one in needs.gres}
    typed = any(one.type and one.name in names for node, _ in there for one in node.gres)
    if terms.whole or terms.one_per_node or terms.node_memory_mib is not None or typed:
        return fixed
    tasks = _tasks(needs, count, there, terms)
    return fixed if tasks is None or (fixed is not None and fixed.nodes < tasks.nodes) else tasks


def together(needs: Needs, there: NodeCounts, terms: LayoutTerms) -> Layout | None:
    """The layout as one task on one node, None when no node is large enough."""
    if terms.one_per_node or (terms.minimum or 1) > 1 or not any(room(needs, node, terms) for node, _ in there):
        return None
    return Layout(
        form=Form.SUM,
        nodes=1,
        tasks=1,
        cpus_per_task=needs.cpus,
        memory=Memory(mib=terms.node_memory_mib or needs.memory_mib),
        gres=needs.gres,
        minimum_nodes=terms.minimum,
        maximum_nodes=terms.maximum,
    )


def capacity(needs: Needs, there: NodeCounts, terms: LayoutTerms) -> int:
    """How many such pods fit on as many of these nodes as are allowed."""
    return sum(_rooms(there, [room(needs, node, terms) for node, _ in there])[: terms.maximum])


def room(needs: Needs, node: SlurmNode, terms: LayoutTerms) -> int:
    """How many such pods fit on the empty node, with memory counted exactly."""
    if terms.node_memory_mib is not None and node.memory_mib < terms.node_memory_mib:
        return 0
    memory = node.memory_mib if terms.node_memory_mib is None else terms.node_memory_mib
    cap = 1 if terms.one_per_node else _ANY
    return min(cap, _cpus(node) // needs.cpus, memory // needs.memory_mib, _by_gres(needs, node))


def room_of_tasks(needs: Needs, node: SlurmNode) -> int:
    """How many such pods fit on the empty node when each is a task."""
    memory, cpus = memory_of_task(needs), _cpus(node)
    if memory.per is MemoryPer.GPU:
        by_memory = node.memory_mib // (memory.mib * _gpus(needs))
    else:
        within = node.memory_mib // memory.mib
        by_memory = (within - within % node.threads_per_core) // needs.cpus
    return min(cpus // needs.cpus, by_memory, _by_gres(needs, node))


def _tasks(needs: Needs, count: int, there: NodeCounts, terms: LayoutTerms) -> Layout | None:
    rooms = _rooms(there, [room_of_tasks(needs, node) for node, _ in there])
    minimum = min(terms.minimum, count) if terms.minimum is not None else None
    fewest = _fewest(rooms, count)
    if fewest is None or max(fewest, minimum or 1) > min(len(rooms), terms.maximum or _ANY):
        return None
    return Layout(
        form=Form.TASKS,
        nodes=max(fewest, minimum or 1),
        tasks=count,
        cpus_per_task=needs.cpus,
        memory=memory_of_task(needs),
        gres=needs.gres,
        gres_per=GresPer.TASK if needs.gres else GresPer.NODE,
        minimum_nodes=minimum,
        maximum_nodes=terms.maximum,
    )


def _rooms(there: NodeCounts, each: Sequence[int]) -> list[int]:
    """How many pods fit on each node on which any fits, the largest first."""
    found = sorted(zip(each, (number for _, number in there), strict=True), reverse=True)
    return list(itertools.chain.from_iterable([some] * number for some, number in found if some > 0))


def _fewest(rooms: Sequence[int], count: int) -> int | None:
    """On how many of these nodes, the largest first, all pods fit."""
    for number, room_there in enumerate(rooms, start=1):
        count -= room_there
        if count <= 0:
            return number
    return None


def _per_node(needs: Needs, count: int, there: NodeCounts, terms: LayoutTerms) -> Layout | None:
    """The fewest nodes on which all pods fit when spread evenly: every node gives the same amounts."""
    rooms = _rooms(there, [room(needs, node, terms) for node, _ in there])
    least = min(terms.minimum or 1, count)
    most = min(count, len(rooms), terms.maximum or count)
    number = next((number for number in range(least, most + 1) if rooms[number - 1] >= -(-count // number)), None)
    if number is None:
        return None
    each = shapes.times(needs, -(-count // number))
    return Layout(
        form=Form.PER_NODE,
        nodes=number,
        tasks=number,
        cpus_per_task=each.cpus,
        memory=Memory(mib=terms.node_memory_mib or each.memory_mib),
        gres=each.gres,
        minimum_nodes=number,
        maximum_nodes=number,
    )


def memory_of_task(needs: Needs) -> Memory:
    """The memory of a task, rounded up, so that the parts together are never less than the whole."""
    gpus = _gpus(needs)
    if gpus:
        return Memory(mib=-(-needs.memory_mib // gpus), per=MemoryPer.GPU)
    return Memory(mib=-(-needs.memory_mib // needs.cpus), per=MemoryPer.CPU)


def _gpus(needs: Needs) -> int:
    return sum(one.count for one in needs.gres if one.name == GPU)


def _cpus(node: SlurmNode) -> int:
    """The cpus of whole cores, because Slurm allocates whole cores."""
    return node.cpus - node.cpus % node.threads_per_core


def _by_gres(needs: Needs, node: SlurmNode) -> int:
    fits = _ANY
    for asked in needs.gres:
        there = sum(one.count for one in node.gres if one.name == asked.name and asked.type in ("", one.type))
        fits = min(fits, there // asked.count)
    return fits
