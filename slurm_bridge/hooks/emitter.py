"""The only writer of Slurm's node fields: which nodes a placeholder may have, in the form that Slurm bears best.

    exclusion   every node of the job's partitions that it may not have. Packs correctly, survives a deleted node.
                Sent only when something is excluded.
    candidates  the nodes that it may have; only for a fixed node count below their number (Slurm takes *all* of a
                list that is not longer than the count), and only where that is the shorter list.

Only names that Slurm knows are written, sorted: one unknown name refuses the whole request.
"""

import dataclasses
from collections.abc import Sequence

from slurm_bridge.hooks.base import Nodes
from slurm_bridge.hooks.memo import Memo
from slurm_bridge.hooks.snapshot import ClusterSnapshot
from slurm_bridge.model.job import JobRequest

_Names = tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Emission:
    """A request with its node fields, and the Kubernetes nodes of its partitions that it keeps away from."""

    request: JobRequest
    excluded: Nodes


@dataclasses.dataclass(frozen=True, slots=True)
class _Lists:
    """One set of nodes in one partition: Slurm's names of those within it and of all its other nodes.

    `reach` and `excluded_nodes` are Kubernetes' names of the same.
    """

    allowed: _Names
    excluded: _Names
    reach: Nodes
    excluded_nodes: Nodes


def pinned(request: JobRequest, slurm_names: tuple[str, ...]) -> JobRequest:
    """For pods that run already: these nodes, all of them, and no other."""
    counted = request.minimum_nodes is not None or request.maximum_nodes is not None
    count = len(slurm_names) if counted else None
    return dataclasses.replace(
        request, required_nodes=slurm_names, excluded_nodes=(), minimum_nodes=count, maximum_nodes=count
    )


class Emitter:
    """Set arithmetic is done once for each set of nodes, snapshot and partition, not for each workload."""

    def __init__(self) -> None:
        self._lists: Memo[tuple[str, Nodes], _Lists] = Memo()

    def reach(self, request: JobRequest, snapshot: ClusterSnapshot, nodes: Nodes) -> Nodes:
        """Those of these nodes that the request's partitions have."""
        return self._listed(request, snapshot, nodes).reach

    def emit(
        self, request: JobRequest, snapshot: ClusterSnapshot, eligible: Nodes, candidates: Nodes | None = None
    ) -> Emission:
        """The request with its node fields; its partitions have to have some of the nodes.

        `candidates` are what an attempt narrows the eligible nodes to, None in the last (or only) attempt.
        """
        nodes = eligible if candidates is None else candidates
        return self._emit(request, snapshot, nodes, listing=candidates is not None)

    def _emit(self, request: JobRequest, snapshot: ClusterSnapshot, nodes: Nodes, *, listing: bool) -> Emission:
        lists = self._listed(request, snapshot, nodes)
        if not lists.allowed:
            raise ValueError(f"no node of {request.partition or 'any partition'} is left to emit")
        listed = listing and _shorter(request, lists)
        required, excluded = (lists.allowed, ()) if listed else ((), lists.excluded)
        if (request.required_nodes, request.excluded_nodes) != (required, excluded):
            request = dataclasses.replace(request, required_nodes=required, excluded_nodes=excluded)
        return Emission(request, lists.excluded_nodes)

    def emit_all(
        self, request: JobRequest, snapshot: ClusterSnapshot, parts: Sequence[Nodes], candidates: Nodes | None = None
    ) -> Emission:
        """The same with a set of nodes for each part: for the request itself, and for each of its components.

        Slurm refuses components that list one node twice, so none of them lists any.
        """
        if not request.components:
            return self.emit(request, snapshot, parts[0], candidates)
        every = (request, *request.components)
        first, *others = (
            self._emit(one, snapshot, part if candidates is None else candidates & part, listing=False)
            for one, part in zip(every, parts, strict=True)
        )
        sent = dataclasses.replace(first.request, components=tuple(other.request for other in others))
        return Emission(sent, first.excluded.intersection(*(other.excluded for other in others)))

    def _listed(self, request: JobRequest, snapshot: ClusterSnapshot, nodes: Nodes) -> _Lists:
        partition = request.partition or ""
        return self._lists.get(snapshot.version, (partition, nodes), lambda: _split(snapshot, partition, nodes))


def members(snapshot: ClusterSnapshot, partition: str) -> Nodes:
    """Slurm's names of the nodes of these partitions (a comma list), or of the default one where none is named.

    Not every version of Slurm tells which one is the default: then it may be any of them.
    """
    named = {name.strip() for name in partition.split(",")}
    meant = [one for one in snapshot.partitions if (one.name in named if partition else one.default)]
    known = meant or snapshot.partitions
    return frozenset().union(*(one.nodes for one in known)) & snapshot.slurm_nodes.keys()


def _split(snapshot: ClusterSnapshot, partition: str, nodes: Nodes) -> _Lists:
    within = members(snapshot, partition)
    allowed = {slurm: snapshot.by_slurm[slurm] for slurm in within & snapshot.by_slurm.keys()}
    allowed = {slurm: name for slurm, name in allowed.items() if name in nodes}
    excluded = within - allowed.keys()
    reach = frozenset(allowed.values())
    return _Lists(
        allowed=tuple(sorted(allowed)),
        excluded=tuple(sorted(excluded)),
        reach=nodes if reach == nodes else reach,
        excluded_nodes=frozenset(snapshot.by_slurm[slurm] for slurm in excluded & snapshot.by_slurm.keys()),
    )


def _shorter(request: JobRequest, lists: _Lists) -> bool:
    """The candidate form is safe, and shorter than the other."""
    count = request.maximum_nodes
    fixed = count is not None and request.minimum_nodes == count and count < len(lists.allowed)
    return fixed and len(lists.allowed) < len(lists.excluded)
