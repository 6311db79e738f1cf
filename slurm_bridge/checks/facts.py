"""The input of the checks: the state of both servers, and the configuration."""

import dataclasses
from collections.abc import Mapping

from slurm_bridge.model.job import JobRequest, JobView, Outcome
from slurm_bridge.model.node import Node
from slurm_bridge.model.slurmconf import SlurmConf
from slurm_bridge.model.slurmnode import Partition, SlurmNode
from slurm_bridge.model.slurmtoken import TokenLife

#: The kind in the owner record of the check's placeholder.
PROBE_KIND = "Check"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Expectations:
    """The part of the configuration that has to match the servers."""

    cluster_id: str
    #: Where slurmrestd is.
    address: str = ""
    partitions: tuple[str, ...] = ()
    account: str | None = None
    qos: str | None = None
    user: str | None = None
    group: str | None = None
    mcs_label: str = ""
    job_ids: tuple[int, int] | None = None
    gres: Mapping[str, str] = dataclasses.field(default_factory=dict)
    device_gres: Mapping[str, str] = dataclasses.field(default_factory=dict)
    #: Those that pods get by ResourceClaim.
    claimed_gres: frozenset[str] = frozenset()
    hybrid_devices: str = "refuse"
    unstarted_window: int = 0
    heterogeneous: bool = True
    submissions: bool = False
    administration: bool = False
    live_view: bool = False
    node_controller: bool = False
    #: Namespace and name of the lease of the leader; empty without an election.
    lease: tuple[str, str] | tuple[()] = ()
    parts: bool = False

    @property
    def reviews(self) -> bool:
        """Whether callers are identified by their tokens."""
        return self.submissions or self.administration or self.live_view


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """Whether our account may do this to every object of a resource, such as `podgroups/status.scheduling.k8s.io`.

    `where`: only of this namespace, or only to one object there.
    """

    verb: str
    resource: str
    allowed: bool
    where: str = ""

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}" + (f" ({self.where})" if self.where else "")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A placeholder that was submitted on hold, read back and cancelled; `asked_at` is our own wall clock."""

    request: JobRequest
    asked_at: float
    outcome: Outcome
    view: JobView | None = None
    cancelled: Outcome | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CheckFacts:
    """The state of both servers. A part that could not be read is in `unread` with the reason; its field is empty.

    `heterogeneous`: Slurm accepts jobs of several components. `token`: what the token for Slurm says of itself.
    `rights`: on the kinds that make or group pods. `reviews`: whether we may review tokens; None if that is not needed.
    `node_rights`: those of the node controller, if it is enabled. `lead_rights`: on the leases of leaders and parts,
    and on namespaces where there are parts.
    """

    slurm_nodes: tuple[SlurmNode, ...] = ()
    partitions: tuple[Partition, ...] = ()
    conf: SlurmConf | None = None
    token: TokenLife | None = None
    #: By our own wall clock.
    read_at: float = 0.0
    heterogeneous: bool = False
    rights: tuple[Right, ...] = ()
    reviews: bool | None = None
    node_rights: tuple[Right, ...] = ()
    lead_rights: tuple[Right, ...] = ()
    nodes: tuple[Node, ...] = ()
    probe: Probe | None = None
    unread: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def by_slurm_name(self) -> Mapping[str, Node]:
        """Kubernetes' nodes by their names in Slurm."""
        return {node.slurm_name: node for node in self.nodes}

    @property
    def external(self) -> tuple[SlurmNode, ...]:
        """Slurm's nodes that a kubelet may run. Before v0.0.44 nodes do not say so, and names have to match."""
        told = tuple(node for node in self.slurm_nodes if node.external)
        ours = self.by_slurm_name
        return told or tuple(node for node in self.slurm_nodes if node.name in ours and not node.native)

    @property
    def hybrid(self) -> tuple[SlurmNode, ...]:
        """Slurm's nodes with a slurmd that a kubelet runs, too."""
        ours = self.by_slurm_name
        return tuple(node for node in self.slurm_nodes if node.native and node.name in ours)

    @property
    def our_partitions(self) -> tuple[Partition, ...]:
        """Partitions in which a placeholder could get a node."""
        names = {node.name for node in (*self.external, *self.hybrid)}
        return tuple(partition for partition in self.partitions if not names.isdisjoint(partition.nodes))
