"""Placeholder jobs: what is asked of Slurm, what Slurm says of them, and how an order to Slurm can end."""

import dataclasses
import enum
import functools
from collections.abc import Iterable, Mapping

from slurm_bridge.model import hostlist
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.names import JobId
from slurm_bridge.runtime import frozen_records


class MemoryPer(enum.Enum):
    """What one amount of memory is counted for."""

    NODE = "node"
    CPU = "cpu"
    GPU = "gpu"


class GresPer(enum.Enum):
    """What one amount of generic resources is counted for."""

    NODE = "node"
    TASK = "task"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """An amount in MiB; Slurm counts it per node, per cpu or per GPU."""

    mib: int
    per: MemoryPer = MemoryPer.NODE


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Gres:
    """A generic resource, for example two `gpu` of type `v100`."""

    name: str
    count: int
    type: str = ""


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """One placeholder job, or one component of a heterogeneous one. Slurm decides what is None or empty.

    `minimum_nodes` and `maximum_nodes` stay None unless the user set them, the fewest nodes are tried first, or a hook
    has placed each pod: a maximum makes Slurm spread. With `tasks_per_node` each of so many nodes gets exactly so many
    tasks. Nodes are excluded, and never required. `components` are the further parts of a heterogeneous job, whose
    first part is this request itself; a component has no components.
    """

    name: str
    owner: Owner
    job_id: JobId | None = None
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    reservation: str | None = None
    wckey: str | None = None
    licenses: str | None = None
    constraints: str | None = None
    user: str | None = None
    group: str | None = None
    priority: int | None = None
    nice: int | None = None
    hold: bool = False
    time_limit_minutes: int | None = None
    minimum_nodes: int | None = None
    maximum_nodes: int | None = None
    tasks: int = 1
    tasks_per_node: int | None = None
    cpus_per_task: int = 1
    memory: Memory
    gres: tuple[Gres, ...] = ()
    gres_per: GresPer = GresPer.NODE
    exclusive: bool = False
    excluded_nodes: tuple[str, ...] = ()
    mcs_label: str = ""
    comment: str = ""
    components: tuple["JobRequest", ...] = ()

    @property
    def fixed(self) -> bool:
        """It takes just so many nodes."""
        return self.minimum_nodes is not None and self.minimum_nodes == self.maximum_nodes


class Phase(enum.Enum):
    """What the state words of a job mean for the workload that waits for it."""

    PENDING = "pending"
    STARTING = "starting"
    RUNNING = "running"
    STOPPED = "stopped"
    ENDED = "ended"
    UNKNOWN = "unknown"


#: Slurm's base states; exactly one of them is in every answer.
BASE_STATES: Mapping[str, Phase] = {
    "PENDING": Phase.PENDING,
    "RUNNING": Phase.RUNNING,
    "SUSPENDED": Phase.STOPPED,
    "COMPLETED": Phase.ENDED,
    "CANCELLED": Phase.ENDED,
    "FAILED": Phase.ENDED,
    "TIMEOUT": Phase.ENDED,
    "NODE_FAIL": Phase.ENDED,
    "PREEMPTED": Phase.ENDED,
    "BOOT_FAIL": Phase.ENDED,
    "DEADLINE": Phase.ENDED,
    "OUT_OF_MEMORY": Phase.ENDED,
}

#: Words beside RUNNING with which nothing may be bound yet.
NOT_YET = frozenset({"CONFIGURING", "POWER_UP_NODE", "STAGE_OUT", "RESIZING"})

#: Words beside any base state with which the job runs nothing now.
STOPPED = frozenset({"STOPPED", "SIGNALING"})


@dataclasses.dataclass(frozen=True, slots=True)
class JobState:
    """The state words of one job, as sent. Unknown words are kept, and never an error."""

    words: frozenset[str]
    #: COMPLETING beside RUNNING counts as ended, because the nodes are no longer ours. Asked for many times a state.
    phase: Phase = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "phase", _phase(self.words))


