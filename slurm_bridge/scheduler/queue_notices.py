"""Tells workloads that wait in the bridge's own queue why; each is told a reason once."""

from collections.abc import Callable

from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.scheduler.context import StatusReporter
from slurm_bridge.scheduler.pod_index import PodIndex
from slurm_bridge.scheduler.queue import WorkQueue
from slurm_bridge.scheduler.workload_pods import PodState

#: A reason for machines and a message for people.
Why = tuple[str, str]

UNAVAILABLE: Why = ("SlurmUnavailable", "Slurm does not answer; the job is submitted as soon as it does")


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

    def __init__(self, status: StatusReporter, pod_index: PodIndex, queue: WorkQueue) -> None:
        self._voice, self._pod_index, self._queue = status, pod_index, queue
        self._told: dict[WorkloadKey, str] = {}

    def tell(self, why: Callable[[str], Why | None]) -> None:
        """For each waiting workload why its namespace may not submit now; None: it may."""
        told: dict[WorkloadKey, str] = {}
        reasons: dict[str, Why | None] = {}
        for uid in self._queue.lined_up():
            members = self._pod_index.workload(uid)
            if members is None:
                continue
            namespace = members.root.namespace
            if namespace not in reasons:
                reasons[namespace] = why(namespace)
            reason = reasons[namespace]
            if reason is None:
                continue
            told[uid] = reason[0]
            if self._told.get(uid) != reason[0]:
                for pod in members.pods(PodState.WANTING):
                    self._voice.waiting(pod, *reason, key=reason[0])
        self._told = told
