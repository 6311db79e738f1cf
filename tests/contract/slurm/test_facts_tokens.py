"""Authentication: tokens, user names, and the one call that does not check them."""

import pytest
from slurm_desk import NEWEST, Desk

READS = ("jobs/state/", "jobs/", "nodes/", "job/1")


@pytest.mark.parametrize("path", READS)
def test_a_wrong_token_is_511(each: Desk, path: str) -> None:
    """511 with 1007 on every read."""
    assert each.with_token("nonsense").get(path).verdict == (511, [1007])


def test_a_wrong_token_may_be_511_without_a_reason(each: Desk) -> None:
    """The partitions answer 511 with an empty list of errors."""
    assert each.with_token("nonsense").get("partitions/").verdict == (511, [])


def test_a_wrong_token_submits_nothing(each: Desk) -> None:
    """511 with 1007, and no job."""
    answer = each.with_token("nonsense").submit()
    assert answer.verdict == (511, [1007])
    assert not answer.job_id


def test_a_wrong_token_pings_200(each: Desk) -> None:
    """Ping answers 200 without an error; only inside it says that slurmctld did not respond."""
    answer = each.with_token("nonsense").get("ping/")
    assert answer.verdict == (200, [])
    (ping,) = answer.json["pings"]
    assert ping["responding"] is False
    assert ping.get("status") == ("Protocol authentication error" if each.version == NEWEST else None)
    assert ping.get("pinged") == (None if each.version == NEWEST else "DOWN")


def test_no_token_is_401(each: Desk) -> None:
    """401 in plain text, on ping as well."""
    for path in ("ping/", "jobs/state/"):
        answer = each.with_token(None).get(path)
        assert (answer.status, answer.text) == (401, "Authentication failure")
        assert answer.headers["content-type"] == "text/plain"


def test_the_user_name_may_be_left_out_or_repeated(each: Desk) -> None:
    """The token's own name changes nothing."""
    assert each.get("jobs/state/").status == 200
    assert each.ask("GET", "jobs/state/", headers={"X-SLURM-USER-NAME": "slurm"}).status == 200


def test_another_user_name_is_not_authenticated(each: Desk) -> None:
    """A plain user's token under an operator's name: 511 with 1007."""
    answer = each.plain_user.ask("GET", "jobs/state/", headers={"X-SLURM-USER-NAME": "slurm"})
    assert answer.verdict == (511, [1007])
