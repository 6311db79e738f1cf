"""Wrong tokens, a hung slurmctld, none at all, a crash: what each verb says, and what is true afterwards."""

import pytest
from pocket_desk import Desk, job

from slurm_bridge.sim.slurm import api, failures


def test_no_token_is_401_and_a_wrong_one_511(slurm: Desk) -> None:
    """But a wrong token on ping is 200, with the truth inside."""
    assert slurm.call("GET", "nodes/", token=None).status == 401
    wrong = slurm.call("GET", "nodes/", token="wrong")
    assert (wrong.status, wrong.errors) == (511, [1007])
    ping = slurm.call("GET", "ping/", token="wrong")
    assert (ping.status, ping.body["pings"][0]["responding"]) == (200, False)


@pytest.mark.parametrize(
    ("method", "path", "hung", "down"),
    [
        ("GET", "jobs/state/", (500, [-1]), (500, [-1])),
        ("GET", "jobs/", (504, [5004]), (502, [1800])),
        ("GET", "job/1", (500, [-1]), (500, [-1])),
        ("GET", "resources/1", (500, [-1]), (500, [-1])),
        ("GET", "nodes/", (504, [5004]), (502, [1800])),
        ("GET", "partitions/", (504, []), (502, [])),
        ("GET", "licenses/", (504, [5004]), (502, [1800])),
        ("DELETE", "job/1", (403, [1]), (403, [1])),
        ("POST", "job/1", (500, [1000]), (500, [1000])),
        ("POST", "job/submit", (504, [5004]), (502, [1800])),
        ("POST", "node/ext001", (504, [5004]), (502, [1800])),
    ],
)
def test_the_table_of_outages(
    slurm: Desk, method: str, path: str, hung: tuple[int, list[int]], down: tuple[int, list[int]]
) -> None:
    """Every verb has its own way of not knowing."""
    slurm.control.hang()
    answer = slurm.call(method, path, {} if method == "POST" else None)
    assert (answer.status, answer.errors) == hung
    slurm.control.down()
    answer = slurm.call(method, path, {} if method == "POST" else None)
    assert (answer.status, answer.errors) == down


def test_ping_says_so_in_an_outage(slurm: Desk) -> None:
    """200, not responding."""
    slurm.control.down()
    ping = slurm.call("GET", "ping/")
    assert (ping.status, ping.body["pings"][0]["responding"]) == (200, False)


def test_every_verb_has_words_for_failure() -> None:
    """A new route without them would break where it matters."""
    assert {route.name for route in api.ROUTES} - {"ping"} <= set(failures.VOICES)


def test_a_hung_slurmctld_does_it_later(slurm: Desk) -> None:
    """A submit that timed out made the job, and a cancel that was "not permitted" ended one."""
    victim = slurm.running()
    slurm.control.hang()
    assert slurm.submit(name="late").status == 504
    assert slurm.cancel(victim).status == 403
    slurm.control.up()
    assert slurm.state(victim) == "CANCELLED"
    assert [found.ask.name for found in slurm.control.jobs().values() if found.pending] == ["late"]


def test_a_killed_slurmctld_never_does_it(slurm: Desk) -> None:
    """What it was sent dies with it."""
    slurm.control.hang()
    slurm.submit()
    slurm.control.down()
    slurm.control.up()
    assert slurm.control.jobs() == {}


def test_a_crash_loses_the_last_seconds_and_issues_ids_again(slurm: Desk) -> None:
    """Older jobs are as they were: a job that was cancelled runs again."""
    old = slurm.running()
    slurm.control.advance(10)
    lost = slurm.pending()
    slurm.cancel(old)
    slurm.control.crash(lose_seconds=5)
    assert slurm.state(old) == "RUNNING"
    assert slurm.node("ext001")["alloc_cpus"] == 1
    again = slurm.call("POST", "job/submit", {"job": job(name="another")}).job_id
    assert again == lost
    assert slurm.job(again)["name"] == "another"


def test_a_crash_takes_a_start_back(slurm: Desk) -> None:
    """A job that started after the last save pends again."""
    job_id = slurm.pending()
    slurm.control.advance(10)
    held = slurm.control.job(job_id)
    assert held.running
    slurm.control.crash(lose_seconds=11)
    assert slurm.control.jobs() == {}


def test_an_operator_may_act_for_others_and_nobody_else() -> None:
    """Another's name with a plain token is a wrong token."""
    known, operators = {"op": "root", "al": "alice"}, frozenset({"root"})

    def caller(token: str, name: str) -> str | None:
        return api.caller({"x-slurm-user-token": token, "x-slurm-user-name": name}, known, operators)

    assert caller("op", "alice") == "alice"
    assert caller("al", "root") == ""
    assert api.caller({"authorization": "Bearer al"}, known, operators) == "alice"
