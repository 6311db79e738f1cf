"""What each member of a workload gets, and how many members fit on an empty node."""

import collections
import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.hooks.base import Nodes
from slurm_bridge.model.job import Gres
from slurm_bridge.model.slurmnode import SlurmNode
from slurm_bridge.translate.shapes import Shape


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """Members with the same request. `fits`: nodes by the number of these members that an empty node holds.

    `fits` is None if the nodes were not read.
    """

    names: tuple[str, ...]
    cpus: int
    memory_mib: int
    gres: tuple[Gres, ...] = ()
    fits: Mapping[int, Nodes] | None = None

    @property
    def amounts(self) -> str:
        """`1 cpu, 100 MiB, gpu:2`."""
        gres = [":".join([one.name, *([one.type] if one.type else []), str(one.count)]) for one in self.gres]
        return ", ".join([f"{self.cpus} cpu{'s' if self.cpus != 1 else ''}", f"{self.memory_mib} MiB", *gres])


def of(shapes: Iterable[Shape]) -> tuple[Slot, ...]:
    """The slots, without nodes."""
    return tuple(
        Slot(
            names=tuple(pod.metadata.name for pod in shape.pods),
            cpus=shape.cpus,
            memory_mib=shape.memory_mib,
            gres=shape.gres,
        )
        for shape in shapes
    )


def fitted(slots: Sequence[Slot], seen: ClusterSnapshot, eligible: Sequence[Nodes], *, alone: bool) -> tuple[Slot, ...]:
    """The slots, with the nodes that each may use; `alone`: no two members share a node."""
    return tuple(
        dataclasses.replace(slot, fits=_fits(slot, seen, nodes, alone=alone))
        for slot, nodes in zip(slots, eligible, strict=True)
    )


def _fits(slot: Slot, seen: ClusterSnapshot, nodes: Nodes, *, alone: bool) -> Mapping[int, Nodes]:
    found: dict[int, set[str]] = collections.defaultdict(set)
    for name in nodes:
        node = seen.nodes[name].slurm
        room = 0
        if node is not None:
            # Slurm allocates whole cores. How that rounds depends on the other jobs of the node, and is left out here.
            rooms = [node.cpus // slot.cpus, node.memory_mib // max(slot.memory_mib, 1)]
            rooms += [_count(node, one) // one.count for one in slot.gres if one.count]
            room = min(rooms)
        found[min(room, 1) if alone else room].add(name)
    return {room: frozenset(names) for room, names in sorted(found.items(), reverse=True)}


def _count(node: SlurmNode, wanted: Gres) -> int:
    alike = (one for one in node.gres if one.name == wanted.name and wanted.type in ("", one.type))
    return sum(one.count for one in alike)
