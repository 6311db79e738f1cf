"""The core: resource managers register and update, and hear by their callback what came of it.

    resource manager ─ request ─► proxy ─► cache ─► scheduler
                     ◄─ news ──── proxy ◄─ cache ◄─ proposals, and what has left the scheduler

Every arrow is a queue of events: any thread may put one in, and one thread at a time handles them all.
"""

from slurm_bridge.families.yunikorn.queues.cache import CoreCache
from slurm_bridge.families.yunikorn.queues.lane import Lane, Setting
from slurm_bridge.families.yunikorn.queues.partition import AllocationRules
from slurm_bridge.families.yunikorn.queues.plans import Preemptor
from slurm_bridge.families.yunikorn.queues.ports import Callback, Clock, Report
from slurm_bridge.families.yunikorn.queues.proxy import Proxy
from slurm_bridge.families.yunikorn.queues.records import Registration, Update
from slurm_bridge.families.yunikorn.queues.scheduler import Scheduler


class QueueCore:
    """All parts, put together.

    With several schedulers each has its own state, and serves its own part of the applications: they propose at the
    same time, and where two want the same room the cache refuses one. `preemptor` plans in every partition, in
    the place of what its configuration says of preemption.
    """

    def __init__(
        self,
        clock: Clock,
        report: Report,
        *,
        rules: AllocationRules | None = None,
        preemptor: Preemptor | None = None,
        schedulers: int = 1,
    ) -> None:
        self.cache = CoreCache(clock, report)
        self._proxy = Proxy(self.cache.from_managers.put, report)
        self.schedulers = tuple(
            Scheduler(
                Setting(
                    clock=clock,
                    rules=rules or AllocationRules(),
                    send=self.cache.from_schedulers.put,
                    predicate=self._proxy.predicate,
                    preemptor=preemptor,
                    report=report,
                    number=number,
                    schedulers=schedulers,
                )
            )
            for number in range(schedulers)
        )
        self.cache.ledger.connect([one.events.put for one in self.schedulers], self._proxy.events.put)

    # -- the two entries ---------------------------------------------------------------------------------------------

    def register_resource_manager(self, request: Registration, callback: Callback) -> None:
        """It is known from now on; one of its name that was known before is forgotten with all that was its."""
        self._proxy.register(request, callback)

    def update(self, request: Update) -> None:
        """Take note of the request; what comes of it, the callback hears. NotFound for an unknown manager."""
        self._proxy.update(request)

    # -- work --------------------------------------------------------------------------------------------------------

    def lanes(self) -> tuple[Lane, ...]:
        """The part of every scheduler in every partition."""
        return tuple(lane for one in self.schedulers for lane in one.lanes.values())

    def drain(self) -> None:
        """Handle events until there are none; no pass is made."""
        self._handle()
        # In this order nothing is left but what was sent meanwhile, and that begins with the cache.
        while self.cache.has_events:
            self._handle()

    def settle(self) -> None:
        """Handle events and make passes until nothing comes of either."""
        self.drain()
        due = self.lanes()
        while sum(lane.run() for lane in due):
            self.drain()
            due = tuple(lane for lane in self.lanes() if not lane.settled)

    def _handle(self) -> None:
        """One round of all queues."""
        self.cache.handle()
        for scheduler in self.schedulers:
            scheduler.handle()
        self._proxy.deliver()
