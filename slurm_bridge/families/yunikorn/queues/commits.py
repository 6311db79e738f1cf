"""The cache and what schedulers propose: bundles are committed proposal by proposal, and what has left them goes."""

from collections.abc import Callable, Mapping

from slurm_bridge.families.yunikorn.queues.committed import CommittedPartition
from slurm_bridge.families.yunikorn.queues.events import (
    Bundle,
    CommitEvent,
    Evicting,
    Leave,
    Leaving,
    NodesHeld,
    ProposalAnswer,
    Removed,
    ToGo,
)
from slurm_bridge.families.yunikorn.queues.ledger import Ledger, Telling
from slurm_bridge.families.yunikorn.queues.records import Allocation, AnswerSubject, AskId, Thing, Why


class Committing:
    """Under the lock of the ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        #: Which schedulers have let go of what is to leave.
        self._let_go: dict[Leaving, set[int]] = {}

    def handle(self, event: CommitEvent) -> None:
        """Whatever a scheduler sends."""
        match event:
            case Bundle():
                self._bundle(event)
            case Removed():
                self._removed(event)
            case Evicting():
                self._evict(event)
            case NodesHeld():
                self._held(event)

    # -- proposals ---------------------------------------------------------------------------------------------------

    def _bundle(self, bundle: Bundle) -> None:
        """Each proposal is accepted or refused for itself; the scheduler is told which, the others what they count."""
        partition, telling = self._current(bundle), Telling()
        for allocation in bundle.proposals:
            gone = f"partition {bundle.partition} is not the one any more for which it was proposed"
            refused = partition.obstacle(allocation) if partition else gone
            if partition is not None and not refused:
                partition.commit(allocation)
                telling.new.append(allocation)
            self._answer(bundle, allocation, refused)
        if partition is not None:
            self._ledger.tell(partition.origin.rm, telling)

    def _answer(self, bundle: Bundle, allocation: Allocation, refused: str) -> None:
        answer = ProposalAnswer(
            partition=bundle.partition,
            incarnation=bundle.incarnation,
            by=bundle.by,
            allocation=allocation,
            refused=refused,
        )
        for number, post in enumerate(self._ledger.schedulers):
            if number == bundle.by or not refused:
                post(answer)

    def _current(self, event: Bundle | Evicting | Leaving) -> CommittedPartition | None:
        partition = self._ledger.partitions.get(event.partition)
        return partition if partition is not None and partition.origin.incarnation == event.incarnation else None

    # -- preemption --------------------------------------------------------------------------------------------------

    def _evict(self, event: Evicting) -> None:
        """The resource manager is asked; a victim that is gone, or was asked for already, is left out.

        Nothing is evicted for an asker that waits no longer.
        """
        partition, telling = self._current(event), Telling()
        if partition is None:
            return
        for eviction in event.evictions:
            ask = partition.waiting(eviction.asker) if eviction.asker else None
            if eviction.asker is not None and ask is None:
                if not partition.is_to_go(eviction.victim):
                    self._ledger.broadcast(ToGo(partition=partition.name, id=eviction.victim, spared=True))
            elif partition.evict(eviction.victim):
                telling.evictions.append(eviction)
                self._ledger.broadcast(
                    ToGo(partition=partition.name, id=eviction.victim, ask=ask, nodes=eviction.nodes)
                )
        self._ledger.tell(partition.origin.rm, telling)

    def _held(self, event: NodesHeld) -> None:
        """Schedulers leave out what another one holds."""
        for number, post in enumerate(self._ledger.schedulers):
            if number != event.by:
                post(event)

    # -- what goes ---------------------------------------------------------------------------------------------------

    def _removed(self, event: Removed) -> None:
        """Once every scheduler has let go of it, it goes from here, and the resource manager is told."""
        done = self._let_go.setdefault(event.leaving, set())
        done.add(event.by)
        if len(done) < len(self._ledger.schedulers):
            return
        del self._let_go[event.leaving]
        partition, telling = self._current(event.leaving), Telling()
        if partition is not None:
            _GO[event.leaving.leave](partition, event.leaving, telling)
            self._ledger.tell(partition.origin.rm, telling)


def _application(partition: CommittedPartition, leaving: Leaving, telling: Telling) -> None:
    if leaving.name not in partition.applications:
        return
    for allocation in partition.remove_application(leaving.name):
        telling.free(partition.name, allocation, Why.APPLICATION_REMOVED)
    telling.release(AnswerSubject(thing=Thing.APPLICATION, partition=partition.name, name=leaving.name), leaving.why)


def _ask(partition: CommittedPartition, leaving: Leaving, telling: Telling) -> None:
    application = partition.applications.get(leaving.name)
    if application is None:
        return
    application.going.discard(leaving.key)
    if application.asks.pop(leaving.key, None) is not None:
        subject = AnswerSubject(thing=Thing.ASK, partition=partition.name, name=leaving.name, key=leaving.key)
        telling.release(subject, leaving.why)


def _allocation(partition: CommittedPartition, leaving: Leaving, telling: Telling) -> None:
    """It may have gone with its node meanwhile, and that has been told."""
    application = partition.applications.get(leaving.name)
    if application is None:
        return
    application.going.discard(leaving.key)
    gone = AskId(partition=partition.name, application=leaving.name, key=leaving.key)
    if leaving.key in application.allocations:
        telling.free(partition.name, partition.release(gone), leaving.why)


def _node(partition: CommittedPartition, leaving: Leaving, telling: Telling) -> None:
    if leaving.name not in partition.nodes:
        return
    for allocation in partition.remove_node(leaving.name):
        lost = tuple(node for node in allocation.nodes if node == leaving.name)
        telling.free(partition.name, allocation, Why.NODE_REMOVED, lost)
    telling.release(AnswerSubject(thing=Thing.NODE, partition=partition.name, name=leaving.name), leaving.why)


_GO: Mapping[Leave, Callable[[CommittedPartition, Leaving, Telling], None]] = {
    Leave.APPLICATION: _application,
    Leave.ASK: _ask,
    Leave.ALLOCATION: _allocation,
    Leave.NODE: _node,
}
