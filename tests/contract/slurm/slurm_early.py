"""Jobs of the session's beginning, for facts that need minutes: they age while the other cases run.

An ended job is soon forgotten, and nobody knows how long the other cases take: so somebody has to watch.
"""

import contextlib
import dataclasses
import http.client
import threading
from collections.abc import Iterator

from slurm_desk import Desk, number

from slurm_bridge.model import marks
from slurm_bridge.model.marks import Owner

SECONDS_BETWEEN_LOOKS = 0.5


class Witness:
    """Writes down every state that a job has, until it has ended."""

    def __init__(self, desk: Desk, job_id: int) -> None:
        self.seen: list[set[str]] = []
        self._desk = desk
        self._job_id = job_id
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="witness", daemon=True)
        self._thread.start()

    def leave(self) -> None:
        """Watch no longer."""
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(SECONDS_BETWEEN_LOOKS):
            state = self._look()
            self.seen.append(state)
            if state - {"PENDING", "RUNNING"}:
                return

    def _look(self) -> set[str]:
        """Other cases put slurmctld out of action meanwhile: who gets no answer has seen nothing."""
        try:
            answer = self._desk.get(f"jobs/state/?job_id={self._job_id}")
        except (OSError, http.client.HTTPException):
            return set()
        return {word for job in answer.json.get("jobs") or () for word in job["state"]}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Early:
    """One that runs into its limit, under observation, and one that was cancelled at once.

    And leaders of heterogeneous jobs: one whose second component was cancelled, one that alone runs into its limit.
    """

    short: Witness
    cancelled: int
    torn: int
    left: int


@contextlib.contextmanager
def begun(desk: Desk) -> Iterator[Early]:
    """Submit them; they stay out of the way of cases that need free nodes."""
    cancelled = desk.held()
    desk.delete(cancelled)
    short = desk.pending(time_limit=number(1), partition="gpu", constraints="gpu")
    torn, left = _running_pair(desk, number(600)), _running_pair(desk, number(1))
    desk.delete(torn + 1)
    with contextlib.ExitStack() as stack:
        witness = Witness(desk, short)
        stack.callback(witness.leave)
        yield Early(short=witness, cancelled=cancelled, torn=torn, left=left)


def _running_pair(desk: Desk, limit: object) -> int:
    """Two components that run, the first under that limit. Whose they are stands in both."""
    shape = {"partition": "gpu", "constraints": "gpu", "admin_comment": marks.write(owner(desk))}
    answer = desk.submit_het({**shape, "time_limit": limit}, {**shape, "time_limit": number(600)})
    assert answer.verdict == (200, []), answer.text
    return desk.started(answer.job_id)


def owner(desk: Desk) -> Owner:
    """Whose the heterogeneous jobs are."""
    return Owner(cluster=desk.job_name, kind="Pod", namespace="contract", name="early", uid="early")
