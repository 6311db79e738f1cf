"""Which nodes a job gets: pure, for given free resources.

Observed on cons_tres with a topology tree, in this order:

    1. candidates   usable nodes of the partition, less excluded ones and by features and reservations
    2. required     with more names than nodes explicitly requested: a candidate set; else every one, others may join
    3. how many     a maximum makes it spread: as many nodes as allowed, even without a task; else as few as possible
    4. which        all below one switch if possible, of those switches the smallest; else in order of names; if these
                    exceed the maximum the roomiest, and a single one as small as possible
    5. how much     the first node (a required one first) takes all it can, leaving one task for each that must follow;
                    with tasks_per_node each node takes exactly so many, even if the job has fewer tasks
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

from slurm_bridge.sim.slurm import features, ledger, state

#: No limit by this resource.
_ANY = 1 << 30


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeOffer:
    """A node that could take `tasks` of the job's tasks."""

    node: state.Node
    free: ledger.Free
    tasks: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeChoice:
    """The nodes to choose from, and what is free on them."""

    nodes: Sequence[state.Node]
    free: ledger.FreeResources
    partition: state.Partition

    def whole(self, ask: state.RequestedJob) -> bool:
        """The job gets whole nodes."""
        return ask.exclusive or self.partition.exclusive


def choose(ask: state.RequestedJob, ground: NodeChoice) -> state.Grant | None:
    """The nodes of the job now, None if it has to wait."""
    whole = ground.whole(ask)
    for expression in features.alternatives(ask.constraints):
        places = _places(ask, _candidates(ask, ground, expression), ground.free, whole=whole)
        counts = _in_blocks(ask, places) if ground.partition.has_blocks else _spread(ask, places)
        if counts:
            if ask.tasks_per_node is not None:
                counts = [(place, ask.tasks_per_node) for place, _ in counts]
            left = {(wanted.name, wanted.type): wanted.count for wanted in ask.gres_per_job}
            shares = [_share(ask, place, tasks, left, whole=whole) for place, tasks in counts]
            ordered = tuple(sorted(shares, key=lambda share: share.node))
            return state.Grant(shares=ordered, partition=ground.partition.name, whole=whole)
    return None


