"""The cache: the committed state of all partitions under one lock, and the two queues of events that change it.

Adding goes from resource managers through here to the schedulers. Removing passes through here to the schedulers first,
so that nothing new comes of what goes, and is done here once all of them have let go. Proposals are accepted or refused
one by one, each against the state that the one before it has left.
"""

from collections.abc import Callable
from typing import TypeVar

from slurm_bridge.families.yunikorn.queues import ledger
from slurm_bridge.families.yunikorn.queues.commits import Committing
from slurm_bridge.families.yunikorn.queues.events import CacheEvent, CommitEvent, CoreEventQueue, Registered
from slurm_bridge.families.yunikorn.queues.intake import Entering
from slurm_bridge.families.yunikorn.queues.ledger import Ledger
from slurm_bridge.families.yunikorn.queues.ports import Clock, Report
from slurm_bridge.families.yunikorn.queues.registrations import Configuring

E = TypeVar("E")


class CoreCache:
    """One queue for what resource managers send and one for what schedulers do, so that neither waits for the other."""

    def __init__(self, clock: Clock, report: Report) -> None:
        self.from_managers: CoreEventQueue[CacheEvent] = CoreEventQueue()
        self.from_schedulers: CoreEventQueue[CommitEvent] = CoreEventQueue()
        self.ledger = Ledger(clock)
        self._report = report
        self._configuring = Configuring(self.ledger)
        self._entering = Entering(self.ledger, self._configuring)
        self._committing = Committing(self.ledger)

    @property
    def rejected(self) -> tuple[ledger.RejectedApplication, ...]:
        """The applications that were rejected last, the oldest first."""
        with self.ledger.lock:
            return tuple(self.ledger.rejected)

    @property
    def has_events(self) -> bool:
        """One of the queues holds something."""
        return bool(self.from_managers or self.from_schedulers)

    def handle(self) -> None:
        """All events of both queues."""
        self._handle(self.from_managers, self._from_manager)
        self._handle(self.from_schedulers, self._committing.handle)

    def _handle(self, queue: CoreEventQueue[E], handle: Callable[[E], None]) -> None:
        for event in queue.take():
            try:
                with self.ledger.lock:
                    handle(event)
            except Exception as error:  # noqa: BLE001 - one event must not take those behind it along
                self._report(f"cache: {type(event).__name__}", error)

    def _from_manager(self, event: CacheEvent) -> None:
        if isinstance(event, Registered):
            self._configuring.register(event)
        else:
            self._entering.update(event.update)
