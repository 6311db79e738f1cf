"""The cache and requests of resource managers: what comes in is checked and kept, what goes is passed on."""

from slurm_bridge.families.yunikorn.queues import admission, events, node_search, partition_names, placement, records
from slurm_bridge.families.yunikorn.queues.committed import Application, CommittedPartition
from slurm_bridge.families.yunikorn.queues.events import Leave
from slurm_bridge.families.yunikorn.queues.ledger import Ledger, Telling
from slurm_bridge.families.yunikorn.queues.records import (
    Allocation,
    AllocationAsk,
    AllocationRelease,
    AnswerSubject,
    AskId,
    Eviction,
    Named,
    Thing,
    Update,
)
from slurm_bridge.families.yunikorn.queues.registrations import Configuring
from slurm_bridge.families.yunikorn.queues.tree import Queue

#: In the words of people.
_GANG = {
    node_search.UNSUPPORTED_SORT: "takes no gangs, because its applications are not sorted by fifo",
    node_search.LARGER_THAN_MAX: "has a maximum, there or above, that is smaller than the gang",
}


class Entering:
    """Under the lock of the ledger."""

    def __init__(self, ledger: Ledger, configuring: Configuring) -> None:
        self._ledger = ledger
        self._configuring = configuring

    def update(self, update: Update) -> None:
        """All of a request; what it comes to is told at once, what has to leave the scheduler first is told later."""
        telling = Telling()
        if update.configuration is not None:
            self._configuring.configure(update.rm, update.configuration, telling)
        for node in update.nodes:
            self._node(update.rm, node, telling)
        for application in update.applications:
            self._application(update.rm, application, telling)
        for allocation in update.standing:
            self._standing(update.rm, allocation, telling)
        for started in update.started:
            self._ledger.broadcast(events.Started(partition=started.partition, id=started))
        for ask in update.asks:
            self._ask(update.rm, ask, telling)
        for eviction in update.evicting:
            self._evicting(update.rm, eviction, telling)
        self._remove(update, telling)
        self._ledger.tell(update.rm, telling)
        if update.terminated:
            self._configuring.terminate(update.rm)

    # -- what comes in -----------------------------------------------------------------------------------------------

    def _partition(self, rm: str, subject: AnswerSubject, telling: Telling) -> CommittedPartition | None:
        partition = self._ledger.partitions.get(subject.partition)
        if partition is not None and partition.origin.rm == rm:
            return partition
        known = ", ".join(sorted(one.title for one in self._ledger.of(rm))) or "none"
        telling.reject(subject, f"partition {partition_names.own(rm, subject.partition)} is unknown; there are {known}")
        return None

    def _node(self, rm: str, node: records.NodeReport, telling: Telling) -> None:
        subject = AnswerSubject(thing=Thing.NODE, partition=node.partition, name=node.name)
        partition = self._partition(rm, subject, telling)
        if partition is None:
            return
        obstacle = admission.node_obstacle(node, partition, self._ledger.of(rm))
        if obstacle:
            telling.reject(subject, obstacle)
            return
        partition.put_node(node)
        self._ledger.broadcast(events.NodePut(partition=partition.name, node=node))
        telling.accept(subject)

    def _application(self, rm: str, application: records.Application, telling: Telling) -> None:
        subject = AnswerSubject(thing=Thing.APPLICATION, partition=application.partition, name=application.name)
        partition = self._partition(rm, subject, telling)
        if partition is None:
            return
        leaf = self._placed(partition, application)
        if isinstance(leaf, str):
            self._ledger.remember(rm, telling.reject(subject, leaf))
            return
        partition.add_application(application, leaf)
        self._ledger.broadcast(events.Added(partition=partition.name, application=application, queue=leaf.path))
        telling.accept(subject, queue=leaf.path)

    def _placed(self, partition: CommittedPartition, application: records.Application) -> Queue | str:
        """Its queue, or why it cannot enter."""
        obstacle = admission.application_obstacle(application, partition)
        if obstacle:
            return obstacle
        candidate = placement.ApplicationCandidate(
            user=application.user,
            groups=application.groups,
            queue=application.queue,
            tags=application.tags,
            forced=application.forced,
        )
        placed = placement.place(partition.root, partition.settings.rules, candidate)
        if isinstance(placed, placement.Rejected):
            return f"application {application.name}: {placed.why}"
        try:
            leaf = placed.queue or partition.leaf(placed.path)
        except ValueError as cannot:
            return f"application {application.name}: {cannot}"
        gang = node_search.gang_obstacle(leaf, application.placeholders)
        if gang:
            partition.retire(leaf)
            return f"application {application.name}: queue {leaf.path} {_GANG[gang]}"
        return leaf

    def _standing(self, rm: str, allocation: Allocation, telling: Telling) -> None:
        ask = allocation.ask
        subject = AnswerSubject(thing=Thing.ALLOCATION, partition=ask.partition, name=ask.application, key=ask.key)
        partition = self._partition(rm, subject, telling)
        if partition is None:
            return
        obstacle = admission.standing_obstacle(allocation, partition)
        if obstacle:
            telling.reject(subject, obstacle)
            return
        partition.commit(allocation)
        self._ledger.broadcast(events.StandingAllocation(partition=partition.name, allocation=allocation))
        telling.accept(subject)

    def _ask(self, rm: str, ask: AllocationAsk, telling: Telling) -> None:
        subject = AnswerSubject(thing=Thing.ASK, partition=ask.partition, name=ask.application, key=ask.key)
        partition = self._partition(rm, subject, telling)
        if partition is None:
            return
        obstacle = admission.ask_obstacle(ask, partition)
        if obstacle:
            telling.reject(subject, obstacle)
            return
        partition.applications[ask.application].asks[ask.key] = ask
        self._ledger.broadcast(events.AskAccepted(partition=partition.name, ask=ask))
        telling.accept(subject)

    def _evicting(self, rm: str, eviction: Eviction, telling: Telling) -> None:
        """It was asked for before, by a core that is no more; it is not asked for again."""
        victim, subject = eviction.victim, _subject(Thing.ALLOCATION, eviction.victim)
        partition = self._partition(rm, subject, telling)
        if partition is None:
            return
        ask = partition.waiting(eviction.asker) if eviction.asker else None
        if not partition.evict(victim) and (ask is None or partition.is_to_go(victim)):
            why = "is to go already" if partition.is_to_go(victim) else "does not stand"
            telling.reject(subject, f"allocation {victim.key} of application {victim.application}: {why}")
            return
        self._ledger.broadcast(events.ToGo(partition=partition.name, id=victim, ask=ask, nodes=eviction.nodes))

    # -- what goes ---------------------------------------------------------------------------------------------------

    def _remove(self, update: Update, telling: Telling) -> None:
        for release in update.releases:
            self._release(update.rm, release, telling)
        for spared in update.spared:
            self._spare(spared, refused=True)
        for excused in update.excused:
            self._spare(excused, refused=False)
        for withdrawn in update.withdrawn:
            self._withdraw(update.rm, withdrawn, telling)
        for named in update.removed_applications:
            self._leave(update.rm, Leave.APPLICATION, named, telling)
        for named in update.removed_nodes:
            self._leave(update.rm, Leave.NODE, named, telling)

    def _release(self, rm: str, release: AllocationRelease, telling: Telling) -> None:
        subject = _subject(Thing.ALLOCATION, release.id)
        partition = self._partition(rm, subject, telling)
        if partition is None:
            return
        application = partition.applications.get(release.id.application)
        if application is None or release.id.key not in application.allocations:
            telling.reject(subject, f"application {release.id.application} has no allocation {release.id.key}")
            return
        if self._goes(application, subject, telling):
            return
        self._ledger.leave(partition, Leave.ALLOCATION, release.id.application, release.id.key, release.why)

    def _withdraw(self, rm: str, withdrawn: AskId, telling: Telling) -> None:
        subject = _subject(Thing.ASK, withdrawn)
        partition = self._partition(rm, subject, telling)
        if partition is None:
            return
        application = partition.applications.get(withdrawn.application)
        if application is None or withdrawn.key not in application.asks:
            telling.reject(subject, f"application {withdrawn.application} has no waiting ask {withdrawn.key}")
            return
        if self._goes(application, subject, telling):
            return
        self._ledger.leave(partition, Leave.ASK, withdrawn.application, withdrawn.key)

    def _goes(self, application: Application, subject: AnswerSubject, telling: Telling) -> bool:
        """It is on its way out already: a second removal could meet what comes to have its key later."""
        if subject.key in application.going:
            telling.reject(subject, f"{subject.thing.value} {subject.key} of {subject.name} is leaving already")
            return True
        application.going.add(subject.key)
        return False

    def _leave(self, rm: str, leave: Leave, named: Named, telling: Telling) -> None:
        thing = Thing.NODE if leave is Leave.NODE else Thing.APPLICATION
        subject = AnswerSubject(thing=thing, partition=named.partition, name=named.name)
        partition = self._partition(rm, subject, telling)
        if partition is None:
            return
        known = (partition.nodes if leave is Leave.NODE else partition.applications).get(named.name)
        if known is None:
            telling.reject(subject, f"{thing.value} {named.name} is not in partition {partition.title}")
            return
        if known.leaving:
            telling.reject(subject, f"{thing.value} {named.name} is leaving already")
            return
        known.leaving = True
        self._ledger.leave(partition, leave, named.name)

    def _spare(self, spared: AskId, *, refused: bool) -> None:
        """Its room is no longer expected; one that is not being evicted is left alone."""
        partition = self._ledger.partitions.get(spared.partition)
        if partition is not None and partition.spare(spared):
            self._ledger.broadcast(events.ToGo(partition=partition.name, id=spared, spared=True, refused=refused))


def _subject(thing: Thing, one: AskId) -> AnswerSubject:
    return AnswerSubject(thing=thing, partition=one.partition, name=one.application, key=one.key)
