"""The only writer of Slurm's node fields: which nodes a placeholder may have, said by those that it may not have.

Every node of the job's partitions that it may not have is excluded; nothing is sent where it may have all of them.
Nodes are never required: a running job with a list of required nodes ends as NODE_FAIL when any node of the list has
left Slurm and slurmctld starts anew, also one that it does not run on. An exclusion outlives the nodes that it names,
and leaves the packing to Slurm.

Only names that Slurm knows are written, sorted: one unknown name refuses the whole request.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from slurm_bridge.cluster.columns.coded import Mask
from slurm_bridge.cluster.columns.members import FEW, MOST_SETS, NodeRows
from slurm_bridge.cluster.memo import VersionCache
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.hooks.base import Nodes
from slurm_bridge.model.host_names import HostGroups, HostNames
from slurm_bridge.model.job import JobRequest
from slurm_bridge.model.slurmnode import Partition
from slurm_bridge.runtime import frozen_records

_Names = tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Emission:
    """A request with its node fields, and the nodes of its partitions that it may have (all parts together)."""

    request: JobRequest
    territory: "Territory"
    allowed: Nodes

    @property
    def excluded(self) -> Nodes:
        """The nodes of its partitions, by Kubernetes' names, that it keeps away from."""
        return self.territory.nodes - self.allowed


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Territory:
    """The nodes of some partitions: by row those that Kubernetes knows, and Slurm's names of the others.

    `rows` are in the order of Slurm's names, which are `slurm_names`: a set of nodes becomes a sorted list of names
    without a look at each name. `by_row` are the same names by row. `hosts` are all of Slurm's names.
    """

    members: NodeRows
    inside: Mask
    rows: NDArray[np.intp]
    slurm_names: NDArray[np.object_]
    by_row: NDArray[np.object_]
    strangers: _Names
    hosts: HostGroups

    @property
    def nodes(self) -> Nodes:
        """Kubernetes' names of those that it knows."""
        return self.members.nodes(self.inside)

    def within(self, nodes: Nodes) -> Nodes:
        """Those of these nodes that are here; the very same set where all are."""
        index, names = self.members.index, self.by_row
        if len(nodes) <= FEW and all((row := index.get(name)) is not None and names[row] for name in nodes):
            return nodes
        inside = self.members.mask(nodes) & self.inside
        return nodes if np.count_nonzero(inside) == len(nodes) else self.members.nodes(inside)

    def without(self, nodes: Nodes) -> HostNames:
        """Slurm's names of all others than these, which are some of those that are here."""
        if len(nodes) <= FEW:
            index, names = self.members.index, self.by_row
            return self.hosts.without([names[index[name]] for name in nodes])
        others = self.slurm_names[~self.members.mask(nodes)[self.rows]].tolist()
        return HostNames(sorted((*self.strangers, *others)) if self.strangers else others)


def pinned(request: JobRequest, snapshot: ClusterSnapshot, slurm_names: tuple[str, ...]) -> JobRequest | None:
    """For pods that run already: these nodes, all of them, and no other. None where Slurm has not all of them.

    Only with their number Slurm takes all that are left to it: it would pack the tasks onto fewer.
    """
    within = members(snapshot, request.partition or "")
    if not within.issuperset(slurm_names):
        return None
    others, count = HostNames(sorted(within.difference(slurm_names))), len(slurm_names)
    return dataclasses.replace(request, excluded_nodes=others, minimum_nodes=count, maximum_nodes=count)


