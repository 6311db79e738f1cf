"""The Slurm adapter over a direct line: what goes wrong on the line means what it means on a socket."""

import pathlib
import threading
from typing import Any

import pytest

from slurm_bridge import errors
from slurm_bridge.model.job import Done, JobRequest, Memory, Refused, Unknown
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.names import JobId
from slurm_bridge.sim import faults, wire
from slurm_bridge.slurm.client import SlurmClient
from slurm_bridge.slurm.settings import SlurmSettings
from tests import direct_line
from tests.direct_line import Line
from tests.direct_pool import DirectPool

JOB = JobId(50_000_001)
SUBMIT = {"method": "POST", "target": "/job/submit"}


def request(**fields: Any) -> JobRequest:
    """A small placeholder with a chosen id."""
    owner = Owner(cluster="test", kind="Pod", namespace="default", name="a", uid="u")
    return JobRequest(**{"name": "a", "owner": owner, "memory": Memory(mib=100), "job_id": JOB, **fields})


def test_an_order_is_done(direct: Any) -> None:
    """A submit through the line makes a job, and a tick starts it."""
    assert direct.jobs.submit(request()) == Done(job_id=JOB)
    direct.slurm.tick()
    allocation = direct.jobs.allocation(JOB)
    assert allocation is not None
    assert len(allocation.nodes) == 1


@pytest.mark.parametrize(
    ("fault", "made"),
    [
        (faults.Drop(), True),
        (faults.Reset(acted=True), True),
        (faults.Hang(acted=True), True),
        (faults.Truncate(), True),
        (faults.Reset(), False),
        (faults.Hang(), False),
    ],
)
def test_a_lost_answer_is_unknown(direct: Any, fault: faults.Fault, *, made: bool) -> None:
    """Whatever breaks after something was sent leaves the order unknown, and the world with or without the job."""
    direct.jobs.ping()
    direct.slurm_line.faults.plan(fault, **SUBMIT)
    assert isinstance(direct.jobs.submit(request()), Unknown)
    assert (JOB in direct.slurm.world.jobs) is made


def test_what_was_not_reached_did_nothing(direct: Any, tmp_path: pathlib.Path) -> None:
    """A handler that says that it was not reached stands for a refused connection."""

    def closed(_: wire.Request) -> wire.Response:
        raise direct_line.NotReached("nobody listens")

    pool = DirectPool(Line(closed, clock=direct.clock))
    settings = SlurmSettings(url="http://pocket", token_file=tmp_path / "token")
    client = SlurmClient(settings, clock=direct.clock, stop=threading.Event(), connect=lambda _: pool)
    outcome = client.submit(request())
    assert isinstance(outcome, Refused)
    assert "nobody listens" in outcome.message


def test_silence_takes_virtual_time(direct: Any) -> None:
    """A hanging call costs the adapter's patience on the clock, and no real time."""
    direct.jobs.ping()
    before = direct.clock.now()
    direct.slurm_line.faults.plan(faults.Hang(), **SUBMIT)
    direct.jobs.submit(request())
    assert direct.clock.now() - before == pytest.approx(15.0)


def test_a_delay_takes_virtual_time(direct: Any) -> None:
    """A slow answer is only late."""
    direct.slurm_line.faults.plan(faults.Delay(seconds=7))
    direct.jobs.ping()
    assert direct.clock.now() == pytest.approx(7.0)


def test_a_cut_read_is_read_again(direct: Any) -> None:
    """A read whose answer breaks off is asked again, as over HTTP."""
    direct.jobs.ping()
    direct.slurm_line.faults.plan(faults.Truncate(), target="jobs/state")
    assert direct.jobs.states() == {}
    assert direct.slurm_line.faults.count(target="jobs/state") == 2


def test_an_answer_may_be_replaced(direct: Any) -> None:
    """An answer from something in between reaches the adapter with status, type and headers."""
    direct.jobs.ping()
    page = faults.Answer(status=503, body=b"<html>", content_type="text/html", headers=(("Retry-After", "9"),))
    direct.slurm_line.faults.plan(page, times=2, target="nodes")
    with pytest.raises(errors.TryLater) as caught:
        direct.jobs.nodes()
    assert caught.value.retry_after == 9


def test_a_race_happens_at_its_place(direct: Any) -> None:
    """Something may happen just before a call is acted on."""
    direct.jobs.submit(request())
    direct.slurm_line.faults.plan(faults.Meanwhile(direct.slurm.tick), method="POST", target=f"/job/{JOB}")
    assert isinstance(direct.jobs.update(JOB, request(tasks=2)), Refused)


def test_every_call_is_in_the_journal(direct: Any) -> None:
    """The journal names calls in order; one without an answer has status 0."""
    direct.jobs.ping()
    direct.slurm_line.faults.plan(faults.Drop(), **SUBMIT)
    direct.jobs.submit(request())
    last = direct.slurm_line.faults.journal[-1]
    assert (last.method, last.target, last.status) == ("POST", "/slurm/v0.0.45/job/submit", 0)
