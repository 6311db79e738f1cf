"""Cancels that come together are one order, and what is doubtful about it stays so."""

import pathlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from slurm_bridge.model.job import Done, Outcome, Phase, Refusal, Refused, Unknown
from slurm_bridge.model.names import JobId
from slurm_bridge.scheduler import joint_cancels
from slurm_bridge.scheduler.joint_cancels import JointCancels
from slurm_bridge.sim import faults
from tests.unit.mirror.watching import Watch


@pytest.fixture
def watch(tmp_path: pathlib.Path) -> Watch:
    """A pocket Slurm in which nothing starts by itself."""
    return Watch(tmp_path)


def why(outcome: Outcome) -> Refusal | None:
    """The reason of a refusal, None of anything else."""
    return outcome.why if isinstance(outcome, Refused) else None


def together(watch: Watch, *job_ids: JobId) -> list[Outcome]:
    """Cancels that come while another one is under way."""
    cancels = JointCancels(watch.slurm, watch.clock)
    return list(cancels._order(job_ids).values())


def test_a_lone_cancel_is_a_call_of_its_own(watch: Watch) -> None:
    """The one that is made for a single job."""
    job_id = watch.submit()
    assert JointCancels(watch.slurm, watch.clock).one(job_id) == Done(job_id=job_id)
    assert watch.asked(f"/job/{job_id}") == 1
    assert watch.asked("/jobs/$") == 0


def test_many_at_once_end_in_few_orders_and_each_hears_of_its_own(watch: Watch) -> None:
    """Whichever thread sent it; a job of another program that is not named runs on."""
    cancels = JointCancels(watch.slurm, watch.clock)
    job_ids = [watch.submit(f"u{number}") for number in range(40)]
    stranger = watch.submit("stranger", cluster="elsewhere")
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(cancels.one, job_ids)) == [Done(job_id=job_id) for job_id in job_ids]
    assert watch.slurm.states([stranger])[stranger].phase is not Phase.ENDED


def test_the_same_job_twice_is_one_job(watch: Watch) -> None:
    """Both hear the same."""
    job_id = watch.submit()
    assert together(watch, job_id, job_id) == [Done(job_id=job_id)]


def test_a_lost_answer_is_read_back(watch: Watch) -> None:
    """What Slurm shows as ended is over: no worker has to wait for another order."""
    job_ids = watch.submit("a"), watch.submit("b")
    watch.calls.plan(faults.Drop(), method="DELETE", target="/jobs/")
    assert [why(one) for one in together(watch, *job_ids)] == [Refusal.OVER, Refusal.OVER]


def test_what_still_lives_after_a_lost_answer_is_unknown(watch: Watch) -> None:
    """Slurm may not have heard of it, or may end it yet."""
    job_ids = watch.submit("a"), watch.submit("b")
    watch.calls.plan(faults.Reset(acted=False), method="DELETE", target="/jobs/")
    assert [isinstance(one, Unknown) for one in together(watch, *job_ids)] == [True, True]


def test_without_any_answer_nothing_is_known(watch: Watch) -> None:
    """An order that is lost, and then the question what became of it."""
    job_ids = watch.submit("a"), watch.submit("b")
    watch.calls.plan(faults.Drop(), method="DELETE", target="/jobs/")
    watch.calls.plan(faults.Answer(500), method="GET", target="/jobs/state/", times=9)
    assert [isinstance(one, Unknown) for one in together(watch, *job_ids)] == [True, True]


@pytest.mark.security("input")
def test_an_answer_that_makes_no_sense_ends_in_doubt(watch: Watch) -> None:
    """A status without an id, or of another job, is no news of ours."""
    job_ids = watch.submit("a"), watch.submit("b")
    garbage = b'{"status":[{"error":{"code":"x"},"step_id":[]}],"errors":[],"warnings":[]}'
    watch.calls.plan(faults.Garble(garbage), method="DELETE", target="/jobs/")
    assert [why(one) for one in together(watch, *job_ids)] == [Refusal.OVER, Refusal.OVER]


def test_a_cancel_that_waited_for_too_long_is_refused() -> None:
    """Its id may be another job's by now: the worker looks again."""
    assert why(joint_cancels._late(JobId(7))) is Refusal.BUSY
