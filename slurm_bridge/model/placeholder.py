"""One placeholder job as the bridge knows it: whose it is, how far it has come, and how sure that is."""

import dataclasses
import enum

from slurm_bridge.model.job import JobState, JobView, Phase
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.names import JobId


class Certainty(enum.Enum):
    """Unknown is not gone: what is not certain is looked up before anybody acts on it."""

    MAYBE = "an order was sent and its answer lost: the job may exist"
    SEEN = "Slurm has told of it"
    GONE = "Slurm has said that it knows no such job, or that the id is now somebody else's"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NotOurs:
    """A job exists under this id, and its record says that it is somebody else's, or nothing; `whose` in words."""

    job_id: JobId
    whose: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Placeholder:
    """`since` is our clock when the job came to this phase, `read` when its `view` was read (None: never).

    `seen`: Slurm has told of it in this life. Of other jobs that do not exist only the labels of pods tell, which their
    users can write.

    `started` remembers that it has held nodes, which decides what its end means; `lost` that we knew it alive when it
    was gone all at once: ended jobs are remembered for a while, so that Slurm has not ended but forgotten it.
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

    @property
    def phase(self) -> Phase:
        """The state in one word; a job that Slurm no longer knows has ended."""
        return Phase.ENDED if self.certainty is Certainty.GONE or self.torn else self.state.phase

    @property
    def alive(self) -> bool:
        """It holds nodes, may come to hold some, or nobody can say."""
        return self.phase is not Phase.ENDED
