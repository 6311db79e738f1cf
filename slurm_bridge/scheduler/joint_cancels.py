"""Cancels of many workers as one order: slurmctld ends thousands of jobs in the time of a few single orders.

Each worker has seen before that the id is still its job's. Where Slurm counts the ids, a cancel that could not be sent
soon after that is not sent: an id may become another job's.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from slurm_bridge import errors, ports
from slurm_bridge.model.job import Outcome, Phase, Refusal, Refused, Unknown
from slurm_bridge.model.names import JobId
from slurm_bridge.runtime.batches import Batches

#: Seconds from a worker's look at its job to the order; a Slurm that answers takes milliseconds.
PATIENCE: Final = 1.0


class JointCancels:
    """Used by any number of threads; a single one makes the same call as `ports.Slurm.cancel`."""

    def __init__(self, slurm: ports.Slurm, clock: ports.Clock, *, chosen_ids: bool = False) -> None:
        self._slurm = slurm
        patience = math.inf if chosen_ids else PATIENCE
        self._batches: Batches[JobId, Outcome] = Batches(self._order, _late, clock.now, patience=patience)

    def one(self, job_id: JobId) -> Outcome:
        """How the cancel of this job ended, whichever order it was a part of."""
        return self._batches.one(job_id)

    def _order(self, job_ids: Sequence[JobId]) -> Mapping[JobId, Outcome]:
        if len(job_ids) == 1:
            return {job_ids[0]: self._slurm.cancel(job_ids[0])}
        outcomes = self._slurm.cancel_many(sorted(set(job_ids)))
        lost = [job_id for job_id, outcome in outcomes.items() if isinstance(outcome, Unknown)]
        return {**outcomes, **self._read_back(lost)} if lost else outcomes

    def _read_back(self, lost: Sequence[JobId]) -> Mapping[JobId, Outcome]:
        """Of an order without an answer: the jobs that have ended. The others may still end."""
        try:
            states = self._slurm.states(lost)
        except errors.BridgeError:
            return {}
        over = [job_id for job_id, seen in states.items() if seen.phase is Phase.ENDED and not seen.torn]
        return dict.fromkeys(over, Refused(why=Refusal.OVER, code=0, message="it has ended"))


def _late(job_id: JobId) -> Outcome:
    message = f"the cancel of job {job_id} was not sent: Slurm took more than {PATIENCE:g} s for the one before"
    return Refused(why=Refusal.BUSY, code=0, message=message)
