"""A scheduler: one queue of events, from which each partition's lane gets its own."""

from slurm_bridge.families.yunikorn.queues import events
from slurm_bridge.families.yunikorn.queues.events import CoreEventQueue, SchedulerEvent
from slurm_bridge.families.yunikorn.queues.lane import Lane, Setting

#: Those that name the incarnation that they are for.
_OF_ONE = (events.ProposalAnswer, events.Leaving)
#: Those of which more is asked than whose they are.
_OTHERS = (events.Configured, events.Dropped, *_OF_ONE)


class Scheduler:
    """Its own state of every partition, apart from the cache and from other schedulers."""

    def __init__(self, setting: Setting) -> None:
        self.events: CoreEventQueue[SchedulerEvent] = CoreEventQueue()
        self.lanes: dict[str, Lane] = {}
        self._setting = setting

    def handle(self) -> None:
        """All events, also those of the partitions."""
        self.route()
        for lane in tuple(self.lanes.values()):
            lane.handle()

    def route(self) -> None:
        """Hand on every event that has come in."""
        for event in self.events.take():
            lane = self.lanes.get(event.partition)
            if lane is not None and event.__class__ not in _OTHERS:
                lane.inbox.put(event)
            elif isinstance(event, events.Configured) and (lane is None or lane.origin != event.origin):
                self.lanes[event.partition] = Lane(event.partition, event.origin, event.settings, self._setting)
            elif isinstance(event, events.Dropped):
                self.lanes.pop(event.partition, None)
            elif lane is not None and not (
                # Answers and removals for an earlier partition of the name are dropped.
                isinstance(event, _OF_ONE) and event.incarnation != lane.origin.incarnation
            ):
                lane.inbox.put(event)
