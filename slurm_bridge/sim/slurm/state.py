"""The records of the pocket slurmctld: machines, partitions, jobs as requested, as allocated, and as ended.

All records are frozen; the world replaces them, so that a crash can restore an earlier state.
"""

import dataclasses
import enum
from collections.abc import Mapping

#: Slurm's text for no reason.
NO_REASON = "None"

#: The reason of a held job whose reservation ended before it started.
RESERVATION_DELETED = "ReservationDeleted"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Gres:
    """Generic resources of one name; the type may be empty. `indices` are those of a job on a node that gives some."""

    name: str
    count: int
    type: str = ""
    indices: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One machine. `switch` is its leaf of the topology tree, `block` its block if a partition has blocks.

    `indexed`: its generic resources are files in gres.conf, as on nodes with a slurmd, so that Slurm says which ones.
    """

    name: str
    cpus: int = 64
    threads_per_core: int = 1
    memory_mib: int = 256_000
    gres: tuple[Gres, ...] = ()
    features: tuple[str, ...] = ()
    switch: str = ""
    block: str = ""
    external: bool = True
    indexed: bool = False
    down: bool = False
    drain: bool = False
    responding: bool = True
    reason: str = ""
    reason_by: str = ""
    reason_at: float = 0.0
    comment: str = ""
    dynamic: bool = False
    topology: str = ""
    created: float = 0.0

    @property
    def usable(self) -> bool:
        """Whether new jobs may start on it."""
        return self.responding and not (self.down or self.drain)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A set of nodes with rules. Times are minutes, None is no limit."""

    name: str
    nodes: tuple[str, ...]
    state: str = "UP"
    default: bool = False
    default_minutes: int | None = None
    maximum_minutes: int | None = None
    exclusive: bool = False
    topology: str = ""
    priority: int = 1
    grace_seconds: int = 0
    root_only: bool = False
    #: It takes in every new node with this feature, by a NodeSet of the same name.
    feature: str = ""

    @property
    def has_blocks(self) -> bool:
        """Whether its nodes are in blocks, which bind jobs, and not below switches, which jobs only prefer."""
        return self.topology == "blocks"

    @property
    def starts_jobs(self) -> bool:
        """Pending jobs may start."""
        return self.state in ("UP", "DRAIN")

    @property
    def accepts_jobs(self) -> bool:
        """Whether new jobs are accepted."""
        return self.state in ("UP", "DOWN")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Nodes that are reserved for some users for some time. Times are Unix seconds."""

    name: str
    nodes: tuple[str, ...]
    users: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    start: float = 0.0
    end: float = float("inf")
    flags: tuple[str, ...] = ()

    def active(self, wall: float) -> bool:
        """Whether it is active now."""
        return self.start <= wall < self.end

    def admits(self, user: str) -> bool:
        """Root enters every reservation."""
        return user == "root" or not self.users or user in self.users


class MemoryPer(enum.Enum):
    """What an amount of memory counts for."""

    NODE = "node"
    CPU = "cpu"
    GPU = "gpu"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RequestedJob:
    """A job as requested. `minimum_cpus` is shown as `cpus` while the job pends; updates can leave it stale."""

    name: str = ""
    partitions: tuple[str, ...] = ()
    default_partition: bool = False
    tasks: int = 1
    tasks_given: bool = False
    tasks_per_node: int | None = None
    cpus_per_task: int = 1
    minimum_cpus: int = 1
    minimum_nodes: int = 1
    maximum_nodes: int | None = None
    prefer_few: bool = False
    memory_mib: int = 0
    memory_per: MemoryPer = MemoryPer.NODE
    memory_given: bool = False
    gres_per_node: tuple[Gres, ...] = ()
    gres_per_task: tuple[Gres, ...] = ()
    gres_per_job: tuple[Gres, ...] = ()
    required: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    constraints: str = ""
    exclusive: bool = False
    kill_on_node_fail: bool = True
    begin: float = 0.0
    licenses: Mapping[str, int] = dataclasses.field(default_factory=dict)
    reservation: str = ""
    minutes: int | None = None
    priority: int | None = None
    nice: int = 0
    hold: bool = False
    texts: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def candidates(self) -> bool:
        """Required nodes are a set to choose from if fewer nodes than names were explicitly requested."""
        return len(self.required) > self.minimum_nodes

    def text(self, name: str) -> str:
        """A field that Slurm stores, or shows as written."""
        return self.texts.get(name, "")

    @property
    def shape(self) -> object:
        """Two requests of equal shape start or wait alike; the identity of the requester is left out."""
        return (
            (self.partitions, self.tasks, self.tasks_per_node, self.cpus_per_task, self.minimum_cpus),
            self.minimum_nodes,
            (self.maximum_nodes, self.prefer_few, self.memory_mib, self.memory_per),
            (self.exclusive, self.minutes, self.reservation),
            (self.gres_per_node, self.gres_per_task, self.gres_per_job, tuple(self.licenses.items())),
            (self.required, self.excluded, self.constraints),
        )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The part of a job on one node. Slurm shows a count of 0 for `hidden` GPUs, which are held."""

    node: str
    cpus: int
    memory_mib: int
    cores: tuple[int, ...] = ()
    gres: tuple[Gres, ...] = ()
    hidden: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """The allocation of a job: its shares in the order of node names."""

    shares: tuple[Share, ...]
    partition: str
    whole: bool = False

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of the nodes."""
        return tuple(share.node for share in self.shares)

    @property
    def cpus(self) -> int:
        """All cpus together."""
        return sum(share.cpus for share in self.shares)


PENDING, RUNNING, SUSPENDED = "PENDING", "RUNNING", "SUSPENDED"
ALIVE = frozenset({PENDING, RUNNING, SUSPENDED})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SlurmJob:
    """One job, or one component of a heterogeneous one. Times are Unix seconds, 0 while unset."""

    job_id: int
    ask: RequestedJob
    user: str = "root"
    state: str = PENDING
    configuring: bool = False
    reason: str = NO_REASON
    description: str = ""
    priority: int = 1
    submitted: float = 0.0
    eligible: float = 0.0
    evaluated: float = 0.0
    started: float = 0.0
    ended: float = 0.0
    grant: Grant | None = None
    failed_node: str = ""
    leader: int = 0
    offset: int = 0
    components: tuple[int, ...] = ()
    sluid: str = ""
    #: The words that are shown in place of the state and its flags.
    shown: tuple[str, ...] = ()

    @property
    def pending(self) -> bool:
        return self.state == PENDING

    @property
    def running(self) -> bool:
        """Whether it holds resources."""
        return self.state in (RUNNING, SUSPENDED)

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.state not in ALIVE

    @property
    def held(self) -> bool:
        """Slurm holds a job by priority 0."""
        return self.priority == 0

    @property
    def deadline(self) -> float:
        """The end of its time limit."""
        return float("inf") if self.ask.minutes is None else self.started + self.ask.minutes * 60


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StartPlan:
    """When and where backfill plans to start a pending job."""

    start: float
    nodes: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PocketConfig:
    """The configuration of the pocket slurmctld; the defaults are those of the local cluster, with shorter delays."""

    cluster: str = "local"
    release: str = "26.05.5"
    default_user: str = "root"
    versions: tuple[str, ...] = ("v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45")
    minimum_job_age: float = 30.0
    maximum_job_count: int = 50_000
    first_job_id: int = 1
    highest_job_id: int = 67_043_328
    configuring_seconds: float = 0.0
    backfill: bool = True
    backfill_depth: int = 1
    down_delay: float = 0.05
    hang_delay: float = 0.05
    maximum_nodes: int = 10_000
    poison_on_signal: bool = True
    poison_on_shrink: bool = True
    hang_on_foreign_cancel: bool = True
    licenses: Mapping[str, int] = dataclasses.field(default_factory=lambda: {"matlab": 10, "ansys": 2})
    users: Mapping[str, int] = dataclasses.field(
        default_factory=lambda: {"root": 0, "slurm": 64030, "slurm-bridge": 5001, "alice": 5002, "bob": 5003}
    )
    operators: frozenset[str] = frozenset({"root", "slurm"})

    @property
    def external_components(self) -> bool:
        """Since 26.05.3 a job without a script may be heterogeneous."""
        return tuple(map(int, self.release.split("."))) >= (26, 5, 3)
