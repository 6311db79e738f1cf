"""What travels between proxy, cache and scheduler: frozen events, and the queues that carry them.

to the cache, from resource managers    Registered, Updated
to the cache, from the scheduler        Bundle, Removed, Evicting, Held
to the scheduler                        Configured, Dropped, Put, Added, Asked, Standing, Leaving, Answer, ToGo,
                                        Held, Started
to the proxy                            Told
"""

import collections
import dataclasses
import enum
from typing import Generic, TypeVar

from slurm_bridge.families.yunikorn.queues import records
from slurm_bridge.families.yunikorn.queues.config import documents
from slurm_bridge.families.yunikorn.queues.records import (
    Allocation,
    AllocationAsk,
    AskId,
    Eviction,
    News,
    Origin,
    Registration,
    Update,
)
from slurm_bridge.runtime import frozen_records

E = TypeVar("E")


class Leave(enum.Enum):
    """What is to go: from the scheduler first, so that nothing new comes of it, then from the cache."""

    APPLICATION = "application"
    ASK = "ask"
    ALLOCATION = "allocation"
    NODE = "node"


# -- to the cache, from resource managers ----------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """A resource manager is here, for the so-manieth time."""

    registration: Registration
    incarnation: int


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RequestUpdated:
    """A request of a resource manager, with partitions as they are called inside."""

    update: Update


# -- to the scheduler ------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    """The partition exists, and is configured so; another incarnation begins empty."""

    partition: str
    origin: Origin
    settings: documents.PartitionDocument


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """The partition is gone with all that was in it."""

    partition: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodePut:
    """A node, new or with other facts."""

    partition: str
    node: records.NodeReport


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """An application, in the queue where it was placed; the queue is made where it does not exist."""

    partition: str
    application: records.Application
    queue: str


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AskAccepted:
    """An ask that may be served."""

    partition: str
    ask: AllocationAsk


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StandingAllocation:
    """An allocation that is committed already, of any origin."""

    partition: str
    allocation: Allocation


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """An allocation has its nodes from the scheduler behind us."""

    partition: str
    id: AskId


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """Something is to go; `key` is that of the ask or allocation. No two have the same number."""

    partition: str
    incarnation: int
    number: int
    leave: Leave
    name: str
    key: str = ""
    why: records.Why = records.Why.ASKED


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ProposalAnswer:
    """What became of a proposal, and why not; an accepted one is for all schedulers."""

    partition: str
    incarnation: int
    by: int
    allocation: Allocation
    refused: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ToGo:
    """The manager is to evict this allocation, whichever scheduler wanted that; or it is `spared` after all.

    `ask` is the one that it goes for, `nodes` are held for that. `refused`: the manager could not.
    """

    partition: str
    id: AskId
    spared: bool = False
    refused: bool = False
    ask: AllocationAsk | None = None
    nodes: tuple[str, ...] = ()


# -- to the cache, from the scheduler --------------------------------------------------------------------------------


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """Allocations that a scheduler wants committed, each for itself."""

    partition: str
    incarnation: int
    by: int
    proposals: tuple[Allocation, ...]


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """It has left this scheduler."""

    by: int
    leaving: Leaving


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Evicting:
    """A scheduler wants these allocations gone; their room is held already."""

    partition: str
    incarnation: int
    evictions: tuple[Eviction, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodesHeld:
    """A scheduler keeps these nodes, and no others; the cache tells all others the same."""

    partition: str
    by: int
    nodes: frozenset[str]


# -- to the proxy ----------------------------------------------------------------------------------------------------


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """News for a resource manager; an earlier incarnation of it hears nothing any more."""

    rm: str
    incarnation: int
    news: News


CacheEvent = Registered | RequestUpdated
CommitEvent = Bundle | Removed | Evicting | NodesHeld
SchedulerEvent = (
    Configured
    | Dropped
    | NodePut
    | Added
    | AskAccepted
    | StandingAllocation
    | Leaving
    | ProposalAnswer
    | ToGo
    | NodesHeld
    | Started
)


class CoreEventQueue(Generic[E]):
    """Events in order, from any thread, for one that handles them."""

    def __init__(self) -> None:
        self._events: collections.deque[E] = collections.deque()
        self.put = self._events.append

    def __len__(self) -> int:
        return len(self._events)

    def take(self) -> tuple[E, ...]:
        """All that there is now; what is appended meanwhile stays for the next time. One at a time takes."""
        events = self._events
        if not events:
            return ()
        return tuple([events.popleft() for _ in range(len(events))])
