"""What the core asks of the outside."""

from collections.abc import Callable
from typing import Protocol

from slurm_bridge.families.yunikorn.queues.records import FitQuestion, News


class Clock(Protocol):
    """Time that tests can hold still. The core goes by Unix time, because asks are as old as what they stand for."""

    def wall(self) -> float: ...


class Callback(Protocol):
    """A resource manager, as the core calls it."""

    def update(self, news: News, /) -> None:
        """All results arrive here, in order."""

    def predicate(self, question: FitQuestion, /) -> str:
        """Why the node does not do, "" where it does. Asked by the pass of the partition, which waits for it."""


#: Called with what failed and why, where the caller goes on without it.
Report = Callable[[str, Exception], None]
