"""Whether a job could ever run here, whatever runs now: checked at submit, and while the job waits."""

import collections
import enum
import heapq
from collections.abc import Callable

from slurm_bridge.sim.slurm import features, ledger, select, state
from slurm_bridge.sim.slurm.world import World


class Outlook(enum.Enum):
    """From worst to best."""

    NEVER = "no node could run even one task"
    TOO_LARGE = "asks for more nodes or cpus than the partition has"
    STRANDED = "the nodes that could run it are down, drained or reserved"
    GOOD = "it fits once others have ended"


def best(world: World, ask: state.RequestedJob, *, external: bool = True) -> Outlook:
    """The best result among the job's partitions."""
    partitions = (world.partitions[name] for name in ask.partitions if name in world.partitions)
    looks = [_look(world, ask, partition, external=external) for partition in partitions]
    return max(looks, key=list(Outlook).index, default=Outlook.NEVER)


def _look(world: World, ask: state.RequestedJob, partition: state.Partition, *, external: bool) -> Outlook:
    if ask.minimum_nodes > len(partition.nodes) or not _enough_cpus(world, ask, partition):
        return Outlook.TOO_LARGE

    def suits(node: state.Node) -> bool:
        # No script runs without a slurmd; an external job needs none, and may be where one is.
        return external or not node.external

    closed = world.closed_nodes(ask.reservation)

    def open_(node: state.Node) -> bool:
        return suits(node) and node.usable and node.name not in closed

    if not _fits(world, ask, partition, suits):
        return Outlook.NEVER
    return Outlook.GOOD if _fits(world, ask, partition, open_) else Outlook.STRANDED


def _enough_cpus(world: World, ask: state.RequestedJob, partition: state.Partition) -> bool:
    missing = ask.minimum_cpus
    for name in partition.nodes:
        if missing <= 0:
            break
        missing -= world.nodes[name].cpus
    return missing <= 0


def _fits(
    world: World, ask: state.RequestedJob, partition: state.Partition, suits: Callable[[state.Node], bool]
) -> bool:
    if partition.has_blocks and _blocks_apart(world, ask, partition):
        return False
    if not ask.candidates:
        # Every required node matches; most jobs require none.
        for name in ask.required:
            if name not in partition.nodes or name not in world.nodes or not suits(world.nodes[name]):
                return False
    excluded = set(ask.excluded)
    expressions = [features.parse(text) for text in features.alternatives(ask.constraints)]
    room = (
        select.capacity(ask, node, ledger.everything(node), whole=ask.exclusive or partition.exclusive)
        for node in map(world.nodes.__getitem__, partition.nodes)
        if node.name not in excluded
        and suits(node)
        and (not ask.candidates or node.name in ask.required)
        and any(fits(node.features) for fits in expressions)
    )
    if ask.maximum_nodes is not None:
        return sum(heapq.nlargest(ask.maximum_nodes, room)) >= select.units(ask)
    return any(room)


def _blocks_apart(world: World, ask: state.RequestedJob, partition: state.Partition) -> bool:
    """The required nodes are in more blocks than their number needs."""
    sizes = collections.Counter(world.nodes[name].block for name in partition.nodes)
    apart = {world.nodes[name].block for name in ask.required if name in world.nodes}
    return not ask.candidates and len(apart) > -(-ask.minimum_nodes // max(sizes.values(), default=1))
