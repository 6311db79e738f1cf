"""What a resource manager asks of the core and what it is told: frozen records, in the core's own words.

Partitions carry the resource manager's own names here; inside, the proxy has them as `<rm>_<name>`.
"""

import dataclasses
import enum
import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from slurm_bridge.families.yunikorn.queues.amounts import Amount, Known
from slurm_bridge.families.yunikorn.queues.config.documents import Document
from slurm_bridge.runtime import frozen_records


class NodeMode(enum.Enum):
    """What the room of a node is.

    FREE         what its allocations leave of its capacity; the root's maximum is the sum of all nodes
    ALLOCATABLE  its capacity, whatever is in use: another scheduler queues behind us; the root has no maximum
    """

    FREE = "free"
    ALLOCATABLE = "allocatable"


class Thing(enum.Enum):
    """What an answer is about."""

    APPLICATION = "application"
    ASK = "ask"
    ALLOCATION = "allocation"
    NODE = "node"
    CONFIGURATION = "configuration"


class Why(enum.Enum):
    """Why something is no longer there."""

    ASKED = "asked"
    PREEMPTED = "preempted"
    APPLICATION_REMOVED = "application-removed"
    NODE_REMOVED = "node-removed"


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """A workload root; `submitted` is Unix time, `placeholders` the total of all task groups of a gang.

    `node_sort` chooses its own order of nodes, "" leaves it to the partition. One that is `forced` runs already: where
    no queue takes it, it is recovered.
    """

    name: str
    partition: str
    queue: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    tags: Mapping[str, str] = dataclasses.field(default_factory=dict)
    submitted: float = 0.0
    node_sort: str = ""
    placeholders: Known = None
    forced: bool = False


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AskId:
    """The ask, or the allocation that came of it, of an application."""

    partition: str
    application: str
    key: str


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AllocationAsk:
    """Room for all members or for none: each takes `resource` on some node. `created` is Unix time.

    That may be by a clock that is ahead of this machine's: it waits at the latest since `told`, by the one of now.
    Asks of one `shape` are alike to every predicate; "" is like no other one.
    """

    key: str
    application: str
    partition: str
    resource: Amount
    members: int = 1
    priority: int = 0
    created: float = 0.0
    told: float = math.inf
    required_node: str = ""
    shape: str = ""
    allow_preempt_self: bool = True
    allow_preempt_other: bool = True
    originator: bool = False

    @property
    def id(self) -> AskId:
        return AskId(partition=self.partition, application=self.application, key=self.key)

    @property
    def since(self) -> float:
        """From when on it has waited."""
        return min(self.created, self.told)


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """An ask that has its nodes: one for each member."""

    ask: AllocationAsk
    nodes: tuple[str, ...]


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeReport:
    """What a node can hold; one that is not schedulable keeps what it has and gets nothing more.

    `size` is what it adds to the size of the cluster, None for its capacity. Where another scheduler queues behind us,
    and all nodes state it, others make room for guarantees when that is used up.
    """

    name: str
    partition: str
    capacity: Amount
    schedulable: bool = True
    size: Known = None


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """An application or a node of a partition."""

    partition: str
    name: str


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AllocationRelease:
    """An allocation that is over; PREEMPTED confirms an eviction that the core has asked for."""

    id: AskId
    why: Why = Why.ASKED


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RoomQuestion:
    """Which of these allocations have to go so that all members of the ask find room on nodes?

    Each of `victims` ends as a whole; they are named by their numbers. `may` says whether some of them may go together.
    """

    ask: AllocationAsk
    victims: Sequence[tuple[AskId, ...]]
    may: Callable[[Sequence[int]], bool]


#: The ways to make room, those that cost least first; None while it is not known what nodes have.
Ways = Iterable[tuple[int, ...]] | None
#: Asked where a resource manager shares out the nodes itself; None where nothing but sums is known of them.
Rooms = Callable[[RoomQuestion], Ways]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A resource manager and the partitions that its administrator has configured.

    With `predicates` the core asks it about every node before it allocates or reserves there, and remembers what was
    refused until something changes: when an answer would be another one now, the node is sent again. `rooms` is asked
    before something is evicted for an ask.
    """

    rm: str
    configuration: Document
    mode: NodeMode = NodeMode.FREE
    predicates: bool = False
    rooms: Rooms | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Whose partition it is, which one of those that had its name, and how it is scheduled."""

    rm: str
    incarnation: int
    mode: NodeMode = NodeMode.FREE
    predicates: bool = False
    rooms: Rooms | None = None


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """All that may change at once; handled in the order of the fields.

    `standing` is what runs already, for example after a restart: it is taken over whatever the limits say. Of these and
    of others, `started` have their nodes from the scheduler behind us: others make room first. `spared` are
    allocations that could not be evicted when the core asked for it, `excused` those that need not go. `evicting` are
    those that were asked for before a restart, even if the victim has gone: none is asked again, and their askers get
    what becomes free.
    """

    rm: str
    configuration: Document | None = None
    nodes: tuple[NodeReport, ...] = ()
    applications: tuple[Application, ...] = ()
    standing: tuple[Allocation, ...] = ()
    started: tuple[AskId, ...] = ()
    asks: tuple[AllocationAsk, ...] = ()
    evicting: tuple["Eviction", ...] = ()
    releases: tuple[AllocationRelease, ...] = ()
    spared: tuple[AskId, ...] = ()
    excused: tuple[AskId, ...] = ()
    withdrawn: tuple[AskId, ...] = ()
    removed_applications: tuple[Named, ...] = ()
    removed_nodes: tuple[Named, ...] = ()
    terminated: bool = False


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSubject:
    """What an answer is about: `name` is the application or the node, `key` the ask or allocation."""

    thing: Thing
    partition: str = ""
    name: str = ""
    key: str = ""


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """It is part of the state now; an application is in this queue."""

    subject: AnswerSubject
    queue: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """It is not part of the state, and why."""

    subject: AnswerSubject
    reason: str


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """It is no longer part of the state: the confirmation of a removal, or its consequence."""

    subject: AnswerSubject
    why: Why
    nodes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """The core wants this allocation gone, for this asker; its room is free once a PREEMPTED release confirms it.

    Without an asker the queue is over its maximum. `nodes` are held for the asker meanwhile. A manager that may restart
    keeps the record until the asker has its place or waits no longer, and hands it back.
    """

    victim: AskId
    asker: AskId | None
    message: str
    nodes: tuple[str, ...] = ()


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What happened, all of one moment and one resource manager."""

    accepted: tuple[Accepted, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    new: tuple[Allocation, ...] = ()
    released: tuple[Released, ...] = ()
    evictions: tuple[Eviction, ...] = ()


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FitQuestion:
    """May a member of this ask run on this node? `reserving`: the node is only to be kept for it.

    `preempting`: nothing is held yet, but would be once these allocations have been evicted; the answer is for a node
    that is `without` them.
    """

    ask: AllocationAsk
    node: str
    reserving: bool = False
    preempting: bool = False
    without: tuple[AskId, ...] = ()
