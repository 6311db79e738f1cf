"""The tree of queues: what each of them may use, what it uses, and what follows for one more.

Usage is kept up the path with every change: reading it costs nothing, changing it as much as the tree is deep. Every
change counts in `changes` of the queue and of all above it; what was worked out of a queue stands as long as it does.
"""

import enum
from collections.abc import Iterable, Iterator

from slurm_bridge.families.yunikorn.queues import amounts, priorities
from slurm_bridge.families.yunikorn.queues.amounts import Known
from slurm_bridge.families.yunikorn.queues.settings import QueueSettings, SortPolicy

SEPARATOR = "."


class State(enum.StrEnum):
    """What may happen in a queue."""

    ACTIVE = "active"
    DRAINING = "draining"  # what is there is served, nothing new is taken
    STOPPED = "stopped"  # nothing is served


class Queue:
    """One queue: its settings, its usage, what waits in it and how many applications it has.

    Usage is of one side, committed state or scheduler state, and one thread at a time changes it.
    """

    __slots__ = (
        "admin_acl",
        "allocated",
        "changes",
        "children",
        "fair_max",
        "guaranteed",
        "leaf",
        "lineage",
        "managed",
        "max",
        "max_applications",
        "measured",
        "name",
        "offset",
        "order",
        "parent",
        "path",
        "pending",
        "preempting",
        "preemption_delay",
        "preemption_policy",
        "priority",
        "priority_policy",
        "priority_sorting",
        "promised",
        "quota_preemption_delay",
        "rank",
        "running",
        "settings",
        "sort_policy",
        "state",
        "submit_acl",
        "waiting",
    )

    def __init__(
        self, name: str, parent: "Queue | None" = None, *, leaf: bool = False, settings: QueueSettings | None = None
    ) -> None:
        self.name = name
        self.parent = parent
        self.lineage: tuple[Queue, ...] = (self, *parent.lineage) if parent else (self,)
        self.path: str = f"{parent.path}{SEPARATOR}{name}" if parent else name
        self.leaf = leaf
        self.managed = True  # False: not configured, made for an application
        self.state = State.ACTIVE
        self.children: dict[str, Queue] = {}
        self.fair_max: Known = None
        self.measured: Known = None  # of a root without a maximum: the size of the cluster all the same
        self.allocated: dict[str, int] = {}
        self.preempting: dict[str, int] = {}
        self.pending: dict[str, int] = {}
        self.promised: dict[str, int] = {}  # free, and kept for the askers that preempted it
        self.running = 0
        self.waiting = priorities.NOTHING  # the highest priority below
        self.priority = priorities.NOTHING  # what is passed up of it
        self.changes = 0
        self.rank: tuple[int, tuple[float, float] | None] | None = None  # noted by `sorting`, with the `changes` then
        self.order: tuple[int, tuple[Queue, ...]] | None = None
        if parent is not None:
            if parent.leaf or name in parent.children:
                raise ValueError(f"queue {self.path}: {parent.path} is a leaf, or has a child of this name")
            parent.children[name] = self
        self.configure(settings or QueueSettings())

    def __repr__(self) -> str:
        return f"Queue({self.path})"

    # -- settings ----------------------------------------------------------------------------------------------------

    def configure(self, settings: QueueSettings) -> None:
        """Take over these settings; what those below are entitled to may follow from them."""
        self.settings = settings
        self.guaranteed = settings.guaranteed
        self.max = settings.max
        self.max_applications = settings.max_applications
        self.submit_acl = settings.submit_acl
        self.admin_acl = settings.admin_acl
        self.sort_policy = settings.sort_policy or (SortPolicy.FIFO if self.leaf else SortPolicy.FAIR)
        self.priority_sorting = settings.priority_sorting
        self.priority_policy = settings.priority_policy
        self.offset = settings.offset
        self.preemption_policy = settings.preemption_policy
        self.preemption_delay = settings.preemption_delay
        self.quota_preemption_delay = settings.quota_preemption_delay
        self._entitle()
        self.set_waiting(self.waiting)

    def resize(self, maximum: Known) -> None:
        """Only the maximum is another one: the root's is the size of the cluster, and changes with its nodes."""
        self.max = maximum
        self._entitle()

    def measure(self, size: Known) -> None:
        """Of a root that has no maximum: the size of the cluster, for shares, not as a limit."""
        self.measured = size
        self._entitle()

    def turn(self, state: State) -> None:
        """From now on it is in this state."""
        self.state = state
        self._count_change()

    def arrange(self, names: Iterable[str]) -> None:
        """Bring the children into this order; those that are not named follow in the order they have."""
        named = {name: self.children[name] for name in names if name in self.children}
        self.children = named | {name: child for name, child in self.children.items() if name not in named}
        self._count_change()

    def remove(self) -> None:
        """Take it out of the tree; ValueError while there is something in it."""
        if self.parent is None or self.children or self.allocated or self.pending or self.preempting:
            raise ValueError(f"queue {self.path}: cannot be removed: it is the root, or not empty")
        del self.parent.children[self.name]
        self.set_waiting(priorities.NOTHING)
        self._count_change()

    # -- usage -------------------------------------------------------------------------------------------------------

    def allocate(self, amount: Known) -> None:
        """So much more is in use, here and above."""
        for queue in self.lineage:
            amounts.add(queue.allocated, amount)
            queue.changes += 1

    def release(self, amount: Known) -> None:
        """The inverse of `allocate`."""
        self.allocate(amounts.times(amount, -1))

    def mark_preempting(self, amount: Known) -> None:
        """So much of what is in use is being taken back, here and above."""
        for queue in self.lineage:
            amounts.add(queue.preempting, amount)
            queue.changes += 1

    def unmark_preempting(self, amount: Known) -> None:
        """The inverse of `mark_preempting`."""
        self.mark_preempting(amounts.times(amount, -1))

    def add_pending(self, amount: Known) -> None:
        """So much more waits to be allocated, here and above."""
        for queue in self.lineage:
            amounts.add(queue.pending, amount)
            queue.changes += 1

    def remove_pending(self, amount: Known) -> None:
        """The inverse of `add_pending`."""
        self.add_pending(amounts.times(amount, -1))

    def set_waiting(self, highest: int) -> None:
        """This is now the highest priority that waits below; those above learn what they have to."""
        self.waiting = highest
        passed = priorities.passed_up(highest, self.offset, self.priority_policy)
        if passed == self.priority:
            return
        before, self.priority = self.priority, passed
        self._count_change()  # also above: the order of its siblings is another one
        if self.parent is not None and passed > self.parent.waiting:
            self.parent.set_waiting(passed)
        elif self.parent is not None and before == self.parent.waiting:
            self.parent.set_waiting(priorities.highest(child.priority for child in self.parent.children.values()))

    # -- applications ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """One running application more, here and above."""
        for queue in self.lineage:
            queue.running += 1

    def finish(self) -> None:
        """The inverse of `start`."""
        for queue in self.lineage:
            queue.running -= 1

    def _entitle(self) -> None:
        """Work out what it and all below are entitled to, after a change of settings."""
        for queue in downward(self):
            whole = queue.measured if queue.max is None else queue.max
            queue.fair_max = fair_max_under(queue.max, queue.parent.fair_max) if queue.parent else whole
            queue.changes += 1
        self._count_change()

    def _count_change(self) -> None:
        for queue in self.lineage:
            queue.changes += 1


