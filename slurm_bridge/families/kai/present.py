"""The nodes of a snapshot as trees of domains: by what both sides leave of each node now, and by all that it has.

What a node has left is the smaller of what pods leave in Kubernetes and what jobs leave in Slurm: a pod of ours is in
both. A node on which Slurm starts nothing has nothing left. Trees follow the snapshots: what has not changed stays.
"""

import dataclasses
import hashlib
import threading
from collections.abc import Mapping, Sequence

import numpy as np

from slurm_bridge.cluster.columns import Coded, NodeColumns, Whole
from slurm_bridge.cluster.columns.carried import Rows
from slurm_bridge.cluster.columns.members import NodeRows
from slurm_bridge.cluster.fewest import takes
from slurm_bridge.families.kai.copies import Copy
from slurm_bridge.families.kai.options import TopologyOptions
from slurm_bridge.families.kai.sources import Where, where
from slurm_bridge.families.kai.topology import CPU, GPU, MEMORY, Domain, Topology
from slurm_bridge.families.kai.tree import Tree
from slurm_bridge.model.slurmnode import SlurmNode

#: What the arithmetic calls these; all others keep their names in Kubernetes.
TYPES: Mapping[str, str] = {"cpu": CPU, "memory": MEMORY, "nvidia.com/gpu": GPU}
_RESOURCES: Mapping[str, str] = {kind: resource for resource, kind in TYPES.items()}

#: How Slurm counts what Kubernetes calls so.
_GRES: Mapping[str, str] = {"nvidia.com/gpu": "gpu"}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PresentTopology:
    """One topology and its source. `column` tells columns of different configurations apart."""

    topology: Topology
    where: Where
    column: str

    @classmethod
    def of(cls, options: TopologyOptions, copy: Copy | None) -> "PresentTopology":
        """As configured."""
        written = hashlib.blake2s(repr((options, copy)).encode(), digest_size=8).hexdigest()
        topology = Topology(name=options.name, levels=options.levels)
        return cls(topology=topology, where=where(options, copy), column=f"kai {options.name} {written}")


class Present:
    """A stock (see `stock.Stock`) of a snapshot's nodes. `whole`: all that they have counts as free."""

    def __init__(self, columns: NodeColumns, places: Mapping[str, PresentTopology], *, whole: bool) -> None:
        self._columns, self._places, self._whole = columns, places, whole

    @property
    def members(self) -> NodeRows:
        return self._columns.members

    def domains(self, topology: Topology) -> Coded[Domain | None]:
        place = self._places[topology.name]
        return self._columns.attribute(place.column, place.where)

    def free(self, resource: str) -> Whole:
        columns, name = self._columns, _RESOURCES.get(resource, resource)
        inside = columns.allocatable(name) if self._whole else columns.allocatable(name) - columns.used(name)
        told = self._in_slurm(name)
        inside = inside if told is None else np.minimum(inside, told)
        whole = self._whole

        def opened(slurm: SlurmNode | None) -> int:
            return int(slurm is not None and (whole or takes(slurm)))

        open_ = columns.of_slurm(f"kai open {whole}", opened)
        return np.where(open_ > 0, np.maximum(inside, 0), 0)

    def free_pods(self) -> Whole:
        columns = self._columns
        there = columns.allocatable("pods")
        return there if self._whole else np.maximum(there - columns.used("pods"), 0)

    def since(self, before: "Present") -> Rows | None:
        return self._columns.since(before._columns)  # noqa: SLF001 - another one of this class

    def _in_slurm(self, resource: str) -> Whole | None:
        """What jobs leave there, or all of it; None where Slurm does not count it."""
        if resource not in ("cpu", "memory", *_GRES):
            return None
        whole = self._whole
        return self._columns.of_slurm(f"kai {resource} {whole}", lambda slurm: _left(slurm, resource, whole=whole))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Trees:
    """By topology: with what is free now, and with all that there is."""

    free: Mapping[str, Tree]
    whole: Mapping[str, Tree]


class Forest:
    """The trees of the last real snapshot, from which those of the next one are made."""

    def __init__(self, places: Sequence[PresentTopology]) -> None:
        self._places = {one.topology.name: one for one in places}
        self._lock = threading.Lock()
        self._last: Trees | None = None

    def at(self, columns: NodeColumns, *, keep: bool) -> Trees:
        """The trees of this snapshot; those of a cluster that is only imagined stand alone, and are not kept."""
        with self._lock:
            last = self._last if keep else None
        made = Trees(
            free=self._made(columns, last.free if last else {}, whole=False),
            whole=self._made(columns, last.whole if last else {}, whole=True),
        )
        if keep:
            with self._lock:
                self._last = made
        return made

    def _made(self, columns: NodeColumns, before: Mapping[str, Tree], *, whole: bool) -> Mapping[str, Tree]:
        stock = Present(columns, self._places, whole=whole)
        return {
            name: before[name].after(stock) if name in before else Tree.of(place.topology, stock)
            for name, place in self._places.items()
        }


def _left(slurm: SlurmNode | None, resource: str, *, whole: bool) -> int:
    if slurm is None:
        return 0
    if resource == "cpu":
        return 1000 * (slurm.cpus - (0 if whole else slurm.used_cpus))
    if resource == "memory":
        return slurm.memory_mib - (0 if whole else slurm.used_memory_mib) << 20
    there = sum(one.count for one in slurm.gres if one.name == _GRES[resource])
    return there if whole else there - sum(one.count for one in slurm.used_gres if one.name == _GRES[resource])
