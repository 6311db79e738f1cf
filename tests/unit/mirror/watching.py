"""A pocket Slurm, and the mirror that looks into it: no scheduler, no Kubernetes."""

import dataclasses
import pathlib
import threading
from typing import Any

from slurm_bridge.mirror.jobs import Mirror, Rhythm
from slurm_bridge.mirror.table import Table
from slurm_bridge.model import marks
from slurm_bridge.model.job import Done, JobRequest, JobState, JobView, Memory
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.names import JobId
from slurm_bridge.model.placeholder import Certainty, Placeholder
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.sim.slurm import state
from slurm_bridge.sim.slurm.pocket import PocketSlurm
from slurm_bridge.slurm.client import SlurmClient
from slurm_bridge.slurm.settings import SlurmSettings
from tests.direct_line import Line
from tests.direct_pool import DirectPool


def owner(uid: str = "u", *, kind: str = "Pod", cluster: str = "here", attempt: int = 0, **more: Any) -> Owner:
    """The record of pod team/u, or of another workload of this name."""
    return Owner(cluster=cluster, kind=kind, namespace="team", name=uid, uid=uid, attempt=attempt, **more)


def state_of(words: str) -> JobState:
    """State words with blanks between them."""
    return JobState(frozenset(words.split()))


def placeholder(job_id: int = 1, uid: str = "u", words: str = "PENDING", **more: Any) -> Placeholder:
    """What is known of a job."""
    given = {"since": 0.0, "owner": owner(uid, attempt=more.pop("attempt", 0)), **more}
    return Placeholder(job_id=JobId(job_id), state=state_of(words), **given)


def gone(job_id: int = 1, uid: str = "u", **more: Any) -> Placeholder:
    """A job that Slurm does not know any more."""
    return placeholder(job_id, uid, certainty=Certainty.GONE, **more)


def maybe(job_id: int = 1, uid: str = "u", **more: Any) -> Placeholder:
    """A job of which nobody knows whether it exists."""
    return placeholder(job_id, uid, certainty=Certainty.MAYBE, **more)


def view(words: str = "PENDING", **fields: Any) -> JobView:
    """A job as Slurm describes it."""
    return JobView(**{"job_id": JobId(1), "name": "u", "state": state_of(words), "owner": owner(), **fields})


class Watch:
    """A mirror, what it was told to watch, and whom it woke."""

    def __init__(self, folder: pathlib.Path, *, nodes: int = 2, **rhythm: Any) -> None:
        self.clock = VirtualClock()
        machines = [state.Node(name=f"n{number + 1}", cpus=64, memory_mib=64_000) for number in range(nodes)]
        config = state.PocketConfig(minimum_job_age=30.0, hang_delay=0.0, down_delay=0.0)
        self.pocket = PocketSlurm(clock=self.clock, nodes=machines, reservations=(), config=config)
        self.line = Line(self.pocket.handler, clock=self.clock)
        self.calls = self.line.faults
        (folder / "token").write_text(self.pocket.secret)
        settings = SlurmSettings(url="http://slurm", token_file=folder / "token", api_versions=("v0.0.45",))
        self.slurm = SlurmClient(
            settings, clock=self.clock, stop=threading.Event(), connect=lambda _: DirectPool(self.line)
        )
        self.woken: list[str] = []
        self.table = Table(self.woken.append)
        self.mirror = Mirror(self.slurm, self.clock, self.table, cluster_id="here", rhythm=Rhythm(**rhythm))
        self.slurm.ping()

    def submit(self, uid: str = "u", *, known: bool = True, **marks_: Any) -> JobId:
        """A placeholder of ours, or with another cluster, of somebody else; `known` says that the table has it."""
        record = owner(uid, **marks_)
        outcome = self.slurm.submit(JobRequest(name=uid, owner=record, memory=Memory(mib=100)))
        assert isinstance(outcome, Done)
        if known:
            self.table.put(placeholder(outcome.job_id, uid, owner=record, since=self.clock.now()), tell=False)
        return outcome.job_id

    def running(self, uid: str = "u") -> JobId:
        """A placeholder of ours that runs, as the mirror knows."""
        job_id = self.submit(uid)
        self.start()
        self.mirror.poll()
        return job_id

    def disguise(self, job_id: JobId, comment: str) -> None:
        """From now on the job is somebody else's: the id was given away after a crash."""
        job = self.pocket.world.jobs[job_id]
        texts = {**job.ask.texts, "admin_comment": comment}
        self.pocket.world.put(dataclasses.replace(job, ask=dataclasses.replace(job.ask, texts=texts)))

    def lose(self, job_id: JobId) -> None:
        """Slurm does not know the job any more."""
        self.pocket.control.end(job_id, "CANCELLED")
        del self.pocket.world.jobs[job_id]

    def start(self) -> None:
        """What waits is started."""
        self.pocket.tick()

    def step(self, seconds: float = 0.0) -> None:
        """Time passes in the pocket, then the mirror does what is due."""
        self.pocket.control.advance(seconds)
        self.mirror.step()

    def known(self, job_id: JobId) -> Placeholder:
        """What the table says of a job."""
        found = self.table.get(job_id)
        assert found is not None
        return found

    def asked(self, target: str) -> int:
        """How many calls of this target there were."""
        return self.calls.count(target=target)


def record(uid: str, cluster: str) -> str:
    """An owner record as it stands in a job."""
    return marks.write(owner(uid, cluster=cluster))
