"""The proxy of the resource managers: their requests go to the cache, their news come back from it.

It speaks their names of partitions outside and the core's inside. News of one manager are delivered in order by a
thread of its own: one that is slow to listen, or fails to, holds up no other.
"""

import dataclasses
import threading
from collections.abc import Callable

from slurm_bridge import errors
from slurm_bridge.families.yunikorn.queues import partition_names
from slurm_bridge.families.yunikorn.queues.events import CacheEvent, CoreEventQueue, Registered, RequestUpdated, Told
from slurm_bridge.families.yunikorn.queues.partition_names import Names
from slurm_bridge.families.yunikorn.queues.ports import Callback, Report
from slurm_bridge.families.yunikorn.queues.records import FitQuestion, News, Registration, Thing, Update
from slurm_bridge.runtime.threads import Supervisor

_LOOK_AROUND = 0.5


class _Door:
    """A registered resource manager and what it is still to hear."""

    def __init__(self, rm: str, incarnation: int, callback: Callback, report: Report) -> None:
        self.incarnation = incarnation
        self.callback = callback
        self.names = Names(rm)
        self._rm = rm
        self._report = report
        self._news: CoreEventQueue[News] = CoreEventQueue()
        self._busy = threading.Lock()

    def put(self, news: News) -> None:
        self._news.put(news)

    def deliver(self) -> None:
        """Everything that there is to hear; a callback that fails is reported, and has missed that."""
        with self._busy:
            for news in self._news.take():
                try:
                    self.callback.update(self.names.outside(news))
                except Exception as error:  # noqa: BLE001 - a manager that cannot listen must not stop the core
                    self._report(f"resource manager {self._rm}: callback", error)

    def serve(self, stop: threading.Event) -> None:
        while not stop.is_set():
            self._news.wait(_LOOK_AROUND)
            self.deliver()
        self.deliver()


class Proxy:
    """One queue of events, those for the resource managers."""

    def __init__(self, post: Callable[[CacheEvent], None], report: Report) -> None:
        self.events: CoreEventQueue[Told] = CoreEventQueue()
        self._post = post
        self._report = report
        self._lock = threading.Lock()
        self._doors: dict[str, _Door] = {}
        #: Terminated, and still to hear that; a thread of theirs tells them before it ends.
        self._gone: list[_Door] = []
        self._threads: dict[str, Supervisor] = {}
        self._incarnations = 0
        self._serving = False

    # -- requests ----------------------------------------------------------------------------------------------------

    def register(self, registration: Registration, callback: Callback) -> None:
        """From now on this callback hears what concerns the resource manager, and an earlier one nothing more."""
        rm = registration.rm
        if not rm:
            raise errors.Invalid("a resource manager has a name")
        inside = dataclasses.replace(
            registration, configuration=partition_names.document_inside(rm, registration.configuration)
        )
        with self._lock:
            self._incarnations += 1
            self._close(rm)
            self._doors[rm] = _Door(rm, self._incarnations, callback, self._report)
            self._open(rm)
            self._post(Registered(registration=inside, incarnation=self._incarnations))

    def update(self, update: Update) -> None:
        """Pass it on; NotFound where no manager of that name is registered."""
        with self._lock:
            door = self._doors.get(update.rm)
            if door is None:
                known = ", ".join(sorted(self._doors)) or "none"
                raise errors.NotFound(f"resource manager {update.rm}: is not registered; there are {known}")
            self._post(RequestUpdated(update=door.names.inside(update)))

    def predicate(self, rm: str, question: FitQuestion) -> str:
        """Ask the resource manager; one that is not there any more takes nothing."""
        door = self._doors.get(rm)
        if door is None:
            return f"resource manager {rm} is not registered"
        return door.callback.predicate(door.names.question(question))

    # -- news --------------------------------------------------------------------------------------------------------

    def route(self) -> None:
        """Hand on all news to their receivers, without waiting for any."""
        for told in self.events.take():
            with self._lock:
                self._hand_on(told)

    def _hand_on(self, told: Told) -> None:
        door = self._doors.get(told.rm)
        if door is None or door.incarnation != told.incarnation:
            return
        door.put(told.news)
        if any(one.subject.thing is Thing.CONFIGURATION for one in told.news.released):
            del self._doors[told.rm]
            if self._serving:
                self._close(told.rm)
            else:
                self._gone.append(door)

    def deliver(self) -> None:
        """Deliver all news, one after the other, without threads."""
        gone, self._gone = self._gone, []
        for door in (*self._doors.values(), *gone):
            door.deliver()

    def serve(self, stop: threading.Event) -> None:
        """Hand on news, and keep a thread for every resource manager, until it is told to stop."""
        with self._lock:
            self._serving = True
            for rm in self._doors:
                self._open(rm)
        while not stop.is_set():
            self.events.wait(_LOOK_AROUND)
            self.route()
        with self._lock:
            self._serving = False
            for rm in tuple(self._threads):
                self._close(rm)

    def _open(self, rm: str) -> None:
        if not self._serving:
            return
        threads = Supervisor(lambda name, error: self._report(name, error or RuntimeError(f"{name} ended")))
        threads.add(f"news {rm}", self._doors[rm].serve)
        self._threads[rm] = threads
        threads.start()

    def _close(self, rm: str) -> None:
        threads = self._threads.pop(rm, None)
        if threads is not None:
            threads.stop.set()