class Emitter:
    """Names are written once for each set of nodes, snapshot and partition, not for each workload."""

    def __init__(self) -> None:
        self._territories: VersionCache[str, Territory] = VersionCache()
        #: By identity of the sets, which the answers hold: to hash thousands of names takes longer than all else.
        self._within: VersionCache[tuple[str, int], tuple[Nodes, Nodes]] = VersionCache(MOST_SETS)
        self._without: VersionCache[tuple[str, int], tuple[Nodes, HostNames]] = VersionCache(MOST_SETS)

    def reach(self, request: JobRequest, snapshot: ClusterSnapshot, nodes: Nodes) -> Nodes:
        """Those of these nodes that the request's partitions have."""
        key = (request.partition or "", id(nodes))
        within = self._within.get(
            snapshot.version, key, lambda: (nodes, self._territory(request.partition, snapshot).within(nodes))
        )
        return within[1]

    def emit(self, request: JobRequest, snapshot: ClusterSnapshot, nodes: Nodes) -> Emission:
        """The request for these nodes."""
        territory = self._territory(request.partition, snapshot)
        allowed = self.reach(request, snapshot, nodes)
        if not allowed:
            raise ValueError(f"no node of {request.partition or 'any partition'} is left to emit")
        key = (request.partition or "", id(allowed))
        _, excluded = self._without.get(snapshot.version, key, lambda: (allowed, territory.without(allowed)))
        if request.excluded_nodes != excluded:
            request = frozen_records.replaced(request, excluded_nodes=excluded)
        return Emission(request, territory, allowed)

    def emit_all(
        self, request: JobRequest, snapshot: ClusterSnapshot, parts: Sequence[Nodes], candidates: Nodes | None = None
    ) -> Emission:
        """The same with a set of nodes for each part: for the request itself, and for each of its components.

        `candidates` narrow these sets, None in the last (or only) attempt.
        """
        if not request.components:
            return self.emit(request, snapshot, parts[0] if candidates is None else candidates)
        every = (request, *request.components)
        emitted = [
            self.emit(one, snapshot, part if candidates is None else candidates & part)
            for one, part in zip(every, parts, strict=True)
        ]
        first, *others = (one.request for one in emitted)
        allowed = frozenset().union(*(one.allowed for one in emitted))
        return Emission(dataclasses.replace(first, components=tuple(others)), emitted[0].territory, allowed)

    def inside(self, partition: str | None, snapshot: ClusterSnapshot) -> Mask:
        """The nodes of these partitions (a comma list), or of the default one, by row of the snapshot's columns."""
        territory, members = self._territory(partition, snapshot), snapshot.columns.members
        return territory.inside if territory.members is members else members.mask(territory.nodes)

    def _territory(self, partition: str | None, snapshot: ClusterSnapshot) -> Territory:
        named = partition or ""
        return self._territories.get(snapshot.version, named, lambda: _territory(snapshot, named))


def members(snapshot: ClusterSnapshot, partition: str) -> Nodes:
    """Slurm's names of the nodes of these partitions (a comma list), or of the default one where none is named.

    Not every version of Slurm tells which one is the default: then it may be any of them.
    """
    return frozenset().union(*(one.nodes for one in meant(snapshot, partition))) & snapshot.slurm_nodes.keys()


def meant(snapshot: ClusterSnapshot, partition: str) -> Sequence[Partition]:
    """The partitions of this comma list, or the default one; all where there is none of these."""
    named = {name.strip() for name in partition.split(",")}
    found = [one for one in snapshot.partitions if (one.name in named if partition else one.default)]
    return found or snapshot.partitions


def partition_words(snapshot: ClusterSnapshot, partition: str) -> str:
    """These partitions in words that follow "in"."""
    if partition:
        return f"Slurm partition {partition}"
    known = any(one.default for one in snapshot.partitions)
    return "Slurm's default partition" if known else "any Slurm partition"


def _territory(snapshot: ClusterSnapshot, partition: str) -> Territory:
    within = members(snapshot, partition)
    index = snapshot.columns.members.index
    known = sorted((slurm, index[snapshot.by_slurm[slurm]]) for slurm in within & snapshot.by_slurm.keys())
    rows = np.array([row for _, row in known], np.intp)
    inside = np.zeros(len(snapshot.columns), np.bool_)
    inside[rows] = True
    by_row = np.full(len(snapshot.columns), "", object)
    by_row[rows] = [slurm for slurm, _ in known]
    return Territory(
        members=snapshot.columns.members,
        inside=inside,
        rows=rows,
        by_row=by_row,
        slurm_names=np.array([slurm for slurm, _ in known], object),
        strangers=tuple(sorted(within - snapshot.by_slurm.keys())),
        hosts=HostGroups(sorted(within)),
    )
