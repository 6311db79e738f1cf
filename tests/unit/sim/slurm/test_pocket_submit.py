"""What the pocket says to a submit: the numbers, and the lies."""

from collections.abc import Callable
from typing import Any

import pytest
from pocket_desk import Desk, job


@pytest.mark.parametrize(
    ("fields", "number"),
    [
        ({"partition": "nowhere"}, 2000),
        ({"required_nodes": [""]}, 2006),
        ({"minimum_nodes": 4, "maximum_nodes": 2, "tasks": 8}, 2006),
        ({"comment": "x" * 1025}, 2012),
        ({"cpus_per_task": 200}, 2014),
        ({"tres_per_node": "gres/gpu:9"}, 2014),
        ({"tasks": 70, "maximum_nodes": 1}, 2014),
        ({"required_nodes": ["nowhere"]}, 2018),
        ({"excluded_nodes": ["nowhere"]}, 2018),
        ({"nodes": "4", "tasks": 2}, 2025),
        ({"constraints": "nothing"}, 2029),
        ({"constraints": "rack1&("}, 2029),
        ({"dependency": "afterok:1"}, 2038),
        ({"licenses": "unknown:1"}, 2048),
        ({"licenses": "ansys:3"}, 2048),
        ({"reservation": "held", "user_id": "bob"}, 2052),
        ({"reservation": "nowhere"}, 2053),
        ({"tres_per_node": "gres/fpga:1"}, 2072),
        ({"array": "0-3"}, 2081),
        ({"tres_per_node": "gpu:1"}, 2115),
        ({"prefer": "nothing"}, 2133),
        ({"user_id": "nobody"}, 2166),
    ],
)
def test_refusals_have_slurms_numbers(slurm: Desk, fields: dict[str, Any], number: int) -> None:
    """Each is 422, and its number says why."""
    answer = slurm.submit(**fields)
    assert (answer.status, answer.errors, answer.job_id) == (422, [number], 0)


def test_a_script_beside_the_flag_is_refused(slurm: Desk) -> None:
    """500 with 2189."""
    answer = slurm.submit(script="#!/bin/sh")
    assert (answer.status, answer.errors) == (500, [2189])


def test_an_unknown_flag_fails_and_creates(slurm: Desk) -> None:
    """500 with an error and a job id: the job is there."""
    answer = slurm.submit(flags=["EXTERNAL_JOB", "WHAT"])
    assert (answer.status, answer.errors) == (500, [9207])
    assert slurm.state(answer.job_id) == "PENDING"


def test_success_without_a_job(slurm: Desk) -> None:
    """A number that is none: 200, a warning, and nothing was made."""
    answer = slurm.submit(tasks="abc")
    assert (answer.status, answer.errors, answer.job_id) == (200, [], 0)
    assert slurm.control.jobs() == {}


def test_the_word_exclusive_is_unknown_and_yet_means_it(slurm: Desk) -> None:
    """500, and a job that has its node alone."""
    answer = slurm.submit(shared=["exclusive"])
    slurm.slurm.tick()
    assert answer.status == 500
    assert list(slurm.spread(answer.job_id).values()) == [64]


def test_a_chosen_id_is_a_fence(slurm: Desk) -> None:
    """The second submit of an id is refused with 2011, and the counter does not move."""
    assert slurm.submit(job_id=900).job_id == 900
    assert slurm.submit(job_id=900).errors == [2011]
    assert slurm.submit().job_id == 1


def test_a_refused_id_stays_taken(slurm: Desk) -> None:
    """What is refused by the choice of nodes leaves a FAILED job behind."""
    assert slurm.submit(job_id=900, cpus_per_task=200).errors == [2014]
    assert slurm.job(900)["state_reason"] == "BadConstraints"
    assert slurm.submit(job_id=900).errors == [2011]


def test_too_large_is_taken_in_with_a_warning(slurm: Desk) -> None:
    """More nodes, or cpus, than the partition has: 200, and the job waits."""
    answer = slurm.submit(minimum_nodes=50, tasks=50)
    assert "not available now" in answer.warnings
    assert slurm.reason(answer.job_id) == "PartitionConfig"
    slurm.control.advance(2)
    slurm.pending()
    assert slurm.reason(answer.job_id) == "PartitionNodeLimit"


def test_a_held_job_is_not_looked_at(slurm: Desk) -> None:
    """What no node could run is taken in while it is held, and says BadConstraints once released."""
    job_id = slurm.pending(hold=True, cpus_per_task=200)
    slurm.update(job_id, hold=False)
    assert slurm.reason(job_id) == "BadConstraints"


def test_immediate_is_now_or_never(slurm: Desk) -> None:
    """It starts at once on an empty cluster, and is refused with 2078 on a full one."""
    assert slurm.state(slurm.pending(partition="smt", immediate=True)) == "RUNNING"
    slurm.running(partition="mapped", minimum_nodes=2, tasks=128)
    assert slurm.submit(partition="mapped", immediate=True).errors == [2078]


def test_a_full_controller_refuses(opened: Callable[..., Desk]) -> None:
    """MaxJobCount counts ended jobs, too: 2007."""
    slurm = opened(maximum_job_count=1)
    slurm.cancel(slurm.pending())
    assert slurm.submit().errors == [2007]


def test_a_plain_user_has_limits(slurm: Desk) -> None:
    """No other user, no admin comment, no chosen id, no negative nice."""
    denied = {2010: {}, 2002: {"admin_comment": "x"}, 2017: {"job_id": 5}, 2123: {"nice": -1}}
    for number, fields in denied.items():
        user = {"user_id": "bob" if number == 2010 else ...}
        body = {"job": job(**{**fields, **user})}
        answer = slurm.call("POST", "job/submit", body, token="pocket-alice-token")
        assert answer.errors == [number]


def test_bodies_that_are_no_submit(slurm: Desk) -> None:
    """Not JSON 400, no object 500/9209, nothing in it 422/9000, no components 500/11."""
    assert slurm.call("POST", "job/submit", b"{").status == 400
    assert slurm.call("POST", "job/submit", []).errors == [9209]
    assert slurm.call("POST", "job/submit", {"job": []}).errors == [9209]
    assert slurm.call("POST", "job/submit", {}).errors == [9000]
    assert slurm.call("POST", "job/submit", {"job": job(), "jobs": []}).errors == [9000]
    assert slurm.call("POST", "job/submit", {"jobs": []}).errors == [11]


def test_an_older_version_knows_no_external_jobs(slurm: Desk) -> None:
    """v0.0.42: an unknown flag, and then a missing script."""
    answer = slurm.call("POST", "job/submit", {"job": job()}, version="v0.0.42")
    assert (answer.status, answer.errors, answer.job_id) == (500, [9207, 9000], 0)
