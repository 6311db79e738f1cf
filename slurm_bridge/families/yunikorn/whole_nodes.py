"""What a job with nodes of its own takes of its queue: all that these nodes have, whatever its pods ask for.

before Slurm has allocated   as many of the largest node that one of its pods may go to as it needs
after that                   the nodes that it has
"""

import functools
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from slurm_bridge.cluster import selection
from slurm_bridge.cluster.columns import Mask, NodeColumns
from slurm_bridge.cluster.columns.coded import within
from slurm_bridge.cluster.memo import VersionCache
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.yunikorn.queues.quantities import VCORE
from slurm_bridge.hooks.base import Ask
from slurm_bridge.model.node import Node
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.slurmnode import Partition
from slurm_bridge.translate import resources

#: The nodes of partitions, by the names of these; the version is that of the snapshot.
_INSIDE: VersionCache[tuple[str, ...], tuple[object, Mask]] = VersionCache()


def wants(ask: Ask, snapshot: ClusterSnapshot) -> bool:
    """No other job runs on its nodes: it asks for that, or a partition of Slurm is so for all jobs."""
    if ask.request.exclusive:
        return True
    for one in named(ask.request.partition, snapshot.partitions):  # noqa: SIM110 - every pass asks it twice
        if one.exclusive:
            return True
    return False


def named(text: str | None, partitions: Sequence[Partition]) -> tuple[Partition, ...]:
    """The partitions of a request: Slurm's default where it names none."""
    if not text:
        return tuple([one for one in partitions if one.default])
    names = text.split(",")
    return tuple([one for one in partitions if one.name in names])


def expected(ask: Ask, asked: Mapping[str, int], minimum: int, snapshot: ClusterSnapshot) -> dict[str, int]:
    """Before it has nodes: no node of its could be larger. What it asks for itself where no node can take it."""
    columns, pod = snapshot.columns, ask.workload.pods[0]
    kinds = _kinds(columns)
    among = (
        inside(ask.request.partition, snapshot, columns)
        & selection.accepting(columns, pod)
        & _large_enough(columns, pod, kinds)
    )
    if not among.any():
        return dict(asked)
    largest = {kind: int(columns.allocatable(_name(kind))[among].max()) for kind in kinds}
    count = max(minimum, _by_sum(asked, largest))
    if len(ask.shapes) < 2:  # noqa: PLR2004 - then all pods are alike
        each = min((largest.get(kind, 0) // amount for kind, amount in _requests(pod).items() if amount), default=0)
        count = max(count, -(-len(ask.workload.pods) // each) if each else 0)
    return _at_least(asked, {kind: count * amount for kind, amount in largest.items()})


def of_nodes(names: Iterable[str], asked: Mapping[str, int], snapshot: ClusterSnapshot) -> dict[str, int]:
    """Of the nodes that it has."""
    columns = snapshot.columns
    there = columns.mask(names)
    return _at_least(asked, {kind: int(columns.allocatable(_name(kind))[there].sum()) for kind in _kinds(columns)})


def inside(partition: str | None, snapshot: ClusterSnapshot, columns: NodeColumns) -> Mask:
    """The nodes of these partitions; all nodes where Slurm does not say which partition a job comes into."""
    partitions = named(partition, snapshot.partitions)
    return mask_of(partitions, snapshot, columns) if partitions else columns.present


def mask_of(partitions: Sequence[Partition], snapshot: ClusterSnapshot, columns: NodeColumns) -> Mask:
    """The rows of the nodes of these partitions that Kubernetes has, too."""

    def work_out() -> tuple[object, Mask]:
        by_slurm = snapshot.by_slurm
        return columns.members, columns.mask(
            [by_slurm[name] for one in partitions for name in one.nodes if name in by_slurm]
        )

    members, mask = _INSIDE.get(snapshot.version, tuple(one.name for one in partitions), work_out)
    # Nodes of one version may be in other rows.
    return mask if members is columns.members else work_out()[1]


def _large_enough(columns: NodeColumns, pod: Pod, kinds: Collection[str]) -> Mask:
    """A kind that no node has is not looked up: users choose its name."""
    wanted = _requests(pod)
    if not wanted.keys() <= set(kinds):
        return np.zeros_like(columns.present)
    masks = [columns.allocatable(_name(kind)) >= within(amount) for kind, amount in wanted.items()]
    return functools.reduce(np.logical_and, masks, columns.present)


def _kinds(columns: NodeColumns) -> list[str]:
    """What a node has that a job can keep from others: processors, memory, devices."""
    devices = columns.of_node("devices", _devices)
    return [VCORE, "memory", *sorted(frozenset[str]().union(*devices.values))]


def _devices(node: Node) -> frozenset[str]:
    return frozenset(name for name in node.status.allocatable if "/" in name)


def _name(kind: str) -> str:
    return "cpu" if kind == VCORE else kind


def _requests(pod: Pod) -> dict[str, int]:
    """Of the kinds that nodes are compared by, as a queue counts them."""
    found: dict[str, int] = {}
    for name, amount in resources.requests_of(pod).items():
        if name in ("cpu", "memory") or "/" in name:
            kind, factor = (VCORE, 1000) if name == "cpu" else (name, 1)
            found[kind] = -(-amount.numerator * factor // amount.denominator)
    return found


def _by_sum(asked: Mapping[str, int], largest: Mapping[str, int]) -> int:
    """So many nodes it needs at least for what it asks for in all."""
    return max((-(-asked.get(kind, 0) // amount) for kind, amount in largest.items() if amount), default=1) or 1


def _at_least(asked: Mapping[str, int], whole: Mapping[str, int]) -> dict[str, int]:
    """What nodes have counts where that is more."""
    more = {kind: amount for kind, amount in whole.items() if amount > asked.get(kind, 0)}
    return {**asked, **more}
