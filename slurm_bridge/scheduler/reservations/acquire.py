"""Acquire: Slurm reserves nodes, and the job enters the reservation; where Slurm refuses, the job becomes the first."""

import dataclasses

import msgspec
from loguru import logger

from slurm_bridge.model.job import Done, Phase, Refusal, Refused
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.queue import WorkQueue
from slurm_bridge.scheduler.reservations import node_record
from slurm_bridge.scheduler.reservations.cases import ReservationCase

#: A reservation lasts for so long, and is prolonged when so much of it is over.
SECONDS, RENEWED = 120, 40.0
#: What was not answered, or could not be done just now, is tried again after so long.
AGAIN = 5.0
#: A job that may not enter so many times in a row does not belong there.
MOST_REFUSED = 3

#: Slurm will say the same when it is asked again soon.
_FINAL = frozenset({Refusal.INVALID, Refusal.FORBIDDEN})


class Acquirer:
    """Used by one thread at a time."""

    def __init__(self, context: SchedulerContext, queue: WorkQueue) -> None:
        self._context, self._queue = context, queue
        #: Error numbers of refusals that were logged: each is logged once.
        self._told: set[int] = set()

    def reserve(self, key: WorkloadKey, case: ReservationCase, job: Placeholder) -> None:
        """Make it, or prolong it, when it is time. Without it, others of ours keep away all the same."""
        now, user = self._context.clock.now(), job.view.user if job.view is not None else ""
        if now < case.due or not user:
            return
        outcome = self._context.slurm.reserve(case.name, case.says.nodes, user, SECONDS)
        case.due = now + (RENEWED if isinstance(outcome, Done) else AGAIN)
        if isinstance(outcome, Done) and case.reserved:
            # Where Slurm was away for longer than it lasted this is another one, and its job is not in there.
            self._context.mirror.look(job.job_id, job.owner, tell=False)
        case.reserved = case.reserved or isinstance(outcome, Done)
        if isinstance(outcome, Refused) and outcome.why in _FINAL:
            case.reserved, case.refused = False, True
            if outcome.code not in self._told:
                self._told.add(outcome.code)
                text = "Slurm reserves no nodes, so that jobs that are not ours may take those that are kept: {}"
                logger.bind(workload=key).warning("reservation: " + text, outcome.message)
            case.due = now + RENEWED
        elif isinstance(outcome, Refused) and outcome.why is Refusal.OVERLAP:
            # Others have reserved them and may need them soon: to be the first in the queue would not help.
            case.vain = True
        elif isinstance(outcome, Refused) and outcome.why is Refusal.UNKNOWN_NODE:
            self._context.refresh_facts()

    def assign(self, key: WorkloadKey, case: ReservationCase, job: Placeholder) -> None:
        """Write into its job what is kept for it; the job enters the reservation, or becomes the first of all."""
        now = self._context.clock.now()
        if case.silent or now < case.pause or not (case.reserved or case.refused):
            return
        view, name = job.view, case.name if case.reserved else ""
        if view is None or (job.owner.reserved == case.says.text and view.reservation == name):
            return
        case.pause = now + AGAIN
        # Ids come back for others after a crash, and a job that is held has another priority than its own.
        known, view = self._context.mirror.look(job.job_id, job.owner, tell=False), None
        if known is None or known.phase is not Phase.PENDING or (view := known.view) is None or view.held:
            return
        if case.refused and not case.reserved and case.says.priority is None:
            case.says = dataclasses.replace(case.says, priority=view.priority)
            self._context.states.of(key).leadership.reserved = case.says.text
        owner = msgspec.structs.replace(known.owner, reserved=case.says.text)
        outcome = self._context.slurm.assign(job.job_id, owner, name, None if case.reserved else node_record.FIRST)
        if isinstance(outcome, Done):
            case.refusals = 0
        elif isinstance(outcome, Refused) and outcome.why is not Refusal.BUSY:
            self._not_assigned(key, case, outcome)
        self._context.mirror.look(job.job_id, job.owner, tell=False)
        self._queue.activate(key, urgent=True)

    def _not_assigned(self, key: WorkloadKey, case: ReservationCase, outcome: Refused) -> None:
        """The reservation has gone meanwhile, and is made anew; or it is not for this job, or no record is written."""
        case.refusals += 1
        if not case.reserved:
            case.silent = True
        elif case.refusals >= MOST_REFUSED:
            case.vain = True
        else:
            case.reserved, case.due = False, case.pause
        logger.bind(workload=key).info("reservation: its job {} stays as it is: {}", case.job_id, outcome.message)
