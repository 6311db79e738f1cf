"""The adapter under test, beside the desk that shows what it really did and clears away what it made."""

import dataclasses
import secrets
import threading
from pathlib import Path
from typing import Any

from slurm_desk import VERSIONS, Desk

from slurm_bridge.model.job import Done, JobRequest, Memory, Outcome, Unknown
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.names import JobId
from slurm_bridge.runtime import clock
from slurm_bridge.slurm import dialogue
from slurm_bridge.slurm.client import SlurmClient
from slurm_bridge.slurm.settings import SlurmSettings


def connect(
    url: str,
    token_file: Path,
    versions: tuple[str, ...] = VERSIONS[::-1],
    *,
    by: dialogue.Connect = dialogue.pool,
    **settings: Any,
) -> SlurmClient:
    """An adapter that forgets nothing it read: no cache, unless asked for."""
    chosen = {"cache_ttl": 0.0, **settings}
    return SlurmClient(
        SlurmSettings(url=url, token_file=token_file, api_versions=versions, **chosen),
        clock=clock.SystemClock(),
        stop=threading.Event(),
        connect=by,
    )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """`ports.Slurm` as it is, and the desk of the same case."""

    client: SlurmClient
    desk: Desk

    def owner(self, **fields: Any) -> Owner:
        """Some workload that nobody else speaks of."""
        uid = secrets.token_hex(8)
        usual = {"cluster": self.desk.job_name, "kind": "Pod", "namespace": "contract", "name": "pod", "uid": uid}
        return Owner(**(usual | fields))

    def request(self, **fields: Any) -> JobRequest:
        """The smallest good request: a placeholder with one CPU and little memory."""
        usual: dict[str, Any] = {
            "name": self.desk.job_name,
            "owner": self.owner(),
            "partition": "debug",
            "memory": Memory(mib=100),
            "time_limit_minutes": 5,
        }
        return JobRequest(**(usual | fields))

    def submit(self, request: JobRequest, *components: JobRequest) -> Outcome:
        """Ask, and remember what may have been made."""
        outcome = self.client.submit(dataclasses.replace(request, components=components))
        if isinstance(outcome, Done | Unknown) and outcome.job_id:
            self.desk.made.append(outcome.job_id)
        return outcome

    def made(self, request: JobRequest, *components: JobRequest) -> JobId:
        """The id of a job that was accepted."""
        outcome = self.submit(request, *components)
        assert isinstance(outcome, Done), outcome
        return outcome.job_id

    def held(self, **fields: Any) -> JobId:
        """A job that will not start."""
        return self.made(self.request(hold=True, **fields))

    def running(self, **fields: Any) -> JobId:
        """A job that runs."""
        job_id = self.made(self.request(**fields))
        self.desk.started(job_id)
        return job_id
