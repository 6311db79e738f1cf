"""What follows for a single pod and its placeholder, for each state of the job and each state of the pod.

The table is complete: a row for each state that Slurm shows, a column for each state of a pod. `decide` and the effects
make it true; tests hold both against every cell. A gang differs where its members do: `decide.ROWS` has these cases.
"""

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple


class PodCase(enum.Enum):
    """The pod."""

    UNBOUND = "pending, without a node"
    UNSTARTED = "bound, not started"
    RUNNING = "running"
    FAILING = "in CrashLoopBackOff, ImagePullBackOff or an init container"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TERMINATING = "being deleted, on its node"
    GONE = "gone"
    RECREATED = "gone, and another one has its name"


class JobCase(enum.Enum):
    """What Slurm's words say of the job, beyond which each row is alike."""

    UNSENT = "no job"
    UNANSWERED = "the answer to the submission is lost"
    QUEUED = "the job waits"
    HELD_UP = "the job has nodes, and nothing may run there yet, or now"
    HOLDING = "the job has its nodes"
    CANCELLED = "the job was cancelled"
    ENDED = "the job has ended in another way"
    FORGOTTEN = "Slurm does not know the job"
    UNREADABLE = "the bridge does not know the state"


class CellOutcome(enum.Enum):
    """What follows, in a word for the table and in a sentence."""

    SUBMIT = ("submit", "A job is submitted.")
    WAIT = ("wait", "The pod waits for Slurm. Its condition says why.")
    BIND = ("bind", "The pod is bound to the node of the job.")
    RESUBMIT = ("submit again", "The next job is submitted.")
    PARK = ("park", "The pod gets no other job until its request changes or it gets another `retry` annotation.")
    KEEP = ("keep", "Pod and job go on.")
    REGAIN = ("regain", "The pod runs on while the job waits for its node again. After 10 minutes the pod is ended.")
    RESTORE = (
        "restore",
        (
            "The same job is submitted again for the pod's node, and the pod runs on. Without chosen job ids, or when "
            "Slurm refuses the job, the pod is ended; when many jobs vanish at once no pod is ended."
        ),
    )
    END = ("end pod", "The pod gets `DisruptionTarget` and an event with Slurm's reason, and is deleted.")
    CANCEL = ("cancel job", "The reason is noted in the job, and the job is cancelled.")
    LEAVE = ("keep job", "The job stays until the pod is gone.")
    NOTHING = ("nothing", "Nothing is left to do.")
    LOOK_UP = ("look up", "The job that the pod names is read; then its row counts.")
    RENEW = ("cancel, submit", "The job of the earlier pod is cancelled. The new pod gets a job of its own.")
    NEVER = ("", "This cannot be.")

    @property
    def short(self) -> str:
        """In the table."""
        return self.value[0]

    @property
    def sentence(self) -> str:
        """Below it."""
        return self.value[1]


Cells = Mapping[PodCase, CellOutcome]


def _cells(
    unbound: CellOutcome, placed: CellOutcome, leaving: CellOutcome, over: CellOutcome, recreated: CellOutcome
) -> Cells:
    """Pods with nodes are treated alike, whatever their containers do, and so are those that want nothing any more."""
    return MappingProxyType(
        {
            PodCase.UNBOUND: unbound,
            PodCase.UNSTARTED: placed,
            PodCase.RUNNING: placed,
            PodCase.FAILING: placed,
            PodCase.SUCCEEDED: over,
            PodCase.FAILED: over,
            PodCase.TERMINATING: leaving,
            PodCase.GONE: over,
            PodCase.RECREATED: recreated,
        }
    )


O = CellOutcome  # noqa: E741 - the table is read in columns
CELLS: Final[Mapping[JobCase, Cells]] = MappingProxyType(
    {
        #                          unbound     placed     leaving    over       recreated
        JobCase.UNSENT: _cells(O.SUBMIT, O.LOOK_UP, O.LOOK_UP, O.NOTHING, O.SUBMIT),
        JobCase.UNANSWERED: MappingProxyType(
            {
                **_cells(O.RESUBMIT, O.NEVER, O.NEVER, O.NEVER, O.RENEW),
                PodCase.GONE: O.CANCEL,
            }
        ),
        JobCase.QUEUED: _cells(O.WAIT, O.REGAIN, O.LEAVE, O.CANCEL, O.RENEW),
        JobCase.HELD_UP: _cells(O.WAIT, O.KEEP, O.LEAVE, O.CANCEL, O.RENEW),
        JobCase.HOLDING: _cells(O.BIND, O.KEEP, O.LEAVE, O.CANCEL, O.RENEW),
        JobCase.CANCELLED: _cells(O.PARK, O.END, O.NOTHING, O.NOTHING, O.SUBMIT),
        JobCase.ENDED: _cells(O.RESUBMIT, O.END, O.NOTHING, O.NOTHING, O.SUBMIT),
        JobCase.FORGOTTEN: _cells(O.RESUBMIT, O.RESTORE, O.NOTHING, O.NOTHING, O.SUBMIT),
        JobCase.UNREADABLE: _cells(O.WAIT, O.KEEP, O.LEAVE, O.CANCEL, O.RENEW),
    }
)


