"""The cases of the reservation controller: one record for each workload that nodes are kept for, or were."""

import dataclasses
from collections.abc import Callable

from slurm_bridge.model.names import NO_WORKLOAD, JobId, WorkloadKey
from slurm_bridge.scheduler.reservations.node_record import NodeRecord


@dataclasses.dataclass(slots=True, kw_only=True)
class Reservation:
    """Nodes that are kept for one workload and its job.

        HELD       the nodes that would hold the workload and are the first to be free are held: others of ours keep
                   away
        RESERVED   Slurm's reservation keeps all other jobs away, too (`reserved`); where Slurm refuses it (`refused`),
                   the job is the first in its queue instead
        ASSIGNED   the job enters the reservation, and its owner record says which nodes, and until when: a restart
                   reads it there
        OVER       used (the job has nodes), withdrawn or timed out: the job leaves, the nodes are free to all

        named by the hook ──► HELD ──► RESERVED ──► ASSIGNED ──► OVER ──► released
                                │         │ ▲ lapsed   │           ▲
        restart ───────────────►┘         └─┴──────────┴───────────┘
                                withdrawn: another job or none, nodes that it may not use, a reservation of others

    `vain`: these nodes cannot be kept for it; others may be. `silent`: its job takes no record. The reservation is
    made or prolonged when it is `due`, its job is written again when the `pause` is over; `refusals`: so many times in
    a row the job was not let in.
    """

    job_id: JobId
    name: str
    says: NodeRecord
    reserved: bool = False
    refused: bool = False
    silent: bool = False
    vain: bool = False
    due: float = 0.0
    pause: float = 0.0
    refusals: int = 0


@dataclasses.dataclass(slots=True, kw_only=True)
class Debt:
    """A reservation to be given back when it is `due`, after the job of its workload has left it.

    `priority` is to be the job's again.
    """

    name: str
    workload: WorkloadKey = NO_WORKLOAD
    priority: int | None = None
    due: float = float("-inf")


@dataclasses.dataclass(slots=True, kw_only=True)
class ReservationState:
    """All that the controller knows of one workload; a restart reads `kept` from the owner records."""

    kept: Reservation | None = None
    #: Nothing is kept for it until then: it has had its time, or no node would help it.
    rest_until: float = float("-inf")
    #: Nodes that were kept for it and were not free in time, or could not be kept for it.
    in_vain: frozenset[str] = frozenset()


class ReservationStore:
    """The records by workload, and what is to be given back by the reservation's name; for one thread at a time."""

    def __init__(self) -> None:
        self._states: dict[WorkloadKey, ReservationState] = {}
        self.debts: dict[str, Debt] = {}

    def get(self, key: WorkloadKey) -> ReservationState | None:
        """The record of this workload, None where nothing is known of it."""
        return self._states.get(key)

    def of(self, key: WorkloadKey) -> ReservationState:
        """To write in."""
        return self._states.setdefault(key, ReservationState())

    def kept(self) -> dict[WorkloadKey, Reservation]:
        """All that nodes are kept for."""
        return {key: state.kept for key, state in tuple(self._states.items()) if state.kept is not None}

    def begin(self) -> None:
        """A leadership begins: all of it is read anew."""
        self._states.clear()
        self.debts.clear()

    def drop_ended(self, exists: Callable[[WorkloadKey], bool], now: float) -> None:
        """Forget workloads that do not exist any more, and those of which nothing is left to know."""
        for key, state in tuple(self._states.items()):
            if not exists(key):
                state.in_vain = frozenset()
            if state.kept is None and not state.in_vain and state.rest_until <= now:
                del self._states[key]
