"""Those who line up and are not let in learn why; each is told a thing once."""

from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.scheduler.census import Census
from slurm_bridge.scheduler.members import Standing
from slurm_bridge.scheduler.queue import Queue
from slurm_bridge.scheduler.tools import Voice

#: A reason for machines and a message for people.
Why = tuple[str, str]

UNAVAILABLE: Why = ("SlurmUnavailable", "Slurm does not answer; the job is submitted as soon as it does")


def full(window: int) -> Why:
    """So many jobs that have not started are enough."""
    return "SlurmQueueFull", f"{window} jobs of this cluster wait in Slurm; the next is submitted when one starts"


def leftover(jobs: int) -> Why:
    """So many jobs have to go before queues can count."""
    have = "job of a pod that has gone has" if jobs == 1 else "jobs of pods that have gone have"
    return "SlurmJobsLeftOver", f"{jobs} {have} to leave Slurm first; the job is submitted when that is done"


class Waiters:
    """Who was told what."""

    def __init__(self, voice: Voice, census: Census, queue: Queue) -> None:
        self._voice, self._census, self._queue = voice, census, queue
        self._told: dict[WorkloadKey, str] = {}

    def tell(self, why: Why | None) -> None:
        """All who line up, why nobody is let in; None: somebody is."""
        if why is None:
            self._told.clear()
            return
        for uid in self._queue.lined_up():
            crew = self._census.crew(uid)
            if crew is not None and self._told.get(uid) != why[0]:
                self._told[uid] = why[0]
                for pod in crew.pods(Standing.WANTING):
                    self._voice.waiting(pod, *why)
