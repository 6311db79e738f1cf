"""Release: what Slurm keeps for workloads that need it no more is given back for certain, of earlier lives, too."""

from collections.abc import Collection, Iterator

import msgspec

from slurm_bridge.model.job import Done, Outcome, Phase, Refusal, Refused, Unknown
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.placeholder import Certainty, Placeholder
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.queue import WorkQueue
from slurm_bridge.scheduler.reservations import node_record
from slurm_bridge.scheduler.reservations.acquire import AGAIN
from slurm_bridge.scheduler.reservations.cases import Debt
from slurm_bridge.scheduler.reservations.store import ReservationStore

#: There is no job any more that could leave.
_GONE = frozenset({Refusal.OVER, Refusal.NO_SUCH_JOB})


class Releaser:
    """Used by one thread at a time."""

    def __init__(self, context: SchedulerContext, queue: WorkQueue, store: ReservationStore) -> None:
        self._context, self._queue, self._store = context, queue, store
        self._swept = False

    def begin(self) -> None:
        """A leadership begins."""
        self._swept = False

    @property
    def due(self) -> tuple[Debt, ...]:
        """What is to be done now."""
        now = self._context.clock.now()
        return tuple(debt for debt in self._store.debts.values() if now >= debt.due)

    def release(self, debt: Debt) -> None:
        """Give it back, now or later."""
        self._store.debts[debt.name] = debt
        self.settle(debt)

    def settle(self, debt: Debt) -> None:
        """Its job leaves, then the reservation is removed; for as long as that fails it stays in the store.

        One that Slurm will not remove ends by itself: nothing prolongs it. A job that stays in there keeps it from
        being removed (2055), and goes on waiting when it has gone.
        """
        debt.due = self._context.clock.now() + AGAIN
        stay = [one for one in self._inside(debt) if not self._leave(debt, one)]
        if not stay and not _open(self._context.slurm.unreserve(debt.name)):
            self._store.debts.pop(debt.name, None)
            # Until they are read again its nodes look reserved, which closes them to all workloads.
            self._context.refresh_facts()

    def _inside(self, debt: Debt) -> Iterator[Placeholder]:
        """Jobs that say that nodes are kept for them, are in there, or are the first of all: as Slurm says now.

        What was not answered may have been done, and ids come back for others after a crash.
        """
        for known in self._context.table.of(debt.workload):
            one = self._context.mirror.look(known.job_id, known.owner, tell=False) if known.alive else None
            if one is None or not one.alive:
                continue
            entered = one.view is not None and one.view.reservation == debt.name
            first = one.view is not None and debt.priority is not None and one.view.priority == node_record.FIRST
            if one.owner.reserved or entered or first:
                yield one

    def _leave(self, debt: Debt, one: Placeholder) -> bool:
        """It keeps its nodes where it has some, and its place in Slurm's queue is its own again where it waits.

        A refusal is final only where there is no such job any more: a job that is the first of all would stay so for
        ever. The place is given back as a number, and does not age: to have it worked out anew forgets what the job was
        given by annotation or by an administrator, and may put it behind all others.
        """
        says = node_record.read(one.owner.reserved)
        before = says.priority if says is not None and says.priority is not None else debt.priority
        if one.view is not None and one.view.held:
            # The hold has given it another one.
            before = None
        owner = msgspec.structs.replace(one.owner, reserved="")
        outcome = self._context.slurm.assign(one.job_id, owner, "", before if one.phase is Phase.PENDING else None)
        self._context.mirror.look(one.job_id, one.owner, tell=False)
        self._queue.activate(debt.workload, urgent=True)
        return isinstance(outcome, Done) or (isinstance(outcome, Refused) and outcome.why in _GONE)

    def find(self, needed: Collection[WorkloadKey]) -> None:
        """Jobs whose records say that nodes are kept for them, although no case is under way.

        Such a job has started while no daemon was running; or a late order, of the leader before or of our own, has
        brought its record back.
        """
        for one in self._context.table.kept_for():
            name, key = node_record.name(one.owner), one.owner.key
            if one.certainty is Certainty.SEEN and key not in needed:
                debt = self._store.debts.setdefault(name, Debt(name=name))
                debt.workload = debt.workload or key

    def sweep(self, needed: Collection[str]) -> None:
        """Once: reservations of ours that no job speaks of, because an earlier life ended between the two."""
        if self._swept:
            return
        mine = node_record.prefix(self._context.config.rules.cluster_id)
        found = [one.name for one in self._context.slurm.reservations() if one.name.startswith(mine)]
        for name in found:
            if name not in needed:
                self._store.debts.setdefault(name, Debt(name=name))
        self._swept = True


def _open(outcome: Outcome) -> bool:
    """It has to be tried again: it may have been done or not, or it could not be done just now."""
    return isinstance(outcome, Unknown) or (isinstance(outcome, Refused) and outcome.why is Refusal.BUSY)
