"""Giving back what Slurm keeps for workloads that need it no more: for certain, and also what an earlier life left."""

import dataclasses
from collections.abc import Collection, Iterator

import msgspec

from slurm_bridge.model.job import Done, Outcome, Phase, Refusal, Refused, Unknown
from slurm_bridge.model.names import NO_WORKLOAD, WorkloadKey
from slurm_bridge.model.placeholder import Certainty, Placeholder
from slurm_bridge.scheduler import withheld
from slurm_bridge.scheduler.queue import Queue
from slurm_bridge.scheduler.tools import Tools
from slurm_bridge.scheduler.withholding import AGAIN

#: There is nobody any more who could leave.
_GONE = frozenset({Refusal.OVER, Refusal.NO_SUCH_JOB})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Debt:
    """A reservation to be given back, and whose job has to leave it first. `priority` is to be the job's again."""

    name: str
    uid: WorkloadKey = NO_WORKLOAD
    priority: int | None = None


class Returning:
    """Used by one thread at a time."""

    def __init__(self, tools: Tools, queue: Queue) -> None:
        self._tools, self._queue = tools, queue
        self._owed: dict[str, Debt] = {}
        #: Those that were tried in vain wait until then.
        self._pauses: dict[str, float] = {}
        self._swept = False

    def begin(self) -> None:
        """A leadership begins."""
        self._owed.clear()
        self._pauses.clear()
        self._swept = False

    def owe(self, debt: Debt) -> None:
        """It is to be given back."""
        self._owed[debt.name] = debt

    def owes(self, name: str) -> bool:
        """It is still to be given back."""
        return name in self._owed

    @property
    def owing(self) -> bool:
        """Something is left to do."""
        return bool(self._owed)

    @property
    def due(self) -> tuple[Debt, ...]:
        """What is to be done now."""
        now = self._tools.clock.now()
        return tuple(debt for name, debt in self._owed.items() if now >= self._pauses.get(name, now))

    def settle(self, debt: Debt) -> None:
        """Its job leaves, then the reservation goes; for as long as that fails it is owed.

        One that Slurm will not remove goes by itself: nobody prolongs it. A job that stays in there keeps it from being
        removed (2055), and waits on when it has gone.
        """
        self._pauses[debt.name] = self._tools.clock.now() + AGAIN
        stay = [one for one in self._inside(debt) if not self._leave(debt, one)]
        if not stay and not _open(self._tools.slurm.unreserve(debt.name)):
            self._owed.pop(debt.name, None)
            self._pauses.pop(debt.name, None)
            # Until they are read again its nodes look reserved, which closes them to everybody.
            self._tools.refresh_facts()

    def _inside(self, debt: Debt) -> Iterator[Placeholder]:
        """Jobs that say that nodes are kept for them, are in there, or are the first of all: as Slurm says now.

        What was not answered may have been done, and ids come back for others after a crash.
        """
        for known in self._tools.table.of(debt.uid):
            one = self._tools.mirror.look(known.job_id, known.owner, tell=False) if known.alive else None
            if one is None or not one.alive:
                continue
            entered = one.view is not None and one.view.reservation == debt.name
            first = one.view is not None and debt.priority is not None and one.view.priority == withheld.FIRST
            if one.owner.reserved or entered or first:
                yield one

    def _leave(self, debt: Debt, one: Placeholder) -> bool:
        """It keeps its nodes where it has some, and its place in Slurm's queue is its own again where it waits.

        A refusal is final only where there is no such job any more: whoever is the first of all would stay it for ever.
        The place is given back as a number, and does not age: to have it worked out anew forgets what the job was given
        by annotation or by an administrator, and may put it behind everybody.
        """
        says = withheld.read(one.owner.reserved)
        before = says.priority if says is not None and says.priority is not None else debt.priority
        if one.view is not None and one.view.held:
            # Whoever holds it has given it another one.
            before = None
        owner = msgspec.structs.replace(one.owner, reserved="")
        outcome = self._tools.slurm.assign(one.job_id, owner, "", before if one.phase is Phase.PENDING else None)
        self._tools.mirror.look(one.job_id, one.owner, tell=False)
        self._queue.activate(debt.uid, urgent=True)
        return isinstance(outcome, Done) or (isinstance(outcome, Refused) and outcome.why in _GONE)

    def find(self, needed: Collection[str]) -> None:
        """Whoever says that nodes are kept for him, and has no part in what goes on now.

        It has started while nobody looked; or a late order, of the leader before or of our own, has brought its record
        back.
        """
        for one in self._tools.table.kept_for():
            debt = Debt(name=withheld.name(one.owner), uid=one.owner.key)
            known = self._owed.get(debt.name)
            if one.certainty is Certainty.SEEN and debt.uid not in needed and (known is None or not known.uid):
                self._owed[debt.name] = debt

    def sweep(self, needed: Collection[str]) -> None:
        """Once: reservations of ours that no job speaks of, because an earlier life ended between the two."""
        if self._swept:
            return
        mine = withheld.prefix(self._tools.config.rules.cluster_id)
        found = [one.name for one in self._tools.slurm.reservations() if one.name.startswith(mine)]
        for name in found:
            if name not in needed:
                self._owed.setdefault(name, Debt(name=name))
        self._swept = True


def _open(outcome: Outcome) -> bool:
    """It has to be tried again: nobody knows whether it was done, or it could not be done just now."""
    return isinstance(outcome, Unknown) or (isinstance(outcome, Refused) and outcome.why is Refusal.BUSY)