class LifecycleRow(NamedTuple):
    """A state as Slurm shows it: its words, and a remark for readers. Without words the job is not listed."""

    words: tuple[str, ...]
    case: JobCase
    remark: str = ""

    @property
    def title(self) -> str:
        """As `squeue` and `scontrol` write it."""
        return "+".join(self.words) or self.case.value

    @property
    def cells(self) -> Cells:
        """What follows for each state of the pod."""
        return CELLS[self.case]


ROWS: Final = (
    LifecycleRow((), JobCase.UNSENT),
    LifecycleRow((), JobCase.UNANSWERED),
    LifecycleRow(("PENDING",), JobCase.QUEUED, "held jobs too"),
    LifecycleRow(("PENDING", "REQUEUED"), JobCase.QUEUED),
    LifecycleRow(("PENDING", "REQUEUE_FED"), JobCase.QUEUED),
    LifecycleRow(("PENDING", "REQUEUE_HOLD"), JobCase.QUEUED),
    LifecycleRow(("PENDING", "SPECIAL_EXIT"), JobCase.QUEUED),
    LifecycleRow(("PENDING", "RESV_DEL_HOLD"), JobCase.QUEUED),
    LifecycleRow(("PENDING", "COMPLETING"), JobCase.QUEUED, "requeued, and still being cleaned up"),
    LifecycleRow(("RUNNING", "CONFIGURING"), JobCase.HELD_UP),
    LifecycleRow(("RUNNING", "POWER_UP_NODE"), JobCase.HELD_UP),
    LifecycleRow(("RUNNING", "STAGE_OUT"), JobCase.HELD_UP),
    LifecycleRow(("RUNNING", "RESIZING"), JobCase.HELD_UP),
    LifecycleRow(("RUNNING",), JobCase.HOLDING),
    LifecycleRow(("RUNNING", "EXPEDITING"), JobCase.HOLDING, "like every word that the bridge does not know beside it"),
    LifecycleRow(("RUNNING", "SIGNALING"), JobCase.HELD_UP),
    LifecycleRow(("RUNNING", "STOPPED"), JobCase.HELD_UP, "the pods run on: Slurm cannot stop them"),
    LifecycleRow(("SUSPENDED",), JobCase.HELD_UP, "the pods run on: Slurm cannot stop them"),
    LifecycleRow(("RUNNING", "COMPLETING"), JobCase.ENDED),
    LifecycleRow(("COMPLETED",), JobCase.ENDED),
    LifecycleRow(("COMPLETED", "COMPLETING"), JobCase.ENDED),
    LifecycleRow(("FAILED",), JobCase.ENDED),
    LifecycleRow(("FAILED", "LAUNCH_FAILED"), JobCase.ENDED),
    LifecycleRow(("FAILED", "RECONFIG_FAIL"), JobCase.ENDED),
    LifecycleRow(("CANCELLED",), JobCase.CANCELLED),
    LifecycleRow(("CANCELLED", "COMPLETING"), JobCase.CANCELLED),
    LifecycleRow(("CANCELLED", "REVOKED"), JobCase.CANCELLED),
    LifecycleRow(("TIMEOUT",), JobCase.ENDED, "`ends.after_timeout` may park the pods that replace it"),
    LifecycleRow(("NODE_FAIL",), JobCase.ENDED),
    LifecycleRow(("PREEMPTED",), JobCase.ENDED),
    LifecycleRow(("BOOT_FAIL",), JobCase.ENDED),
    LifecycleRow(("DEADLINE",), JobCase.ENDED),
    LifecycleRow(("OUT_OF_MEMORY",), JobCase.ENDED),
    LifecycleRow((), JobCase.FORGOTTEN),
    LifecycleRow(("FROZEN",), JobCase.UNREADABLE, "a state of a later Slurm, for example"),
    LifecycleRow(("RUNNING", "COMPLETED"), JobCase.UNREADABLE, "two states at once"),
)
