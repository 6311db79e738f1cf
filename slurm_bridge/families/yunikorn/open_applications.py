"""The applications that the core knows of us: which of them a workload becomes part of, and when they are over.

An application is there for as long as it has workloads. Each time that the first one enters it is another one to the
core: what leaves needs a while, and two must not be confused.
"""

import itertools
from collections.abc import Sequence

from slurm_bridge.families.yunikorn.demands import CoreDemand
from slurm_bridge.families.yunikorn.members import QueueApplication, QueueMember
from slurm_bridge.families.yunikorn.queues import acl
from slurm_bridge.model.names import WorkloadKey


class OpenApplications:
    """All of one manager, changed under its lock."""

    def __init__(self) -> None:
        self._by_name: dict[str, QueueApplication] = {}
        #: Those that take further workloads, by identity.
        self._open: dict[str, QueueApplication] = {}
        self._numbers = itertools.count(1)

    def named(self, name: str) -> QueueApplication | None:
        """The one of this name in the core."""
        return self._by_name.get(name)

    def all(self) -> Sequence[QueueApplication]:
        """Those that the core has, or is about to have."""
        return tuple(self._by_name.values())

    def taking(self, demand: CoreDemand) -> QueueApplication | None:
        """The one that a workload names. One without a queue of its own is for what runs: it takes no other."""
        found = self._open.get(demand.identity.key)
        return found if found is not None and found.queue != acl.RECOVERY else None

    def begin(self, demand: CoreDemand) -> QueueApplication:
        """A new one; others join it, unless they have another one to join."""
        made = QueueApplication(name=self._name(demand), first=demand)
        self._by_name[made.name] = made
        if self.taking(demand) is None:
            self._open[demand.identity.key] = made
        return made

    def alone(self, demand: CoreDemand) -> QueueApplication:
        """For a workload that the core is not told of."""
        return QueueApplication(name=self._name(demand), first=demand, refused=True)

    def ask_name(self, demand: CoreDemand) -> str:
        """A name for an ask that no other one has, ever."""
        return f"{demand.title}#{next(self._numbers)}"

    def leave(self, member: QueueMember) -> None:
        """It is no longer one of its asks, nor kept apart; the last one ends the application."""
        application = member.application
        application.members.pop(member.name, None)
        if member.apart_from is not None:
            member.apart_from.apart.pop(member.demand.uid, None)
        if not application.members:
            self.end(application)

    def close(self, application: QueueApplication) -> None:
        """Its only workload becomes something else, and may enter another queue as the same application."""
        key = application.first.identity.key
        if self._open.get(key) is application and len(application.members) == 1:
            del self._open[key]

    def reopen(self, application: QueueApplication) -> None:
        """Its workload is the same again."""
        self._open.setdefault(application.first.identity.key, application)

    def end(self, application: QueueApplication) -> None:
        """It takes no further workloads."""
        self._by_name.pop(application.name, None)
        key = application.first.identity.key
        if self._open.get(key) is application:
            del self._open[key]

    def released(self, application: QueueApplication) -> tuple[WorkloadKey, ...]:
        """The workloads that were kept apart from it, and may try again."""
        found = tuple(application.apart)
        application.apart.clear()
        return found

    def _name(self, demand: CoreDemand) -> str:
        return f"{demand.identity.title}#{next(self._numbers)}"
