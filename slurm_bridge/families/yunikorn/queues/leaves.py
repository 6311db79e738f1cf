"""The applications of a leaf queue in its order, and why nothing came of them when they were last looked at.

As long as that stands, none of them has to be looked at again, whatever grows elsewhere:

    some fit no headroom            stands while none of their sizes fits
    some found no node              stands while no node has got room for one of their sizes
    some may not start              stands while the queues have as many applications as they may
    some are limited as their user  stands while nothing that limits count is given back
    anything else                   stands while nothing at all has grown
"""

import math
from collections.abc import Iterator

from slurm_bridge.families.yunikorn.queues import orders, priorities
from slurm_bridge.families.yunikorn.queues.applications import NEVER, Application, PendingAsk, Size
from slurm_bridge.families.yunikorn.queues.tree import Queue


class Obstacles:
    """What a leaf's applications met since it was opened last; one of each size stands for all of them."""

    __slots__ = ("limits", "other", "start", "unfit", "vain")

    def __init__(self) -> None:
        #: There is not as much left as they ask for.
        self.unfit: dict[tuple[Size, str], PendingAsk] = {}
        #: What was searched for in vain, and whether a node to hold was, too.
        self.vain: dict[Size, bool] = {}
        self.start = False
        #: What limits had given back when they first stopped an ask.
        self.limits: int | None = None
        self.other = False

    def limited(self, returned: int) -> None:
        """Limits refuse it to an ask. One that was stopped before may get what they have given back since."""
        if self.limits is None:
            self.limits = returned

    def in_vain(self, size: Size, *, reserving: bool) -> None:
        """No node has room for it, and none may be kept for it where it would."""
        self.vain[size] = reserving or self.vain.get(size, False)


class Leaf:
    """The applications of one leaf queue, in its order."""

    __slots__ = ("_order", "_priorities", "_said", "grown", "obstacles", "opened", "queue", "unsettled", "until")

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self._order: orders.Applications[Application] = orders.Applications(queue)
        #: How many applications wait with each priority, and with which one each of them does.
        self._priorities: dict[int, int] = {}
        self._said: dict[str, int] = {}
        #: Why nothing could be placed, up to which state of the partition and until when that stands.
        self.obstacles = Obstacles()
        self.grown = self.unsettled = -1
        self.until = -math.inf
        self.opened = 0

    def __len__(self) -> int:
        return len(self._said)

    def in_order(self) -> Iterator[Application]:
        """Those that wait for something."""
        return iter(self._order)

    def open(self) -> None:
        """All of its applications have to be looked at again."""
        self.obstacles = Obstacles()
        self.opened += 1
        self.until = -math.inf

    def wake(self, application: Application) -> None:
        """This one has to be looked at again."""
        application.blocked = NEVER
        self.until = -math.inf

    def put(self, application: Application) -> None:
        """A new one, or one that has changed: its place and that of the queue follow."""
        self._order.put(application)
        name, priority = application.name, application.priority
        if self._said.get(name) == priority:
            return
        self._forget(name)
        self._said[name] = priority
        self._priorities[priority] = self._priorities.get(priority, 0) + 1
        self._tell()

    def drop(self, application: Application) -> None:
        """It is gone."""
        self._order.drop(application)
        self._forget(application.name)
        self._tell()

    def _forget(self, name: str) -> None:
        said = self._said.pop(name, None)
        if said is None:
            return
        self._priorities[said] -= 1
        if not self._priorities[said]:
            del self._priorities[said]

    def _tell(self) -> None:
        highest = priorities.highest(self._priorities)
        if highest != self.queue.waiting:
            self.queue.set_waiting(highest)
