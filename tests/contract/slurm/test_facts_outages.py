"""What slurmrestd says while slurmctld is dead, frozen or deadlocked, and what a kill -9 forgets."""

import concurrent.futures
from collections.abc import Mapping

import pytest
import slurm_http
from slurm_desk import Desk
from slurm_outages import dead, frozen, saved

pytestmark = pytest.mark.disruptive


def at_once(desk: Desk, calls: Mapping[str, tuple[str, str, object]]) -> dict[str, slurm_http.Answer]:
    """Each takes ten seconds or more: ask all of them at the same time."""
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        answers = {name: pool.submit(desk.ask, *call) for name, call in calls.items()}
        return {name: answer.result() for name, answer in answers.items()}


def calls(desk: Desk, job_id: int, name: str) -> dict[str, tuple[str, str, object]]:
    """A submit, a cancel and two reads."""
    return {
        "submit": ("POST", "job/submit", {"job": desk.shape(name=name, priority=0)}),
        "cancel": ("DELETE", f"job/{job_id}", None),
        "states": ("GET", "jobs/state/", None),
        "ping": ("GET", "ping/", None),
    }


def named(desk: Desk, name: str) -> list[int]:
    """The ids of all jobs of that name."""
    return [job["job_id"] for job in desk.get("jobs/").json["jobs"] if job["name"] == name]


def test_a_dead_slurmctld(slurm: Desk) -> None:
    """Submit 502 with 1800; cancel 403 with 1, as if it were forbidden; states 500 with -1; ping 200, no response."""
    saved(slurm)
    job_id, name = slurm.held(), f"{slurm.job_name}-dead"
    with dead(slurm):
        answers = at_once(slurm, calls(slurm, job_id, name))
    assert answers["submit"].verdict == (502, [1800])
    assert answers["cancel"].verdict == (403, [1])
    assert answers["states"].verdict == (500, [-1])
    assert answers["states"].json["jobs"] is None
    assert answers["ping"].verdict == (200, [])
    assert answers["ping"].json["pings"][0]["responding"] is False
    assert not named(slurm, name)


def test_a_frozen_slurmctld(slurm: Desk) -> None:
    """Submit 504 with 5004; cancel 403 with 1; states 500 with -1. Once it wakes up it does what it was asked."""
    job_id, name = slurm.held(), f"{slurm.job_name}-frozen"
    orders = {what: call for what, call in calls(slurm, job_id, name).items() if what != "ping"}
    with frozen(slurm):
        answers = at_once(slurm, orders)
    assert answers["submit"].verdict == (504, [5004])
    assert answers["cancel"].verdict == (403, [1])
    assert answers["states"].verdict == (500, [-1])
    slurm.until(lambda: len(named(slurm, name)) == 1, "the job that nobody acknowledged exists")
    slurm.until(lambda: slurm.state(job_id) == {"CANCELLED"}, "the job that nobody could cancel is cancelled")


def test_killed_jobs_vanish_and_their_ids_return(slurm: Desk) -> None:
    """slurmctld saves every few seconds: after kill -9 the last acknowledged jobs are gone and their ids come again."""
    saved(slurm)
    acknowledged = [slurm.held() for _ in range(5)]
    with dead(slurm):
        pass
    lost = [job_id for job_id in acknowledged if not slurm.state(job_id)]
    assert acknowledged[-1] in lost
    assert slurm.held() in lost


def test_a_plain_users_cancel_of_anothers_job_is_fatal(slurm: Desk) -> None:
    """Without accounting: 403, and slurmctld never answers again until it is killed."""
    saved(slurm)
    job_id = slurm.held()
    refused = slurm.plain_user.delete(job_id)
    read = slurm.get("jobs/state/")
    with dead(slurm):
        pass
    assert refused.status == 403
    assert read.verdict == (500, [-1])
