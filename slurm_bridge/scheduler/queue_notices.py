"""Tells workloads that wait in the bridge's own queue why; each is told a reason once."""

from collections.abc import Callable
from typing import Final

from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.queue import WorkQueue
from slurm_bridge.scheduler.state import Notice
from slurm_bridge.scheduler.workload_pods import PodState

#: A reason for machines and a message for people.
Why = tuple[str, str]

UNAVAILABLE: Why = ("SlurmUnavailable", "Slurm does not answer; the job is submitted as soon as it does")
_REFUSES: Final = (
    "Slurm refuses the requests of slurm-bridge, whose administrators find the cause in its log; the job is submitted "
    "as soon as Slurm accepts them"
)
REFUSED: Why = ("SlurmRefusesBridge", _REFUSES)


def full(window: int) -> Why:
    """So many jobs that have not started are enough."""
    return "SlurmQueueFull", f"{window} jobs of this cluster wait in Slurm; the next is submitted when one starts"


def share_used(namespace: str, held: int, *, share: int, window: int) -> Why:
    """Other namespaces hold, or wait for, the rest of the window."""
    have = "1 job that waits" if held == 1 else f"{held} jobs that wait"
    text = (
        f"namespace {namespace} has {have} in Slurm, and its share is {share} of {window} while other namespaces need "
        "the rest; the next is submitted when one of them starts"
    )
    return "SlurmShareUsed", text


def leftover(jobs: int) -> Why:
    """So many jobs have to go before queues can count."""
    have = "job of a deleted pod has" if jobs == 1 else "jobs of deleted pods have"
    return "SlurmJobsLeftOver", f"{jobs} {have} to leave Slurm first; the job is submitted when that is done"


class Waiters:
    """Which workload was told what."""

    def __init__(self, context: SchedulerContext, queue: WorkQueue) -> None:
        self._context, self._queue = context, queue
        self._told: list[WorkloadKey] = []
        self._round = 0

    def tell(self, why: Callable[[str], Why | None]) -> None:
        """For each waiting workload why its namespace may not submit now; None: it may."""
        told: list[tuple[WorkloadKey, str]] = []
        reasons: dict[str, Why | None] = {}
        for key in self._queue.lined_up():
            members = self._context.pod_index.workload(key)
            if members is None:
                continue
            namespace = members.root.namespace
            if namespace not in reasons:
                reasons[namespace] = why(namespace)
            reason = reasons[namespace]
            if reason is None:
                continue
            told.append((key, reason[0]))
            state = self._context.states.find(key)
            if state is None or state.notice is None or state.notice.reason != reason[0]:
                for pod in members.pods(PodState.WANTING):
                    self._context.status.waiting(pod, *reason, key=reason[0])
        self._remember(told)

    def _remember(self, told: list[tuple[WorkloadKey, str]]) -> None:
        """What these were told; what others were told before them is of no use now."""
        states, self._round = self._context.states, self._round + 1
        for key, reason in told:
            state = states.find(key)
            if state is not None and (notice := state.notice) is not None:
                notice.reason, notice.round = reason, self._round
                continue
            with states.lock:
                states.open(key).notice = Notice(reason, self._round)
        before, self._told = self._told, [key for key, _ in told]
        for key in before:
            with states.lock:
                state = states.open(key)
                if state.notice is not None and state.notice.round != self._round:
                    state.notice = None
                    states.close(key)
