"""What to do next with one workload: a pure function of how its pods and its placeholder stand.

              NONE     MAYBE    PENDING  STARTING RUNNING  STOPPED  ENDED    GONE
    WAITING   SUBMIT   SUBMIT   KEEP     HOLD     BIND     HOLD     AGAIN    AGAIN
    PARKED    HOLD     WITHDRAW WITHDRAW WITHDRAW WITHDRAW WITHDRAW HOLD     HOLD
    JOINING   LOOK     LOOK     REST     REST     JOIN     REST     END      DOUBT
    BOUND     LOOK     LOOK     REST     REST     REST     REST     END      DOUBT
    LEAVING   LOOK     LOOK     REST     REST     REST     REST     REST     REST
    OVER      FORGET   WITHDRAW WITHDRAW WITHDRAW WITHDRAW WITHDRAW FORGET   FORGET

A SUBMIT looks for the job first when one may exist. The job of a bound pod that pends again was started by a
slurmctld that crashed before it had saved that: it starts anew, and if it does so elsewhere, its details tell. One that
is GONE all at once was forgotten in the same way, and is asked for again before its pods are doubted. What cannot be
told (a state word that nobody knows) is a HOLD for pods that wait and a REST for pods that run: unknown is not gone.
"""

import enum

from slurm_bridge.model.job import Phase
from slurm_bridge.model.placeholder import Certainty, Placeholder
from slurm_bridge.scheduler.members import Crew, Standing


class Pods(enum.Enum):
    """How the pods of a workload stand."""

    WAITING = "alive, ours, and without nodes"
    PARKED = "waiting, but told not to be submitted until somebody changes something"
    JOINING = "some have the nodes that the placeholder gave them, others want nodes"
    BOUND = "on the nodes that the placeholder gave them"
    LEAVING = "bound, and the deletion of all was asked for; they may run for long yet"
    OVER = "finished, deleted, deleted before they had nodes, or bound by somebody else"


class Job(enum.Enum):
    """How the placeholder stands."""

    NONE = "there is none"
    MAYBE = "there may be one"
    PENDING = "in Slurm's queue"
    STARTING = "its nodes are being prepared"
    RUNNING = "it holds its nodes"
    STOPPED = "it holds its nodes, but Slurm has suspended it"
    ENDED = "Slurm says that it has ended"
    GONE = "Slurm does not know it"
    UNKNOWN = "Slurm says something that nobody understands"


class Step(enum.Enum):
    """What follows."""

    SUBMIT = "ask Slurm for nodes"
    KEEP = "wait for Slurm, and see whether the request is still what is wanted"
    HOLD = "wait"
    BIND = "give the pods their nodes"
    JOIN = "give those who want nodes what the others have left"
    AGAIN = "the placeholder ended before the pods had nodes: find out why, then submit again or park"
    LOOK = "read the placeholder that the pod names"
    REST = "nothing"
    END = "the placeholder ended: so do the pods"
    DOUBT = "the placeholder is gone: end the pods only if that can be believed"
    WITHDRAW = "the pods are over: so is the placeholder"
    FORGET = "both are over"


S = Step
_COLUMNS = (Job.NONE, Job.MAYBE, Job.PENDING, Job.STARTING, Job.RUNNING, Job.STOPPED, Job.ENDED, Job.GONE, Job.UNKNOWN)
_OVER = (S.FORGET, *(S.WITHDRAW,) * 5, S.FORGET, S.FORGET, S.WITHDRAW)
_ROWS = {
    Pods.WAITING: (S.SUBMIT, S.SUBMIT, S.KEEP, S.HOLD, S.BIND, S.HOLD, S.AGAIN, S.AGAIN, S.HOLD),
    Pods.PARKED: (S.HOLD, *(S.WITHDRAW,) * 5, S.HOLD, S.HOLD, S.HOLD),
    Pods.JOINING: (S.LOOK, S.LOOK, S.REST, S.REST, S.JOIN, S.REST, S.END, S.DOUBT, S.REST),
    Pods.BOUND: (S.LOOK, S.LOOK, *(S.REST,) * 4, S.END, S.DOUBT, S.REST),
    Pods.LEAVING: (S.LOOK, S.LOOK, *(S.REST,) * 7),
    Pods.OVER: _OVER,
}
TABLE = {(pods, job): step for pods, row in _ROWS.items() for job, step in zip(_COLUMNS, row, strict=True)}

_PHASES = {
    Phase.PENDING: Job.PENDING,
    Phase.STARTING: Job.STARTING,
    Phase.RUNNING: Job.RUNNING,
    Phase.STOPPED: Job.STOPPED,
    Phase.ENDED: Job.ENDED,
    Phase.UNKNOWN: Job.UNKNOWN,
}


def decide(pods: Pods, job: Job) -> Step:
    """The next step, from the table above."""
    return TABLE[pods, job]


def pods_of(crew: Crew | None) -> Pods:
    """How the pods stand; PARKED needs more than the pods, and is decided by whoever knows what they ask for."""
    if crew is None:
        return Pods.OVER
    if crew.count(Standing.BOUND, Standing.LEAVING):
        if crew.count(Standing.WANTING):
            return Pods.JOINING
        return Pods.BOUND if crew.count(Standing.BOUND) else Pods.LEAVING
    return Pods.WAITING if crew.count(Standing.WANTING) else Pods.OVER


def job_of(placeholder: Placeholder | None) -> Job:
    """How a placeholder stands."""
    if placeholder is None:
        return Job.NONE
    if placeholder.certainty is Certainty.SEEN:
        return Job.ENDED if placeholder.torn else _PHASES[placeholder.phase]
    return Job.MAYBE if placeholder.certainty is Certainty.MAYBE else Job.GONE
