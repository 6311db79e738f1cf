"""The cache and configurations: resource managers that come, come again and go, and partitions that follow them."""

from slurm_bridge.families.yunikorn.queues.committed import CommittedPartition
from slurm_bridge.families.yunikorn.queues.config import documents
from slurm_bridge.families.yunikorn.queues.config.problems import ConfigurationRefused
from slurm_bridge.families.yunikorn.queues.events import Configured, Dropped, Registered
from slurm_bridge.families.yunikorn.queues.ledger import Ledger, Manager, Telling
from slurm_bridge.families.yunikorn.queues.records import AnswerSubject, Origin, Thing, Why

_CONFIGURATION = AnswerSubject(thing=Thing.CONFIGURATION)


class Configuring:
    """Under the lock of the ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def register(self, event: Registered) -> None:
        """A resource manager is here. One that was here before is gone first, with everything that was its."""
        rm = event.registration.rm
        self._remove(rm)
        self._ledger.managers[rm] = Manager(registration=event.registration, incarnation=event.incarnation)
        telling = Telling()
        self.configure(rm, event.registration.configuration, telling)
        self._ledger.tell(rm, telling)

    def terminate(self, rm: str) -> None:
        """It is gone, and everything of it; the last thing that it hears is that."""
        self._remove(rm)
        telling = Telling()
        telling.release(_CONFIGURATION, Why.ASKED)
        self._ledger.tell(rm, telling)
        self._ledger.managers.pop(rm, None)

    def configure(self, rm: str, configuration: documents.Document, telling: Telling) -> None:
        """Follow a new configuration, all of it or nothing."""
        obstacle = self._obstacle(rm, configuration)
        if obstacle:
            telling.reject(_CONFIGURATION, obstacle)
            return
        named = {settings.name for settings in configuration.partitions}
        for partition in self._ledger.of(rm):
            if partition.settings.name not in named:
                self._drop(partition)
        for settings in configuration.partitions:
            known = self._ledger.partitions.get(settings.name)
            if known is None:
                self._create(rm, settings)
            else:
                known.follow(settings)
                self._announce(known)
        telling.accept(_CONFIGURATION)

    def _obstacle(self, rm: str, configuration: documents.Document) -> str:
        """Why a partition cannot follow: it is in use and would go, or it belongs to another manager."""
        new = {one.name: one for one in configuration.partitions}
        for partition in self._ledger.of(rm):
            if partition.name not in new and partition.applications:
                count = len(partition.applications)
                return f"partition {partition.title}: cannot go while it has {count} applications"
        try:
            for partition in self._ledger.of(rm):
                if partition.name in new:
                    partition.check(new[partition.name])
        except ConfigurationRefused as refused:
            return str(refused)
        for settings in configuration.partitions:
            known = self._ledger.partitions.get(settings.name)
            if known is not None and known.origin.rm != rm:
                return f"partition {settings.name}: is, inside, one of resource manager {known.origin.rm} already"
        return ""

    def _create(self, rm: str, settings: documents.PartitionDocument) -> None:
        manager = self._ledger.managers[rm]
        registration = manager.registration
        origin = Origin(
            rm=rm,
            incarnation=manager.incarnation,
            mode=registration.mode,
            predicates=registration.predicates,
            rooms=registration.rooms,
        )
        partition = CommittedPartition(settings.name, origin, settings)
        self._ledger.partitions[partition.name] = partition
        self._announce(partition)

    def _announce(self, partition: CommittedPartition) -> None:
        """Schedulers copy the configuration."""
        self._ledger.broadcast(
            Configured(partition=partition.name, origin=partition.origin, settings=partition.settings)
        )

    def _remove(self, rm: str) -> None:
        for partition in self._ledger.of(rm):
            self._drop(partition)

    def _drop(self, partition: CommittedPartition) -> None:
        del self._ledger.partitions[partition.name]
        self._ledger.broadcast(Dropped(partition=partition.name))
