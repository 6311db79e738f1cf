"""The proxy of the resource managers: their requests go to the cache, their news come back from it.

It speaks their names of partitions outside and the core's inside. News of one manager are delivered in order: one that
fails to listen holds up no other.
"""

import dataclasses
import threading
from collections.abc import Callable

from slurm_bridge import errors
from slurm_bridge.families.yunikorn.queues import partition_names
from slurm_bridge.families.yunikorn.queues.events import CacheEvent, CoreEventQueue, Registered, RequestUpdated, Told
from slurm_bridge.families.yunikorn.queues.partition_names import Names
from slurm_bridge.families.yunikorn.queues.ports import Callback, Report
from slurm_bridge.families.yunikorn.queues.records import FitQuestion, Registration, Thing, Update


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Registered:
    """A resource manager, for the so-manieth time."""

    incarnation: int
    callback: Callback
    names: Names


class Proxy:
    """One queue of events, those for the resource managers."""

    def __init__(self, post: Callable[[CacheEvent], None], report: Report) -> None:
        self.events: CoreEventQueue[Told] = CoreEventQueue()
        self._post = post
        self._report = report
        self._lock = threading.Lock()
        self._managers: dict[str, _Registered] = {}
        self._incarnations = 0

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
            self._managers[rm] = _Registered(incarnation=self._incarnations, callback=callback, names=Names(rm))
            self._post(Registered(registration=inside, incarnation=self._incarnations))

    def update(self, update: Update) -> None:
        """Pass it on; NotFound where no manager of that name is registered."""
        with self._lock:
            known = self._managers.get(update.rm)
            if known is None:
                there = ", ".join(sorted(self._managers)) or "none"
                raise errors.NotFound(f"resource manager {update.rm}: is not registered; there are {there}")
            self._post(RequestUpdated(update=known.names.inside(update)))

    def predicate(self, rm: str, question: FitQuestion) -> str:
        """Ask the resource manager; one that is not there any more takes nothing."""
        known = self._managers.get(rm)
        if known is None:
            return f"resource manager {rm} is not registered"
        return known.callback.predicate(known.names.question(question))

    # -- news --------------------------------------------------------------------------------------------------------

    def deliver(self) -> None:
        """Hand all news to their receivers; one that was terminated is gone, and hears that last."""
        for told in self.events.take():
            with self._lock:
                known = self._managers.get(told.rm)
                if known is None or known.incarnation != told.incarnation:
                    continue
                if any(one.subject.thing is Thing.CONFIGURATION for one in told.news.released):
                    del self._managers[told.rm]
            try:
                known.callback.update(known.names.outside(told.news))
            except Exception as error:  # noqa: BLE001 - a manager that cannot listen must not stop the core
                self._report(f"resource manager {told.rm}: callback", error)