@functools.lru_cache(maxsize=1024)
def _phase(words: frozenset[str]) -> Phase:
    """Cached, because few different sets of words occur."""
    bases = [phase for word, phase in BASE_STATES.items() if word in words]
    if len(bases) != 1:
        return Phase.UNKNOWN
    if bases[0] is not Phase.RUNNING:
        return bases[0]
    if "COMPLETING" in words:
        return Phase.ENDED
    if words & NOT_YET:
        return Phase.STARTING
    return Phase.STOPPED if words & STOPPED else Phase.RUNNING


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One part of a heterogeneous job as `jobs/state` lists it."""

    offset: int
    state: JobState


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JobStates:
    """What `jobs/state` says of one id: one state, or one for each component. Jobs in the same state share it."""

    components: tuple[Component, ...]

    @property
    def phase(self) -> Phase:
        """All components together: as far as the one that is least far; one that ended alone shows in `torn`."""
        return self.state.phase

    @property
    def state(self) -> JobState:
        """The words of the component that is least far of those that live."""
        return least_far(component.state for component in self.components)

    @property
    def torn(self) -> bool:
        """A component has ended while another lives: the whole has to end."""
        ended = [component.state.phase is Phase.ENDED for component in self.components]
        return any(ended) and not all(ended)


_LEAST_FAR_FIRST = (Phase.UNKNOWN, Phase.PENDING, Phase.STARTING, Phase.STOPPED, Phase.RUNNING, Phase.ENDED)


def least_far(states: Iterable[JobState]) -> JobState:
    """The state of all components together: none has nodes as long as one has none."""
    return min(states, key=lambda one: _LEAST_FAR_FIRST.index(one.phase), default=JobState(frozenset()))


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """One job as Slurm describes it. `owner` is None when the job is not a placeholder of any bridge.

    `readable` is False where a list holds the job and nothing more can be read of it: then the job exists, and its
    owner and its state are unknown. `nodes` is None where the nodes that Slurm names cannot be read.

    A heterogeneous job is its leader, with `reason` and `held` of whichever component has something to say; it is
    `torn` when a component has ended, or is forgotten, while another lives. A component is only itself, and torn when
    its leader is forgotten.

    Times are Slurm's own clock in Unix seconds, 0 when unset; they are compared with each other, never with ours.
    """

    job_id: JobId
    name: str
    state: JobState
    reason: str = ""
    owner: Owner | None = None
    admin_comment: str = ""
    comment: str = ""
    user: str = ""
    user_id: int | None = None
    partition: str = ""
    account: str = ""
    qos: str = ""
    held: bool = False
    priority: int = 0
    submit_time: int = 0
    start_time: int = 0
    end_time: int = 0
    last_evaluation: int = 0
    time_limit_minutes: int | None = None
    nodes: tuple[str, ...] | None = ()
    required_nodes: tuple[str, ...] = ()
    excluded: str = ""
    constraints: str = ""
    minimum_nodes: int | None = None
    maximum_nodes: int | None = None
    tasks: int | None = None
    cpus: int | None = None
    cpus_per_task: int | None = None
    memory: Memory | None = None
    gres: str = ""
    licenses: str = ""
    mcs_label: str = ""
    reservation: str = ""
    exclusive: bool = False
    het_job_id: JobId | None = None
    het_offset: int = 0
    torn: bool = False
    sluid: str = ""
    readable: bool = True

    @classmethod
    def unreadable(cls, job_id: JobId) -> "JobView":
        """A job that Slurm has, and of which nothing more can be read."""
        return cls(job_id=job_id, name="", state=JobState(frozenset()), readable=False)

    @property
    def excluded_nodes(self) -> tuple[str, ...]:
        """The names in the hostlist `excluded`; a text that is no hostlist becomes one name that no node has.

        Expanded on demand only: thousands of waiting jobs may exclude thousands of nodes each.
        """
        try:
            return hostlist.expand(self.excluded)
        except ValueError:
            return (self.excluded,)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cores:
    """Cores of one node, a bit for each by its number, and how many the node has."""

    bits: int
    sockets: int
    per_socket: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeShare:
    """What a job got of one node. A GRES count of 0 is "unknown", never "none".

    `devices` are the GRES with their indices, as Slurm writes them: `gpu:v100:2(IDX:0-1)`; "" where it tells none.
    `cores` is None where it does not tell which.
    """

    node: str
    cpus: int
    memory_mib: int
    gres: tuple[Gres, ...] = ()
    devices: str = ""
    cores: Cores | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JobAllocation:
    """What a running job holds, in Slurm's node order."""

    job_id: JobId
    shares: tuple[NodeShare, ...]

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of the nodes, in the same order."""
        return tuple(share.node for share in self.shares)


class Refusal(enum.Enum):
    """Why Slurm refused, by what the caller does next."""

    INVALID = "the request cannot work as it is"
    FORBIDDEN = "the token may not do this"
    BUSY = "the controller is full or busy: later"
    EXISTS = "this job id, or the name of this node, is taken"
    STARTED = "the job is no longer pending"
    OVER = "the job has ended"
    NO_SUCH_JOB = "no such job"
    UNKNOWN_NODE = "the request names a node that Slurm does not know"
    OVERLAP = "another reservation has a node that the request names"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """Slurm did it."""

    job_id: JobId
    warnings: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Slurm did nothing, and says why. `code` is its error_number."""

    why: Refusal
    code: int
    message: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """Slurm may have done it. The caller must look before it repeats anything; `job_id` is where to look first."""

    message: str
    job_id: JobId | None = None


Outcome = Done | Refused | Unknown
