"""What an attempt is told, and what comes of it."""

import dataclasses
import enum
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Protocol

from slurm_bridge.families.yunikorn.queues import amounts
from slurm_bridge.families.yunikorn.queues.amounts import Amount, Known
from slurm_bridge.families.yunikorn.queues.tree import Queue

Key = Hashable


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AttemptAllocation:
    """An allocation: each of its members has `resource` on one of `nodes`, and none goes without the others.

    Allocations of one `group` end together, whichever of them is evicted; None is a group of its own. A larger
    `created` is newer. One that has not `started` waits with another scheduler, and is only taken back.
    """

    key: Key
    queue: Queue
    resource: Amount
    nodes: tuple[str, ...] = ("",)
    group: Key | None = None
    priority: int = 0
    created: float = 0.0
    allow_preempt_self: bool = True
    originator: bool = False
    required_node: str = ""
    preempted: bool = False
    released: bool = False
    started: bool = True


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Asker:
    """An ask that waits: each of its members takes `resource` on some node, or none does.

    `triggered`: something was preempted for it already; `last_check`: when an attempt was last made for it.
    """

    key: Key
    queue: Queue
    resource: Amount
    members: int = 1
    priority: int = 0
    created: float = 0.0
    required_node: str = ""
    allow_preempt_other: bool = True
    triggered: bool = False
    last_check: float = -math.inf

    @property
    def total(self) -> Amount:
        """What all members take together."""
        return amounts.times(self.resource, self.members)


class AttemptNode(Protocol):
    """A node as an attempt sees it; `free` is what its allocations leave of its capacity."""

    @property
    def name(self) -> str: ...
    @property
    def capacity(self) -> Amount: ...
    @property
    def free(self) -> Amount: ...
    @property
    def schedulable(self) -> bool: ...


class AttemptNodes(Protocol):
    """All nodes of a partition, by name and one after the other."""

    def get(self, name: str, /) -> AttemptNode | None: ...
    def __iter__(self) -> Iterator[AttemptNode]: ...


class Acceptable(Protocol):
    """Whether the node does for a member of the ask in all that is not amounts, once the victims are gone."""

    def __call__(self, node: str, victims: tuple[AttemptAllocation, ...], /) -> bool: ...


class WaysToRoom(Protocol):
    """Ways to make room for the ask where another scheduler shares out the nodes, those that cost least first.

    Each of `victims` ends as a whole; a way names them by their numbers, and `may` says whether some may go together.
    None while it is not known what nodes have.
    """

    def __call__(
        self, victims: Sequence[tuple[AttemptAllocation, ...]], may: Callable[[Sequence[int]], bool], /
    ) -> Iterable[tuple[int, ...]] | None: ...


def any_node(_node: str, _victims: tuple[AttemptAllocation, ...], /) -> bool:
    """No predicates: every node does."""
    return True


def nobody(_node: str, /) -> bool:
    """No node is reserved."""
    return False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AttemptScene:
    """Where an attempt is made.

    `standing` has the allocations of a leaf queue; `held` whether a node is reserved for another one; `nodes_tried`
    that the ask was tried on every node as it is. `promised` is what other askers, whose victims are going right now,
    will take in their queues: a guarantee is not given twice.

    `guarded` adds to the rules what keeps the balance between queues: no queue ends below a guarantee that was met, no
    victim is evicted unless the ask has its place then, and victims take nothing back from the asker of their plan.

    `size` is what all of it must fit into where no node is ever full; None where nothing but queues and nodes has an
    end. `rooms` then knows the nodes: nothing is evicted unless it leaves some on which the ask fits.
    """

    standing: Callable[[Queue], Iterable[AttemptAllocation]]
    nodes: AttemptNodes
    acceptable: Acceptable = any_node
    held: Callable[[str], bool] = nobody
    nodes_tried: bool = False
    promised: tuple[tuple[Queue, Amount], ...] = ()
    guarded: bool = True
    size: Known = None
    rooms: WaysToRoom | None = None


class Reason(enum.StrEnum):
    """Why nothing is preempted. The last five are those of a guarded attempt, the last two where `rooms` is asked."""

    DOES_NOT_GUARANTEE = "does_not_guarantee"
    NO_NODE = "no_node"
    INSUFFICIENT = "insufficient"
    NO_VICTIMS = "no_victims"
    SHORTFALL = "shortfall"
    NOT_NEEDED = "not_needed"
    BELOW_GUARANTEE = "below_guarantee"
    TAKEN_BACK = "taken_back"
    NO_ROOM = "no_room"
    NOT_YET = "not_yet"


#: What is said of each, of an ask and its queue.
WORDS = {
    Reason.DOES_NOT_GUARANTEE: "queue {queue} has no guarantee left that covers {asker}",
    Reason.NO_NODE: "no node has victims whose room is enough for {asker}",
    Reason.INSUFFICIENT: "with the further victims it takes, queue {queue} would be over its guarantee",
    Reason.NO_VICTIMS: "there are no victims for {asker}",
    Reason.SHORTFALL: "all victims together are less than what {asker} asks for",
    Reason.NOT_NEEDED: "{asker} has its place without any victim",
    Reason.BELOW_GUARANTEE: "the victims for {asker} would leave a queue below its guarantee",
    Reason.TAKEN_BACK: "queue {queue} would be preempted for the victims of {asker} in turn",
    Reason.NO_ROOM: "no victims leave nodes on which {asker} fits",
    Reason.NOT_YET: "it is not known yet what nodes have for {asker}",
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """Evict the victims, in this order, for this asker; `nodes` are to be held for it first, one for each member.

    Without an asker the queue named by `queue` is over its maximum.
    """

    asker: Key | None
    queue: str
    nodes: tuple[str, ...]
    victims: tuple[AttemptAllocation, ...]
    message: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRefused:
    """Nothing is preempted for this asker."""

    asker: Key | None
    reason: Reason
    message: str


Outcome = Planned | AttemptRefused


def refused(asker: Asker, reason: Reason) -> AttemptRefused:
    """The refusal in words."""
    message = WORDS[reason].format(asker=asker.key, queue=asker.queue.path)
    return AttemptRefused(asker=asker.key, reason=reason, message=message)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ImaginedNode:
    """A node with other amounts than those it has, or that stands for itself."""

    name: str
    capacity: Amount
    free: Amount
    schedulable: bool = True


def room(
    name: str, capacity: Amount, standing: Iterable[AttemptAllocation], *, schedulable: bool = True
) -> ImaginedNode:
    """A node of this capacity with these allocations, each as often as it names the node."""
    free: Amount = dict(capacity)
    for one in standing:
        free = amounts.minus(free, amounts.times(one.resource, one.nodes.count(name)))
    return ImaginedNode(name=name, capacity=capacity, free=free, schedulable=schedulable)


class ImaginedNodes:
    """Nodes by name, some of them in the place of others."""

    __slots__ = ("_behind", "_rooms")

    def __init__(self, rooms: Iterable[AttemptNode], behind: AttemptNodes | None = None) -> None:
        self._rooms = {one.name: one for one in rooms}
        self._behind = behind

    def get(self, name: str) -> AttemptNode | None:
        found = self._rooms.get(name)
        return self._behind.get(name) if found is None and self._behind is not None else found

    def __iter__(self) -> Iterator[AttemptNode]:
        if self._behind is None:
            yield from self._rooms.values()
            return
        for node in self._behind:
            yield self._rooms.get(node.name, node)
