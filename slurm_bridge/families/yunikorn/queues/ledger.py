"""What the two sides of the cache share: committed partitions, registered resource managers, and messages for them."""

import collections
import dataclasses
import itertools
import threading
from collections.abc import Callable, Sequence

from slurm_bridge.families.yunikorn.queues.committed import CommittedPartition
from slurm_bridge.families.yunikorn.queues.events import Leave, Leaving, SchedulerEvent, Told
from slurm_bridge.families.yunikorn.queues.ports import Clock
from slurm_bridge.families.yunikorn.queues.records import (
    Accepted,
    Allocation,
    AnswerSubject,
    Eviction,
    News,
    Registration,
    Rejected,
    Released,
    Thing,
    Why,
)

#: So many rejected applications are kept to be shown.
REMEMBERED = 1_000


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Manager:
    """A resource manager that is registered."""

    registration: Registration
    incarnation: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RejectedApplication:
    """An application that was not taken, kept to be shown; `at` is Unix time."""

    at: float
    rm: str
    rejected: Rejected


class Telling:
    """News while they are collected."""

    def __init__(self) -> None:
        self._accepted: list[Accepted] = []
        self._rejected: list[Rejected] = []
        self.new: list[Allocation] = []
        self._released: list[Released] = []
        self.evictions: list[Eviction] = []

    def __bool__(self) -> bool:
        """There is something to tell."""
        return bool(self._accepted or self._rejected or self.new or self._released or self.evictions)

    def accept(self, subject: AnswerSubject, queue: str = "") -> None:
        """It is part of the state now."""
        self._accepted.append(Accepted(subject=subject, queue=queue))

    def reject(self, subject: AnswerSubject, reason: str) -> Rejected:
        """It is not, and why."""
        rejected = Rejected(subject=subject, reason=reason)
        self._rejected.append(rejected)
        return rejected

    def release(self, subject: AnswerSubject, why: Why) -> None:
        """It is no longer part of the state."""
        self._released.append(Released(subject=subject, why=why))

    def free(self, partition: str, allocation: Allocation, why: Why, nodes: tuple[str, ...] = ()) -> None:
        """An allocation is over, or what it had on these nodes."""
        ask = allocation.ask
        subject = AnswerSubject(thing=Thing.ALLOCATION, partition=partition, name=ask.application, key=ask.key)
        self._released.append(Released(subject=subject, why=why, nodes=nodes or allocation.nodes))

    def news(self) -> News:
        """All of it, frozen."""
        return News(
            accepted=tuple(self._accepted),
            rejected=tuple(self._rejected),
            new=tuple(self.new),
            released=tuple(self._released),
            evictions=tuple(self.evictions),
        )


#: Takes an event and returns at once.
Post = Callable[[SchedulerEvent], None]


class Ledger:
    """Every use of it holds the lock, for one event at most and never during a call to the outside."""

    def __init__(self, clock: Clock) -> None:
        self.lock = threading.Lock()
        self.partitions: dict[str, CommittedPartition] = {}
        self.managers: dict[str, Manager] = {}
        self.rejected: collections.deque[RejectedApplication] = collections.deque(maxlen=REMEMBERED)
        self.schedulers: tuple[Post, ...] = ()
        self._tell: Callable[[Told], None]
        self._leavings = itertools.count()
        self._clock = clock

    def connect(self, schedulers: Sequence[Post], tell: Callable[[Told], None]) -> None:
        """Connects its listeners; once, before the first event."""
        self.schedulers = tuple(schedulers)
        self._tell = tell

    def leave(
        self, partition: CommittedPartition, leave: Leave, name: str, key: str = "", why: Why = Why.ASKED
    ) -> None:
        """Every scheduler is to let go of it."""
        leaving = Leaving(
            partition=partition.name,
            incarnation=partition.origin.incarnation,
            number=next(self._leavings),
            leave=leave,
            name=name,
            key=key,
            why=why,
        )
        self.broadcast(leaving)

    def of(self, rm: str) -> tuple[CommittedPartition, ...]:
        """The partitions of a resource manager."""
        return tuple(one for one in self.partitions.values() if one.origin.rm == rm)

    def broadcast(self, event: SchedulerEvent) -> None:
        """Every scheduler hears it."""
        for post in self.schedulers:
            post(event)

    def tell(self, rm: str, telling: Telling) -> None:
        """The resource manager hears it, if there is news and it is registered."""
        manager = self.managers.get(rm)
        if manager is not None and telling:
            self._tell(Told(rm=rm, incarnation=manager.incarnation, news=telling.news()))

    def remember(self, rm: str, rejected: Rejected) -> None:
        """Keep it to be shown, as one of the last ones."""
        self.rejected.append(RejectedApplication(at=self._clock.wall(), rm=rm, rejected=rejected))