def units(ask: state.RequestedJob) -> int:
    """The number of tasks to place; a job that gave only cpus has one per cpu."""
    if ask.tasks_given:
        return ask.tasks
    return max(ask.tasks, -(-ask.minimum_cpus // ask.cpus_per_task))


def capacity(ask: state.RequestedJob, node: state.Node, free: ledger.Free, *, whole: bool) -> int:
    """How many tasks of the job this node can take."""
    if whole:
        if free.jobs or free.gres != ledger.everything(node).gres:
            return 0
        # On a node that is not shared every cpu, or GPU, counts with its memory.
        if ask.memory_given and _memory(ask, node, node.cpus, node.gres) > free.memory_mib:
            return 0
    limits = (free.cpus // ask.cpus_per_task, _by_memory(ask, node, free), *_by_gres(ask, free))
    most = max(0, min(limits))
    if ask.tasks_per_node is None:
        return most
    return ask.tasks_per_node if most >= ask.tasks_per_node else 0


def _by_memory(ask: state.RequestedJob, node: state.Node, free: ledger.Free) -> int:
    if ask.memory_per is state.MemoryPer.NODE:
        return _ANY if free.memory_mib >= (ask.memory_mib or node.memory_mib) else 0
    if ask.memory_per is state.MemoryPer.CPU:
        cpus = free.memory_mib // ask.memory_mib if ask.memory_mib else _ANY
        return (cpus - cpus % node.threads_per_core) // ask.cpus_per_task
    per_task = sum(wanted.count for wanted in ask.gres_per_task)
    if per_task:
        return free.memory_mib // max(1, ask.memory_mib * per_task)
    fixed = sum(wanted.count for wanted in ask.gres_per_node)
    return _ANY if free.memory_mib >= ask.memory_mib * fixed else 0


def _by_gres(ask: state.RequestedJob, free: ledger.Free) -> Iterator[int]:
    for wanted in ask.gres_per_node:
        yield _ANY if free.count(wanted) >= wanted.count else 0
    for wanted in ask.gres_per_task:
        yield free.count(wanted) // wanted.count if wanted.count else _ANY
    for wanted in ask.gres_per_job:
        yield _ANY if free.count(wanted) else 0


def _candidates(ask: state.RequestedJob, ground: NodeChoice, expression: str) -> Iterator[state.Node]:
    fits = features.parse(expression)
    only = set(ask.required) if ask.candidates else None
    excluded = set(ask.excluded)
    for node in ground.nodes:
        if node.name not in excluded and (only is None or node.name in only) and fits(node.features):
            yield node


def _places(
    ask: state.RequestedJob, nodes: Iterable[state.Node], free: ledger.FreeResources, *, whole: bool
) -> list[NodeOffer]:
    """The nodes with room for at least one task, in order. One task on one node needs no further check."""
    one_node = ask.minimum_nodes == 1 and ask.maximum_nodes in (None, 1)
    first_is_enough = ask.tasks_given and units(ask) == 1 and one_node and not ask.required
    places = []
    for node in nodes:
        left = free[node.name]
        tasks = capacity(ask, node, left, whole=whole) if left.cpus >= ask.cpus_per_task else 0
        if tasks:
            places.append(NodeOffer(node=node, free=left, tasks=tasks))
            if first_is_enough and _job_gres_fits(ask, places):
                break
    return places


def _spread(ask: state.RequestedJob, places: list[NodeOffer]) -> list[tuple[NodeOffer, int]]:
    """The nodes, and the tasks of each; empty if the job does not fit."""
    hard, others = _split(ask, places)
    if hard is None:
        return []
    wanted = units(ask)
    least = max(ask.minimum_nodes, len(hard), 1)
    most = min(wanted, len(hard) + len(others)) if ask.maximum_nodes is None else ask.maximum_nodes
    if ask.maximum_nodes is not None and not ask.prefer_few:
        least = max(least, min(ask.maximum_nodes, len(hard) + len(others)))
    missing, nodes = wanted - sum(place.tasks for place in hard), least - len(hard)
    by_switch = nodes > 1 or missing > 1 or not ask.tasks_given
    group = [*hard, *(_nearest(others, missing, nodes) if by_switch else others)]
    counts = _fill(group, wanted, least)
    if len(counts) > max(most, least):
        counts = _fill([*hard, *_roomiest(others, missing, max(most, least) - len(hard))], wanted, least)
    enough = len(counts) <= max(most, least) and _job_gres_fits(ask, [place for place, _ in counts])
    return counts if enough else []


def _roomiest(places: list[NodeOffer], tasks: int, most: int) -> list[NodeOffer]:
    """The roomiest of the nodes, in their order."""
    if most == 1:
        return sorted((place for place in places if place.tasks >= tasks), key=lambda place: place.tasks)[:1]
    largest = sorted(places, key=lambda place: -place.tasks)[: max(0, most)]
    return sorted(largest, key=places.index)


def _in_blocks(ask: state.RequestedJob, places: list[NodeOffer]) -> list[tuple[NodeOffer, int]]:
    """As few blocks as the number of nodes needs: one, if it fits into one."""
    blocks: dict[str, list[NodeOffer]] = {}
    for place in places:
        blocks.setdefault(place.node.block, []).append(place)
    found = [counts for block in sorted(blocks.values(), key=len) if (counts := _spread(ask, block))]
    if found:
        return found[0]
    largest = max((len(block) for block in blocks.values()), default=0)
    return _spread(ask, places) if ask.minimum_nodes > largest else []


def _split(ask: state.RequestedJob, places: list[NodeOffer]) -> tuple[list[NodeOffer] | None, list[NodeOffer]]:
    """The required nodes and the others; None if a required node has no room."""
    if not ask.required or ask.candidates:
        return [], places
    named = set(ask.required)
    hard = [place for place in places if place.node.name in named]
    if len(hard) < len(named):
        return None, []
    return hard, [place for place in places if place.node.name not in named]


def _nearest(places: list[NodeOffer], tasks: int, nodes: int) -> list[NodeOffer]:
    """The nodes below the smallest sufficient switch, or all of them."""
    below: dict[str, list[NodeOffer]] = {}
    for place in places:
        below.setdefault(place.node.switch, []).append(place)
    fitting = [
        group for group in below.values() if len(group) >= nodes and sum(place.tasks for place in group) >= tasks
    ]
    return min(fitting, key=len) if fitting else places


def _fill(places: list[NodeOffer], wanted: int, least: int) -> list[tuple[NodeOffer, int]]:
    counts: list[tuple[NodeOffer, int]] = []
    for place in places:
        if wanted <= 0 and len(counts) >= least:
            break
        must_follow = max(0, least - len(counts) - 1)
        tasks = min(wanted, max(1, min(place.tasks, wanted - must_follow)))
        counts.append((place, tasks))
        wanted -= tasks
    return counts if wanted <= 0 and len(counts) >= least else []


def _job_gres_fits(ask: state.RequestedJob, places: Sequence[NodeOffer]) -> bool:
    return all(sum(place.free.count(wanted) for place in places) >= wanted.count for wanted in ask.gres_per_job)


def _share(
    ask: state.RequestedJob, place: NodeOffer, tasks: int, job_gres_left: dict[ledger.GresKey, int], *, whole: bool
) -> state.Share:
    node = place.node
    threads = node.threads_per_core
    cpus = node.cpus if whole else -(-tasks * ask.cpus_per_task // threads) * threads
    cores = tuple(core for core, _ in zip(ledger.free_cores(place.free.cores), range(cpus // threads), strict=False))
    gres = _all_gres(node) if whole else tuple(_gres(ask, place, tasks, job_gres_left))
    counted_by_task = bool(ask.gres_per_task or ask.gres_per_job)
    return state.Share(
        node=node.name,
        cpus=cpus,
        memory_mib=_memory(ask, node, cpus, gres),
        cores=cores,
        gres=gres,
        hidden=counted_by_task and not whole and any(part.type for part in gres),
    )


def _all_gres(node: state.Node) -> tuple[state.Gres, ...]:
    found = ledger.indices(node)
    return tuple(dataclasses.replace(pool, indices=found.get((pool.name, pool.type), ())) for pool in node.gres)


def _memory(ask: state.RequestedJob, node: state.Node, cpus: int, gres: Sequence[state.Gres]) -> int:
    factors: Mapping[state.MemoryPer, int] = {
        state.MemoryPer.NODE: 1,
        state.MemoryPer.CPU: cpus,
        state.MemoryPer.GPU: sum(part.count for part in gres),
    }
    return ask.memory_mib * factors[ask.memory_per] if ask.memory_given else node.memory_mib


def _gres(
    ask: state.RequestedJob, place: NodeOffer, tasks: int, job_gres_left: dict[ledger.GresKey, int]
) -> Iterator[state.Gres]:
    free = place.free.copy()
    for wanted in ask.gres_per_node:
        yield from _draw(free, wanted, wanted.count)
    for wanted in ask.gres_per_task:
        yield from _draw(free, wanted, wanted.count * tasks)
    for wanted in ask.gres_per_job:
        count = min(free.count(wanted), job_gres_left[wanted.name, wanted.type])
        job_gres_left[wanted.name, wanted.type] -= count
        yield from _draw(free, wanted, count)


def _draw(free: ledger.Free, wanted: state.Gres, count: int) -> Iterator[state.Gres]:
    """Take from the matching pools until it is enough."""
    for (name, kind), left in free.gres.items():
        drawn = min(left, count) if name == wanted.name and wanted.type in ("", kind) else 0
        if drawn:
            free.gres[name, kind] -= drawn
            count -= drawn
            there = free.indices.get((name, kind), ())
            free.indices[name, kind] = there[drawn:]
            yield state.Gres(name=name, type=kind, count=drawn, indices=there[:drawn])
