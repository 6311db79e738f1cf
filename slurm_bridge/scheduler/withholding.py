"""Having Slurm keep nodes for a workload: a reservation with its job inside; where Slurm refuses, its job is first."""

import dataclasses

import msgspec
from loguru import logger

from slurm_bridge.model.job import Done, Phase, Refusal, Refused
from slurm_bridge.model.names import JobId, WorkloadKey
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.scheduler import withheld
from slurm_bridge.scheduler.queue import Queue
from slurm_bridge.scheduler.tools import Tools

#: A reservation lasts for so long, and is prolonged when so much of it is over.
SECONDS, RENEWED = 120, 40.0
#: What was not answered, or could not be done just now, is tried again after so long.
AGAIN = 5.0
#: A job that may not enter so many times in a row does not belong there.
MOST_REFUSED = 3

#: Slurm will say the same when it is asked again soon.
_FINAL = frozenset({Refusal.INVALID, Refusal.FORBIDDEN})


@dataclasses.dataclass(slots=True, kw_only=True)
class Case:
    """Nodes that are kept for one workload and its job. `reserved`: Slurm keeps them; `refused`: it keeps none for us.

    `vain`: these cannot be kept for it; others may be. The reservation is seen to when it is `due`, its job not before
    the `pause` is over; `refusals` is how often that was not let in.
    """

    job_id: JobId
    name: str
    says: withheld.Withheld
    reserved: bool = False
    refused: bool = False
    silent: bool = False
    vain: bool = False
    due: float = 0.0
    pause: float = 0.0
    refusals: int = 0


class Withholding:
    """Used by one thread at a time."""

    def __init__(self, tools: Tools, queue: Queue) -> None:
        self._tools, self._queue = tools, queue
        #: What Slurm has refused it for, by error number: said once.
        self._told: set[int] = set()

    def reserve(self, uid: WorkloadKey, case: Case, job: Placeholder) -> None:
        """Make it, or prolong it, when it is time. Without it, others of ours keep away all the same."""
        now, user = self._tools.clock.now(), job.view.user if job.view is not None else ""
        if now < case.due or not user:
            return
        outcome = self._tools.slurm.reserve(case.name, case.says.nodes, user, SECONDS)
        case.due = now + (RENEWED if isinstance(outcome, Done) else AGAIN)
        if isinstance(outcome, Done) and case.reserved:
            # Where Slurm was away for longer than it lasted this is another one, and its job is not in there.
            self._tools.mirror.look(job.job_id, job.owner, tell=False)
        case.reserved = case.reserved or isinstance(outcome, Done)
        if isinstance(outcome, Refused) and outcome.why in _FINAL:
            self._refused(uid, case, outcome)
            case.due = now + RENEWED
        elif isinstance(outcome, Refused) and outcome.why is Refusal.OVERLAP:
            # Whoever keeps them may need them soon: there is nothing in it that being the first would help with.
            case.vain = True
        elif isinstance(outcome, Refused) and outcome.why is Refusal.UNKNOWN_NODE:
            self._tools.refresh_facts()

    def _refused(self, uid: WorkloadKey, case: Case, outcome: Refused) -> None:
        case.reserved, case.refused = False, True
        if outcome.code not in self._told:
            self._told.add(outcome.code)
            text = "Slurm reserves no nodes, so that jobs that are not ours may take those that are kept: {}"
            logger.bind(workload=uid).warning("reservation: " + text, outcome.message)

    def assign(self, uid: WorkloadKey, case: Case, job: Placeholder) -> None:
        """Its job says what is kept for it, and enters the reservation, or is the first of all."""
        now = self._tools.clock.now()
        if case.silent or now < case.pause or not (case.reserved or case.refused):
            return
        view, name = job.view, case.name if case.reserved else ""
        if view is None or (job.owner.reserved == case.says.text and view.reservation == name):
            return
        case.pause = now + AGAIN
        # Ids come back for others after a crash, and a job that is held has another priority than its own.
        known, view = self._tools.mirror.look(job.job_id, job.owner, tell=False), None
        if known is None or known.phase is not Phase.PENDING or (view := known.view) is None or view.held:
            return
        if case.refused and not case.reserved and case.says.priority is None:
            case.says = dataclasses.replace(case.says, priority=view.priority)
            self._tools.states.of(uid).leadership.reserved = case.says.text
        owner = msgspec.structs.replace(known.owner, reserved=case.says.text)
        outcome = self._tools.slurm.assign(job.job_id, owner, name, None if case.reserved else withheld.FIRST)
        if isinstance(outcome, Done):
            case.refusals = 0
        elif isinstance(outcome, Refused) and outcome.why is not Refusal.BUSY:
            self._not_assigned(uid, case, outcome)
        self._tools.mirror.look(job.job_id, job.owner, tell=False)
        self._queue.activate(uid, urgent=True)

    def _not_assigned(self, uid: WorkloadKey, case: Case, outcome: Refused) -> None:
        """The reservation has gone meanwhile, and is made anew; or it is not for this job, or no record is written."""
        case.refusals += 1
        if not case.reserved:
            case.silent = True
        elif case.refusals >= MOST_REFUSED:
            case.vain = True
        else:
            case.reserved, case.due = False, case.pause
        logger.bind(workload=uid).info("reservation: its job {} stays as it is: {}", case.job_id, outcome.message)
