"""One placeholder job as the bridge knows it: its workload, its phase, and how certain that is."""

import dataclasses
import enum

from slurm_bridge.model.job import JobState, JobView, Phase
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.names import JobId


class Certainty(enum.Enum):
    """Unknown is not gone: what is not certain is looked up before the scheduler acts on it."""

    MAYBE = "an order was sent and its answer lost: the job may exist"
    SEEN = "Slurm has listed it"
    GONE = "Slurm does not know such a job, or the id belongs to another job now"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NotOurs:
    """A job exists under this id, and its record names another owner, or none; `whose` names the owner in words."""

    job_id: JobId
    whose: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Placeholder:
    """`since` is our clock when the job came to this phase, `read` when its `view` was read (None: never).

    `seen`: Slurm has listed the job since this daemon started. Other jobs are known from labels of pods only, which
    users can write.

    `started`: the job has held nodes, which decides what its end means. `lost`: the job was alive and is now unknown to
    Slurm. Slurm remembers ended jobs for a while, so it has not ended this job but forgotten it.

    `confirmed`: two answers about states have said that this job, which was running before, has ended.
    """

    job_id: JobId
    owner: Owner
    state: JobState
    certainty: Certainty = Certainty.SEEN
    since: float
    view: JobView | None = None
    read: float | None = None
    started: bool = False
    torn: bool = False
    lost: bool = False
    seen: bool = True
    confirmed: bool = False

    @property
    def phase(self) -> Phase:
        """The state in one word; a job that Slurm no longer knows has ended."""
        return Phase.ENDED if self.certainty is Certainty.GONE or self.torn else self.state.phase

    @property
    def alive(self) -> bool:
        """The job holds nodes, may get some, or its state is unknown."""
        return self.phase is not Phase.ENDED

    @property
    def next_attempt(self) -> int:
        """Which attempt a submit for the same workload would be.

        An id that Slurm does not know is asked for again: should the job turn up after all, the taken id tells.
        """
        return self.owner.attempt + (1 if self.certainty is Certainty.SEEN else 0)
