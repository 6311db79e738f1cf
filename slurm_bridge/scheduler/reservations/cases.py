"""What the record of a workload says of nodes that are kept for it, or were, and what is to be given back."""

import dataclasses

from slurm_bridge.model.names import NO_WORKLOAD, JobId, WorkloadKey
from slurm_bridge.scheduler.reservations.node_record import NodeRecord


@dataclasses.dataclass(slots=True, kw_only=True)
class ReservationCase:
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
    """All that the controller knows of one workload in one leadership; the next reads `kept` from the owner records.

    `number`: in the roll of those that it knows.
    """

    number: int
    kept: ReservationCase | None = None
    #: Nothing is kept for it until then: it has had its time, or no node would help it.
    rest_until: float = float("-inf")
    #: Nodes that were kept for it and were not free in time, or could not be kept for it.
    in_vain: frozenset[str] = frozenset()
