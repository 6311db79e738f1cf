"""What is tried first: children of a queue, applications of a leaf, asks of an application, and nodes.

Keys are worked out once per change and compared as they are, so that the order of many costs as much as its changes.
"""

import bisect
import enum
import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

from slurm_bridge.families.yunikorn.queues import amounts
from slurm_bridge.families.yunikorn.queues.amounts import Amount, Known
from slurm_bridge.families.yunikorn.queues.settings import SortPolicy
from slurm_bridge.families.yunikorn.queues.tree import Queue, State

#: One in so many applications may change before all are sorted again.
_FEW = 8

#: Scores of nodes are compared to this digit.
_DIGITS = 9


# -- queues ----------------------------------------------------------------------------------------------------------


def sorted_queues(parent: Queue) -> tuple[Queue, ...]:
    """The children in which something waits and that are not stopped, in the order of the parent's policy.

    The answer is kept until something changes below the parent, and the rank of each child until it changes itself.
    """
    if parent.order is None or parent.order[0] != parent.changes:
        parent.order = parent.changes, tuple(_sorted_queues(parent))
    return parent.order[1]


def _sorted_queues(parent: Queue) -> Iterable[Queue]:
    ranked = [(rank, child) for child in parent.children.values() if (rank := _rank(parent, child)) is not None]
    if len(ranked) == 1:
        # Mostly one waits while the others have what they asked for.
        return (ranked[0][1],)
    ranked.sort(key=_first)
    if parent.sort_policy is SortPolicy.FIFO:
        return (child for _, child in ranked)
    tied = ([child for _, child in group] for _, group in itertools.groupby(ranked, key=_first))
    return itertools.chain.from_iterable(_larger_pending_first(group) for group in tied)


def _first(pair: tuple[tuple[float, float], Queue]) -> tuple[float, float]:
    return pair[0]


def _rank(parent: Queue, child: Queue) -> tuple[float, float] | None:
    """What sorts a child before what it has pending; None where nothing of it is served."""
    if child.rank is None or child.rank[0] != child.changes:
        rank: tuple[float, float] | None = None
        if child.state is not State.STOPPED and amounts.is_positive(child.pending):
            priority = -child.priority
            if parent.sort_policy is SortPolicy.FIFO:
                rank = (priority, 0) if parent.priority_sorting else (0, 0)
            else:
                share = amounts.fair_share(child.allocated, child.guaranteed, child.fair_max)
                rank = (priority, share) if parent.priority_sorting else (share, priority)
        child.rank = child.changes, rank
    return child.rank[1]


def _larger_pending_first(tied: list[Queue]) -> list[Queue]:
    """Among equals, those of which more waits; stable where neither has more of everything.

    Mostly one has at least as much of every type as the next: then the sum tells, which is far cheaper.
    """
    by_sum = sorted(tied, key=lambda queue: sum(queue.pending.values()), reverse=True)
    if all(amounts.fit_in(less.pending, more.pending) for more, less in itertools.pairwise(by_sum)):
        return by_sum
    return sorted(tied, key=functools.cmp_to_key(_compare_pending))


def _compare_pending(left: Queue, right: Queue) -> int:
    """-1 where more waits in the left one; pending resources are positive here, so that fitting says it."""
    return amounts.fit_in(left.pending, right.pending) - amounts.fit_in(right.pending, left.pending)


# -- applications and their asks -------------------------------------------------------------------------------------


class Application(Protocol):
    """An application, as far as its place in a leaf depends on it; `priority` is the highest of its asks."""

    @property
    def allocated(self) -> Amount: ...
    @property
    def pending(self) -> Amount: ...
    @property
    def priority(self) -> int: ...
    @property
    def submitted(self) -> float: ...


class OrderedAsk(Protocol):
    """An ask, as far as its place in its application depends on it."""

    @property
    def priority(self) -> int: ...
    @property
    def created(self) -> float: ...


A = TypeVar("A", bound=Application)

#: Sorts applications, or asks, of the same policy.
Key = tuple[Any, ...]


def application_key(application: Application, policy: SortPolicy, *, by_priority: bool, total: Known) -> Key:
    """Where it stands among those of the same leaf, whose guaranteed resources are the total."""
    first: Any = application.submitted
    if policy is SortPolicy.FAIR:
        first = amounts.share_key(amounts.shares(application.allocated, total))
    return (-application.priority, first) if by_priority else (first, -application.priority)


