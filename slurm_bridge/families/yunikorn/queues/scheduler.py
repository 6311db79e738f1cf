"""A scheduler: one queue of events, from which each partition's lane gets its own."""

import threading

from slurm_bridge.families.yunikorn.queues import events
from slurm_bridge.families.yunikorn.queues.events import CoreEventQueue, SchedulerEvent
from slurm_bridge.families.yunikorn.queues.lane import Lane, Setting
from slurm_bridge.runtime.threads import Supervisor

_LOOK_AROUND = 0.5
#: Those that name the incarnation that they are for.
_OF_ONE = (events.ProposalAnswer, events.Leaving)


class Scheduler:
    """Its own state of every partition, apart from the cache and from other schedulers."""

    def __init__(self, setting: Setting) -> None:
        self.events: CoreEventQueue[SchedulerEvent] = CoreEventQueue()
        self.lanes: dict[str, Lane] = {}
        self._setting = setting
        self._threads: dict[str, Supervisor] = {}
        self._serving = False

    def handle(self) -> None:
        """All events, also those of the partitions, without threads."""
        self.route()
        for lane in tuple(self.lanes.values()):
            lane.handle()

    def route(self) -> None:
        """Hand on every event that has come in. It waits for no partition."""
        for event in self.events.take():
            lane = self.lanes.get(event.partition)
            if isinstance(event, events.Configured) and (lane is None or lane.origin != event.origin):
                self._close(event.partition)
                self.lanes[event.partition] = Lane(event.partition, event.origin, event.settings, self._setting)
                self._open(event.partition)
            elif isinstance(event, events.Dropped):
                self._close(event.partition)
            elif lane is not None and _concerns(event, lane):
                lane.inbox.put(event)

    def _open(self, partition: str) -> None:
        """Let its passes run, if those of the others do."""
        if not self._serving:
            return
        threads = Supervisor(lambda name, error: self._setting.report(name, error or RuntimeError(f"{name} ended")))
        threads.add(f"pass {partition}", self.lanes[partition].serve)
        self._threads[partition] = threads
        threads.start()

    def _close(self, partition: str) -> None:
        """Forget it; a pass that is under way ends by itself, and what it still proposes is dropped."""
        self.lanes.pop(partition, None)
        threads = self._threads.pop(partition, None)
        if threads is not None:
            threads.stop.set()

    def serve(self, stop: threading.Event) -> None:
        """Hand on events, and keep a thread for the passes of every partition, until it is told to stop."""
        self._serving = True
        for partition in self.lanes:
            self._open(partition)
        while not stop.is_set():
            self.events.wait(_LOOK_AROUND)
            self.route()
        for threads in self._threads.values():
            threads.stop.set()
        self._serving = False


def _concerns(event: SchedulerEvent, lane: Lane) -> bool:
    """Answers and removals for an earlier partition of the name are dropped."""
    if isinstance(event, _OF_ONE):
        return event.incarnation == lane.origin.incarnation
    return True
