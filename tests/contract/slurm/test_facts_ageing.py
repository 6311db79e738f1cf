"""What happens to jobs over time."""

import pytest
from slurm_desk import Desk
from slurm_early import Early

pytestmark = pytest.mark.ageing


def test_a_job_above_its_limit_times_out(slurm: Desk, early: Early) -> None:
    """slurmctld ends an external job by itself: TIMEOUT, some time after the limit of a minute."""
    slurm.until(lambda: {"RUNNING"} in early.short.seen, "the job runs")
    slurm.servers.pass_time(61)
    slurm.until(lambda: {"TIMEOUT"} in early.short.seen, "the job times out", seconds=110)


def test_an_ended_job_is_forgotten(slurm: Desk, early: Early) -> None:
    """After MinJobAge it is unknown to every read, and its id says nothing any more."""
    slurm.servers.pass_time(60)
    slurm.until(lambda: not slurm.states(early.cancelled), "the job is forgotten", seconds=110)
    assert slurm.get(f"job/{early.cancelled}").verdict == (404, [2017])
    (status,) = slurm.delete(early.cancelled).json["status"]
    assert status["error"]["code"] == 2017


def test_a_reservation_ends_its_jobs_unless_it_is_flexible(slurm: Desk) -> None:
    """At its end the jobs of a plain reservation end as TIMEOUT; those of a FLEX one run on when it has gone."""
    nodes = slurm.idle("mapped", 2)
    jobs = []
    for node, flags in zip(nodes, (("IGNORE_JOBS",), ("IGNORE_JOBS", "FLEX")), strict=True):
        slurm.servers.reserve(f"{slurm.job_name}-{node}", node, 10, flags)
        jobs.append(slurm.pending(partition="mapped", reservation=f"{slurm.job_name}-{node}"))
    strict, flexible = (slurm.started(job_id) for job_id in jobs)
    slurm.servers.pass_time(11)
    slurm.until(lambda: slurm.state(strict) == {"TIMEOUT"}, "the job is ended", seconds=60)
    assert slurm.state(flexible) == {"RUNNING"}
    slurm.until(lambda: slurm.job_name not in slurm.get("reservations/").text, "both reservations are gone", seconds=60)