# -- walks -----------------------------------------------------------------------------------------------------------


def downward(queue: Queue) -> Iterator[Queue]:
    """The queue and all below it, each before its children."""
    yield queue
    for child in queue.children.values():
        yield from downward(child)


def find(root: Queue, path: str) -> Queue | None:
    """The queue of this full path, None where there is none."""
    first, *names = path.split(SEPARATOR)
    here = root if first == root.name else None
    for name in names:
        here = here.children.get(name) if here else None
    return here


# -- limits ----------------------------------------------------------------------------------------------------------


def headroom(queue: Queue) -> Known:
    """What may still be allocated by the maxima of the queue and all above; None without any."""
    return headroom_under(queue, headroom(queue.parent) if queue.parent else None)


def max_headroom(queue: Queue) -> Known:
    """As `headroom`, without the root: its maximum is the size of the cluster at the moment."""
    return headroom_under(queue, max_headroom(queue.parent)) if queue.parent else None


def headroom_under(queue: Queue, above: Known) -> Known:
    """The headroom, where that of its parent is known: a walk down the tree asks each queue once."""
    if queue.max is None:
        return above
    used = amounts.plus(queue.allocated, queue.promised) if queue.promised else queue.allocated
    return amounts.smaller({kind: most - used.get(kind, 0) for kind, most in queue.max.items()}, above)


def effective_max(queue: Queue) -> Known:
    """The smallest maximum by type of the queue and all above; None without any."""
    return amounts.smaller(queue.max, effective_max(queue.parent)) if queue.parent else queue.max


def fair_max_under(maximum: Known, above: Known) -> Known:
    """Its own maximum replaces what it inherits type by type, even with more; with nothing on one side, as above."""
    return {**above, **maximum} if above and maximum else above


def can_run(queue: Queue) -> bool:
    """One more application may start."""
    for here in queue.lineage:  # noqa: SIM110 - every look at a leaf asks it; `all` is half as fast
        if here.max_applications and here.running >= here.max_applications:
            return False
    return True
