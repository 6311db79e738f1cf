"""What a killed slurmctld remembers of heterogeneous jobs."""

import secrets

import pytest
from slurm_outages import dead, saved
from slurm_port import Port

from slurm_bridge.model.job import Done, Phase
from slurm_bridge.model.names import JobId

pytestmark = pytest.mark.disruptive


def components(port: Port, leader: JobId) -> list[tuple[object, ...]]:
    """What Slurm remembers, without what time alone changes."""
    return [
        (one.het_offset, one.job_id, one.tasks, one.nodes, one.state, one.owner)
        for one in port.client.components(leader)
    ]


def chosen(port: Port, *, hold: bool) -> JobId:
    """Three components; the leader's id is the highest."""
    job_id = JobId(10_000_000 + secrets.randbelow(50_000_000))
    shapes = [port.request(hold=hold, tasks=tasks) for tasks in (2, 3)]
    return port.made(port.request(hold=hold, job_id=job_id), *shapes)


def test_a_kill_leaves_whole_heterogeneous_jobs_as_they_were(port: Port) -> None:
    """They wait or run on, in the same order whatever Slurm's is now."""
    waits, runs = chosen(port, hold=True), chosen(port, hold=False)
    port.desk.started(runs)
    saved(port.desk)
    before = {job_id: components(port, job_id) for job_id in (waits, runs)}
    with dead(port.desk):
        pass
    for job_id, phase in ((waits, Phase.PENDING), (runs, Phase.RUNNING)):
        assert components(port, job_id) == before[job_id]
        assert [offset for offset, *_ in before[job_id]] == [0, 1, 2]
        assert port.client.states([job_id])[job_id].phase is phase
        view = port.client.job(job_id)
        assert view is not None
        assert not view.torn


@pytest.mark.patient
@pytest.mark.timeout(600)
def test_a_kill_ends_what_was_torn(port: Port) -> None:
    """A job with a component that was forgotten fails; a component whose leader was forgotten goes."""
    torn = port.made(port.request(), port.request())
    left = port.made(port.request(time_limit_minutes=1), port.request())
    for job_id in (torn, left):
        port.desk.started(job_id)
    assert isinstance(port.client.cancel(JobId(torn + 1)), Done)
    port.desk.servers.pass_time(100)
    port.desk.until(lambda: port.client.states([left])[left].torn, "the leader's time is over", seconds=150)
    port.desk.servers.pass_time(60)
    port.desk.until(lambda: not port.client.states([left]), "the leader is forgotten", seconds=150)
    with dead(port.desk):
        pass
    failed = port.client.job(torn)
    assert failed is not None
    assert (failed.state.words, failed.reason, failed.torn) == ({"FAILED"}, "SystemFailure", False)
    # What Slurm forgot in its last seconds is back, and the leader with it.
    assert port.client.job(JobId(left + 1)) is None or port.client.states([left])[left].torn