def ask_key(ask: OrderedAsk) -> tuple[int, float]:
    """Where it stands among those of the same application: by priority, then age."""
    return (-ask.priority, ask.created)


class Applications(Generic[A]):
    """The applications of a leaf in their order; only those that changed are sorted again.

    Every change of one is reported with `put`; a change of the leaf's settings is noticed. What is iterated over stays
    as it is until the next one begins to iterate, so that a pass may change what it goes through.
    """

    def __init__(self, leaf: Queue) -> None:
        self._leaf = leaf
        self._settings = leaf.settings
        self._arrivals = itertools.count()
        self._arrived: dict[A, int] = {}
        self._places: dict[A, tuple[Key, int, A]] = {}
        self._order: list[tuple[Key, int, A]] = []
        self._changed: dict[A, None] = {}

    def __len__(self) -> int:
        return len(self._arrived)

    def __iter__(self) -> Iterator[A]:
        """Those for which something waits, in order."""
        self._settle()
        return (place[-1] for place in self._order)

    def put(self, application: A) -> None:
        """It is new here, or something of it changed."""
        if application not in self._arrived:
            self._arrived[application] = next(self._arrivals)
        self._changed[application] = None

    def drop(self, application: A) -> None:
        """It is no longer here."""
        self._arrived.pop(application, None)
        self._changed[application] = None

    def _settle(self) -> None:
        """Bring what changed to its place: each on its own, or all at once where that is cheaper."""
        if self._settings is not self._leaf.settings:
            self._settings = self._leaf.settings
            self._changed |= dict.fromkeys(self._arrived)
        changed, self._changed = self._changed, {}
        if len(changed) * _FEW < len(self._order):
            for application in changed:
                self._move(application)
        elif changed:
            for application in changed:
                self._place(application)
            self._order = sorted(self._places.values())

    def _move(self, application: A) -> None:
        old = self._places.get(application)
        if old is not None:
            del self._order[bisect.bisect_left(self._order, old)]
        new = self._place(application)
        if new is not None:
            bisect.insort(self._order, new)

    def _place(self, application: A) -> tuple[Key, int, A] | None:
        """Work out its place; None where nothing of it waits, or where it is gone."""
        arrived, leaf = self._arrived.get(application), self._leaf
        if arrived is None or not amounts.is_positive(application.pending):
            self._places.pop(application, None)
            return None
        key = application_key(application, leaf.sort_policy, by_priority=leaf.priority_sorting, total=leaf.guaranteed)
        place = self._places[application] = (key, arrived, application)
        return place


# -- nodes -----------------------------------------------------------------------------------------------------------


class NodePolicy(enum.StrEnum):
    """Which nodes are tried first: those of which least is used, or most."""

    FAIR = "fair"
    BINPACKING = "binpacking"


#: How much each type counts in the score of a node, where it is not configured.
WEIGHTS: Mapping[str, float] = {"vcore": 1.0, "memory": 1.0}


def node_policy(text: str) -> NodePolicy:
    """The policy of this name; an empty or unknown one is fair."""
    return next((policy for policy in NodePolicy if policy.value == text), NodePolicy.FAIR)


def node_score(
    capacity: Amount, allocated: Amount, policy: NodePolicy, weights: Mapping[str, float] | None = None
) -> float:
    """The weighted part of the node that is used, or for binpacking what is missing to 1; the lowest is tried first.

    Types that have no weight, or of which there is none and none is used, do not count.
    """
    used = [
        (weight, allocated.get(kind, 0) / whole if whole else math.inf)
        for kind, weight in (weights or WEIGHTS).items()
        if weight and (whole := capacity.get(kind)) is not None and (whole or allocated.get(kind))
    ]
    counted = sum(weight for weight, _ in used)
    usage = sum(weight * share for weight, share in used) / counted if counted else 0.0
    return 1 - usage if policy is NodePolicy.BINPACKING else usage


def node_key(score: float, name: str) -> tuple[float, str]:
    """Sorts nodes: scores that differ by less than the last digit that counts are equal, and the name decides."""
    return (round(score, _DIGITS), name)
