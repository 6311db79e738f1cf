"""How jobs end by order."""

from collections.abc import Callable
from typing import Any

from pocket_desk import Desk


def codes(answer: Any) -> list[tuple[str, int]]:
    """Step and number of every line of the status."""
    return [(line["step_id"], line["error"]["code"]) for line in answer.body["status"]]


def test_a_job_ends_at_once_and_its_node_is_free(slurm: Desk) -> None:
    """CANCELLED without COMPLETING; a pending one keeps the reason for which it waited."""
    running, held = slurm.running(), slurm.pending(hold=True)
    assert [codes(slurm.cancel(job_id)) for job_id in (running, held)] == [[], []]
    assert slurm.job(running)["job_state"] == ["CANCELLED"]
    assert slurm.job(held)["state_reason"] == "JobHeldUser"
    assert slurm.node("ext001")["alloc_cpus"] == 0


def test_an_ended_or_unknown_job_is_answered_200(slurm: Desk) -> None:
    """With 2021 and 2017 inside; beyond the highest id 404."""
    job_id = slurm.pending()
    slurm.cancel(job_id)
    assert codes(slurm.cancel(job_id)) == [(str(job_id), 2021)]
    assert codes(slurm.cancel(999)) == [("999", 2017)]
    assert slurm.cancel(99_999_999).status == 404


def test_many_end_in_one_call(slurm: Desk) -> None:
    """Numbers are taken with a warning; only failures are listed; words and nothing are refused."""
    one, two = slurm.pending(), slurm.pending()
    answer = slurm.call("DELETE", "jobs/", {"jobs": [str(one), two, "999"]})
    assert codes(answer) == [("999", 2017)]
    assert "integer" in answer.warnings
    assert slurm.call("DELETE", "jobs/", {"jobs": ["abc"]}).errors == [2137]
    assert slurm.call("DELETE", "jobs/", {"jobs": []}).errors == [2173]


def test_the_leader_stands_for_all(slurm: Desk) -> None:
    """A component ends alone; the leader then ends the rest, and is reported as if it had not."""
    leader = slurm.het({}, {}, {}).job_id
    slurm.slurm.tick()
    assert codes(slurm.cancel(leader + 1)) == []
    assert slurm.state(leader) == "RUNNING"
    assert codes(slurm.cancel(leader)) == [(f"{leader}+1", 2021), (str(leader), 2021)]
    assert slurm.state(leader + 2) == "CANCELLED"


def test_a_signal_poisons_the_node(slurm: Desk) -> None:
    """The job runs on, its node stops responding; KILL by name or number is a cancel."""
    signalled, one, two = (slurm.running(required_nodes=[node]) for node in ("ext001", "ext002", "ext003"))
    slurm.call("DELETE", f"job/{signalled}?signal=TERM")
    slurm.call("DELETE", f"job/{one}?signal=KILL")
    slurm.call("DELETE", f"job/{two}?signal=9")
    assert [slurm.state(job_id) for job_id in (signalled, one, two)] == ["RUNNING", "CANCELLED", "CANCELLED"]
    assert slurm.node("ext001")["state"] == ["MIXED", "EXTERNAL", "NOT_RESPONDING"]


def test_a_plain_user_who_cancels_anothers_job_hangs_slurmctld(slurm: Desk) -> None:
    """403, and from then on nothing answers until it is killed and started again."""
    job_id = slurm.running()
    answer = slurm.call("DELETE", f"job/{job_id}", token="pocket-alice-token")
    assert (answer.status, answer.errors) == (403, [1])
    assert slurm.call("GET", "nodes/").errors == [5004]
    slurm.control.down()
    slurm.control.up()
    assert slurm.state(job_id) == "RUNNING"


def test_the_deadlock_can_be_left_out(opened: Callable[..., Desk]) -> None:
    """A world with accounting answers instead."""
    slurm = opened(hang_on_foreign_cancel=False)
    assert slurm.call("DELETE", f"job/{slurm.running()}", token="pocket-alice-token").status == 200


def test_requeue_is_refused(slurm: Desk) -> None:
    """2039, one by one as together; unknown before v0.0.45."""
    job_id = slurm.running()
    assert slurm.call("GET", f"job/{job_id}/requeue").errors == [2039]
    assert slurm.call("POST", "jobs/requeue", {"jobs": [str(job_id)]}).errors == [2039]
    assert slurm.call("GET", f"job/{job_id}/requeue", version="v0.0.44").status == 404
