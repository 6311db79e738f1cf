"""Tells workloads that wait in the bridge's own queue why; each is told a reason once."""

import dataclasses
from collections.abc import Callable
from typing import Final

from slurm_bridge.model.names import WorkloadKey, namespace_of
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.queue import WorkQueue
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


#: Another reason is told to all that have been told one when it has lasted this long: some pods of another namespace
#: would otherwise have the conditions of tens of thousands written twice.
LASTS: Final = 30.0


@dataclasses.dataclass(slots=True)
class _Told:
    """What those of a namespace were told, and since when another reason has held instead."""

    reason: str
    instead: str = ""
    since: float = 0.0


class Waiters:
    """Those that line up, by namespace, and why each was told that it does. A pass looks at what has changed alone."""

    def __init__(self, context: SchedulerContext, queue: WorkQueue) -> None:
        self._context, self._queue = context, queue
        self._line: dict[str, dict[WorkloadKey, None]] = {}
        self._untold: dict[str, dict[WorkloadKey, None]] = {}
        self._told: dict[str, _Told] = {}

    def tell(self, why: Callable[[str], Why | None]) -> None:
        """For each waiting workload why its namespace may not submit now; None: it may."""
        for key, lines_up in self._queue.line_news().items():
            if lines_up:
                self._join(key)
            else:
                self._leave(key)
        for namespace, line in self._line.items():
            reason = why(namespace)
            if reason is None:
                continue
            untold = self._untold.pop(namespace, {})
            told = line if self._lasts(namespace, reason[0]) else untold
            left = [key for key in tuple(told) if not self._say(key, reason)]
            if left:
                self._untold[namespace] = dict.fromkeys(left)

    def _lasts(self, namespace: str, reason: str) -> bool:
        """Whether all that were told another reason are to be told this one now."""
        told, now = self._told.setdefault(namespace, _Told(reason)), self._context.clock.now()
        if reason not in (told.reason, told.instead):
            told.instead, told.since = reason, now
        elif reason == told.reason:
            told.instead = ""
        if not told.instead or now - told.since < LASTS:
            return False
        told.reason, told.instead = reason, ""
        return True

    def forget(self) -> None:
        """The line is empty."""
        for known in (self._line, self._untold, self._told):
            known.clear()

    def _join(self, key: WorkloadKey) -> None:
        namespace = namespace_of(key)
        self._line.setdefault(namespace, {})[key] = None
        self._untold.setdefault(namespace, {})[key] = None

    def _leave(self, key: WorkloadKey) -> None:
        namespace = namespace_of(key)
        line, untold = self._line.get(namespace, {}), self._untold.get(namespace, {})
        line.pop(key, None)
        untold.pop(key, None)
        if not line:
            for known in (self._line, self._untold, self._told):
                known.pop(namespace, None)
        states = self._context.states
        with states.lock:
            state = states.find(key)
            if state is not None and state.notice is not None:
                state.notice = None
                states.close(key)

    def _say(self, key: WorkloadKey, reason: Why) -> bool:
        """False where it has no pod that could be told."""
        members, states = self._context.pod_index.workload(key), self._context.states
        if members is None:
            return False
        with states.lock:
            state = states.open(key)
            same, state.notice = state.notice == reason[0], reason[0]
        if not same:
            for pod in members.pods(PodState.WANTING):
                self._context.status.waiting(pod, *reason, key=reason[0])
        return True
