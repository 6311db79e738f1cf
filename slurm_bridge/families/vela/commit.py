"""The commit: candidates in order until one accepts, conflicts on a node, and how often a pod may come back."""

import dataclasses
import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")

#: How many candidates are tried one after the other.
CANDIDATES = 3
#: How often a pod that found no node is tried again.
MAX_RETRIES = 10

FAILED = "FailedScheduling"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MultiBind(Generic[T]):
    """The nodes that one pod was offered to: `retries` of those tried have refused, `bound` has accepted."""

    tried: tuple[T, ...]
    bound: T | None

    @property
    def retries(self) -> int:
        """How many have refused."""
        return len(self.tried) - (self.bound is not None)


def multibind(candidates: Sequence[T], accepts: Callable[[T], bool], most: int = CANDIDATES) -> MultiBind[T]:
    """One after the other, at most so many; the first that accepts has it."""
    tried: list[T] = []
    for candidate in candidates[:most]:
        tried.append(candidate)
        if accepts(candidate):
            return MultiBind(tried=tuple(tried), bound=candidate)
    return MultiBind(tried=tuple(tried), bound=None)


def requeued(retry_count: int, max_retries: int = MAX_RETRIES) -> bool:
    """Whether a pod that failed once more goes back into the queue."""
    return retry_count < max_retries


def event(*, requeued: bool) -> str | None:
    """What its user hears of a failure: nothing while it is tried again."""
    return None if requeued else FAILED


class Committed(enum.Enum):
    """What became of one request to a node."""

    COMMITTED = "committed"
    UNSCHEDULABLE = "Unschedulable"
    INTERNAL_ERROR = "InternalError"


class NodeLedger:
    """What is still available on one node while requests are committed to it, in order."""

    def __init__(self, available: Mapping[str, int]) -> None:
        self.available = dict(available)

    def commit(self, limits: Mapping[str, int], *, readable: bool = True) -> Committed:
        """Take it if all of it fits. A node of unknown state has committed nothing."""
        if not readable:
            return Committed.INTERNAL_ERROR
        if self.lacking(limits):
            return Committed.UNSCHEDULABLE
        for name, amount in limits.items():
            if amount:
                self.available[name] = self.available[name] - amount
        return Committed.COMMITTED

    def lacking(self, limits: Mapping[str, int]) -> tuple[str, ...]:
        """Of what there is too little left."""
        return tuple(name for name, amount in limits.items() if amount > self.available.get(name, 0))
