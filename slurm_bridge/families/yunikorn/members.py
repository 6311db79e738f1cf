"""The workloads that the core knows of us, in their applications, and which of them count as being ahead."""

import dataclasses
import enum
import math
from collections.abc import Collection, Iterable

from slurm_bridge.families.yunikorn.demands import CoreDemand
from slurm_bridge.model.names import WorkloadKey

#: A workload that was let in, and whose job was not seen by then, does not count as being ahead any more: Slurm refuses
#: it, or another hook holds it, and the others must not wait for that.
UNSEEN_SECONDS = 60.0


class Stage(enum.Enum):
    """How far a workload has come with the core."""

    ASKED = "it waits in its queue, or for the answer which one that is"
    GIVEN = "it may be submitted; its queue counts it as in use"
    REFUSED = "no queue takes it"


@dataclasses.dataclass(slots=True, kw_only=True, eq=False)
class QueueApplication:
    """What the core has as one application, `name` there; its user and its queue are those of its first workload."""

    name: str
    first: CoreDemand
    #: Where the core has put it.
    queue: str = ""
    #: The core does not have it: no queue takes it.
    refused: bool = False
    members: "dict[str, QueueMember]" = dataclasses.field(default_factory=dict, repr=False)
    #: Workloads that name it and may not be part of it.
    apart: dict[WorkloadKey, None] = dataclasses.field(default_factory=dict, repr=False)

    def refusal(self, demand: CoreDemand, *, by_queue: bool) -> str:
        """Why a workload cannot be one of its asks, "" where it can. `by_queue`: the queue that is asked for counts."""
        first, title = self.first, self.first.identity.title
        # The same service account may have become another user by a change of the configuration.
        if demand.user != first.user and demand.account != first.account:
            return (
                f"its pods run as user {demand.user}, but application {title} belongs to user {first.user}: "
                f"give all its pods the same service account, or name another application"
            )
        if by_queue and demand.queue and _path(demand.queue) not in (_path(first.queue), _path(self.queue)):
            where = self.queue or first.queue or "one that placement rules choose"
            return (
                f"it asks for queue {demand.queue}, but application {title} is in queue {where}: "
                f"ask for that queue, or name another application"
            )
        return ""


def _path(queue: str) -> str:
    """As the configuration compares them; a name alone is below the root."""
    lowered = queue.lower()
    return lowered if not lowered or lowered.startswith("root.") else f"root.{lowered}"


@dataclasses.dataclass(slots=True, kw_only=True, eq=False)
class QueueMember:
    """One workload. `name` is that of its ask in the core, `turn` says as the how manieth it was let in."""

    demand: CoreDemand
    name: str
    application: QueueApplication
    #: The application that it names and may not be part of.
    apart_from: QueueApplication | None = None
    #: What it was let in as before: its job stands for that, which counts until a queue takes what it has become.
    held: "QueueMember | None" = dataclasses.field(default=None, repr=False)
    #: When the core was first told of it, by the clock of this machine.
    since: float = math.inf
    stage: Stage = Stage.ASKED
    why: str = ""
    turn: int = 0
    #: Slurm has, or had, a job of it.
    placed: bool = False
    #: All its pods have nodes, as the core has been told.
    started: bool = False
    #: When it was asked whether any node would take it, by Unix time.
    looked: float = -math.inf
    #: Why the last attempt to evict others for it found no nodes that would have room for it then.
    roomless: str = ""
    #: Nodes on which that attempt found room, and until when no other workload counts on it; longer while others go.
    room: frozenset[str] = frozenset()
    room_until: float = -math.inf
    #: One that came later and asks for less has started before it.
    passed: bool = False

    def stands_for(self, demand: CoreDemand) -> bool:
        """Nothing has changed of what the core was told. What nodes have counts where it is not decided yet."""
        if self.stage is Stage.REFUSED:
            # It is asked for again with whatever has changed.
            return self.demand == demand
        decided = self.stage is Stage.GIVEN
        as_before = (self.demand.total, self.demand.problem) == (demand.total, demand.problem)
        return self.demand.same(demand) and (decided or as_before)

    @property
    def queue(self) -> str:
        """The queue of its application, "" before there is one."""
        return self.application.queue


def pass_by(started: QueueMember, waiting: Iterable[QueueMember | None]) -> None:
    """Those that were let in before it, and ask for more of something, see it come by.

    Slurm has put a workload behind equal ones that pass it: priorities exist for that.
    """
    for one in waiting:
        if one is not None and one.turn < started.turn:
            less = started.demand.total
            one.passed = one.passed or any(less.get(kind, 0) < most for kind, most in one.demand.total.items())


class Ahead:
    """Workloads in Slurm, or on the way there, that have not started: by ask, and how long that is believed."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def enter(self, name: str, now: float, most: int) -> bool:
        """Whether there is a place for one more, which it then has; 0 is any number."""
        if name not in self._until and most and self.count(now) >= most:
            return False
        self._until.setdefault(name, now + UNSEEN_SECONDS)
        return True

    def seen(self, name: str) -> None:
        """Slurm has a job of it: it is ahead until that starts."""
        self._until[name] = math.inf

    def rename(self, old: str, new: str) -> None:
        """The same workload has another name; nothing where it is not ahead."""
        if old in self._until:
            self._until[new] = self._until.pop(old)

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""
        return tuple(self._until)

    def leave(self, name: str) -> bool:
        """It has started, or is gone; whether it was there."""
        return self._until.pop(name, None) is not None

    def expire(self, now: float) -> bool:
        """Drop workloads of which nothing was seen; whether there are any."""
        late = [name for name, until in self._until.items() if until <= now]
        for name in late:
            del self._until[name]
        return bool(late)

    def count(self, now: float, but: Collection[str] = ()) -> int:
        """How many there are beside these."""
        return sum(until > now and name not in but for name, until in tuple(self._until.items()))
