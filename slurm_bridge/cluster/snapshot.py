"""The cluster as hooks see it: both sides' view of every node at one moment, frozen."""

import dataclasses
from collections.abc import Mapping

from slurm_bridge.cluster.columns.follow import Deferred, Follower
from slurm_bridge.cluster.columns.nodes import NodeColumns
from slurm_bridge.cluster.facts import NOTHING, Amounts, NodeFacts, fits, lacking
from slurm_bridge.cluster.nominations import NOBODY, ByNode
from slurm_bridge.model.slurmnode import Partition, SlurmNode

__all__ = ["EMPTY", "NOTHING", "Amounts", "ClusterSnapshot", "NodeFacts", "fits", "lacking"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSnapshot:
    """`version` moves when anything changed that a rule about placement can depend on, `use_version` with every change.

    `company_version` moves with `version`, with every word of a node about itself, with promises, and with pods that
    come, go or change and have terms about their neighbours. Most pods have none.
    `names` are the keys of `nodes`, kept as one object for as long as none comes or goes; a plan may cache by it.
    `heterogeneous`: Slurm takes jobs of several components. `nominated` are pods that were promised a node.
    """

    version: int
    use_version: int
    company_version: int
    nodes: Mapping[str, NodeFacts]
    slurm_nodes: Mapping[str, SlurmNode]
    partitions: tuple[Partition, ...]
    names: frozenset[str]
    by_slurm: Mapping[str, str]
    heterogeneous: bool = False
    nominated: ByNode = dataclasses.field(default_factory=lambda: NOBODY)
    _columns: Deferred = dataclasses.field(default_factory=Deferred, init=False, repr=False, compare=False)

    @property
    def columns(self) -> NodeColumns:
        """The nodes as columns, computed at the first use, from those of another snapshot where there is one."""
        made = self._columns.made
        return made if made is not None else self._columns.get(self.nodes, self.names)

    def follow(self, follower: Follower) -> None:
        """Work out the columns from those of the keeper's other snapshots."""
        version, nodes, names = self.use_version, self.nodes, self.names
        # Not of itself: a snapshot that held itself would stay until the garbage collector runs, and there are many.
        self._columns.make = lambda: follower.columns(version, nodes, names)

    def by_slurm_name(self, name: str) -> NodeFacts | None:
        """The Kubernetes node that Slurm calls so."""
        found = self.by_slurm.get(name)
        return self.nodes[found] if found is not None else None


EMPTY = ClusterSnapshot(
    version=0, use_version=0, company_version=0, nodes={}, slurm_nodes={}, partitions=(), names=frozenset(), by_slurm={}
)
