"""How a submit is answered: what is accepted, what is refused with which number, and which answers are misleading."""

import concurrent.futures
import secrets
from collections import Counter
from typing import Any

import pytest
import slurm_desk
from slurm_desk import Desk, number


def test_an_external_job_is_accepted_and_its_id_is_a_number(each: Desk) -> None:
    """POST job/submit answers 200 with a number as job_id and no errors."""
    answer = each.submit()
    assert answer.verdict == (200, [])
    assert isinstance(answer.json["job_id"], int)
    assert "EXTERNAL_JOB" in each.job(answer.job_id)["flags"]


def test_environment_and_directory_may_be_left_out(each: Desk) -> None:
    """An external job needs neither a script nor an environment nor a directory."""
    assert each.submit(environment=..., current_working_directory=..., **slurm_desk.HELD).verdict == (200, [])


def test_without_the_flag_a_script_is_wanted(each: Desk) -> None:
    """A job that is not external has to bring a script: 422 with 9000."""
    assert each.submit(flags=...).verdict == (422, [9000])


def test_the_version_before_external_jobs_refuses_the_flag(slurm: Desk) -> None:
    """v0.0.42 does not know EXTERNAL_JOB: 500 with 9207, and nothing is created."""
    answer = slurm.at("v0.0.42").submit()
    assert answer.status == 500
    assert answer.errors[0] == 9207
    assert not answer.job_id


def test_an_unknown_version_is_not_found(slurm: Desk) -> None:
    """A version that slurmrestd does not serve answers 404 in plain text."""
    answer = slurm.at("v0.0.99").get("ping/")
    assert answer.status == 404
    assert answer.headers["content-type"] == "text/plain"


REFUSED: dict[str, tuple[dict[str, Any], int, int]] = {
    "array": ({"array": "1-3"}, 422, 2081),
    "unknown partition": ({"partition": "nowhere"}, 422, 2000),
    "more cpus than any node has": ({"cpus_per_task": 300}, 422, 2014),
    "unknown gres": ({"tres_per_node": "gres/nothing:1"}, 422, 2072),
    "unknown gres type": ({"tres_per_node": "gres/gpu:nothing:1"}, 422, 2014),
    "unknown feature": ({"constraints": "nothing"}, 422, 2029),
    "unknown preferred feature": ({"prefer": "nothing"}, 422, 2133),
    "more nodes than tasks": ({"nodes": "3", "tasks": 2}, 422, 2025),
    "higher minimum than tasks": ({"minimum_nodes": 3, "tasks": 2}, 422, 2025),
    "unknown required node": ({"required_nodes": ["nowhere"]}, 422, 2018),
    "unknown excluded node": ({"excluded_nodes": ["nowhere"]}, 422, 2018),
    "empty name as required node": ({"required_nodes": [""]}, 422, 2006),
    "unknown reservation": ({"reservation": "nothing"}, 422, 2053),
    "unknown license": ({"licenses": "nothing:1"}, 422, 2048),
    "comment above 1024 bytes": ({"comment": "x" * 1025}, 422, 2012),
    "unknown user name": ({"user_id": "nobody-of-that-name"}, 422, 2166),
    "object where a node count stands": ({"nodes": {"number": 1}}, 500, 9202),
    "words where memory stands": ({"memory_per_node": "plenty"}, 500, 9202),
}


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.replace(" ", "-"))
def test_a_bad_request_is_refused_with_its_number(each: Desk, case: str) -> None:
    """What cannot work is refused with the number of its reason, and no job is named."""
    fields, status, code = REFUSED[case]
    answer = each.submit(**fields)
    assert answer.verdict == (status, [code])
    assert not answer.job_id


def test_a_conversion_error_says_where(each: Desk) -> None:
    """A wrong JSON type is answered with the path of the field."""
    error = each.submit(nodes={"number": 1}).json["errors"][0]
    assert error["source"] == "#/job/nodes/"


def test_a_refused_submit_may_leave_a_failed_job(each: Desk) -> None:
    """Refused in the selection of nodes (2014): a FAILED job with that id stays, and the id is taken."""
    wanted = _chosen()
    assert each.submit(job_id=wanted, cpus_per_task=300).verdict == (422, [2014])
    assert each.state(wanted) == {"FAILED"}
    assert each.job(wanted)["state_reason"] == "BadConstraints"
    assert each.submit(job_id=wanted).verdict == (422, [2011])


def test_an_early_refusal_leaves_nothing(each: Desk) -> None:
    """Refused before that (2000): the id can be used again."""
    wanted = _chosen()
    assert each.submit(job_id=wanted, partition="nowhere").verdict == (422, [2000])
    assert each.submit(job_id=wanted, **slurm_desk.HELD).job_id == wanted


def test_a_comment_of_1024_bytes_is_kept(slurm: Desk) -> None:
    """The longest comment that is accepted comes back whole."""
    job_id = slurm.held(comment="x" * 1024)
    assert slurm.job(job_id)["comment"] == "x" * 1024


def test_an_unknown_field_is_ignored_with_a_warning(each: Desk) -> None:
    """A field that Slurm does not know changes nothing but the warnings."""
    answer = each.submit(no_such_field=1, **slurm_desk.HELD)
    assert answer.verdict == (200, [])
    assert 'unknown field "no_such_field"' in answer.warnings


def test_an_accepted_submit_may_have_created_nothing(each: Desk) -> None:
    """A number that is none: 200, no error, only a warning, and no job_id."""
    answer = each.submit(tasks="abc")
    assert answer.verdict == (200, [])
    assert "job_id" not in answer.json
    assert "tasks" in answer.text


def test_a_number_as_object_creates_nothing(each: Desk) -> None:
    """cpus_per_task is a bare integer: the object form is answered 200 and creates nothing."""
    answer = each.submit(cpus_per_task=number(2))
    assert answer.verdict == (200, [])
    assert "job_id" not in answer.json


def test_a_failed_submit_may_have_created_the_job(each: Desk) -> None:
    """An unknown flag beside EXTERNAL_JOB: 500 with 9207, and a job that runs."""
    answer = each.submit(flags=["EXTERNAL_JOB", "NO_SUCH_FLAG"])
    assert answer.verdict == (500, [9207])
    assert answer.job_id
    assert each.started(answer.job_id)


def test_a_negative_number_of_tasks_is_accepted(slurm: Desk) -> None:
    """Numbers are cast, not checked."""
    assert slurm.submit(tasks=-5, **slurm_desk.HELD).job_id


def test_unparsable_json_is_answered_in_plain_text(each: Desk) -> None:
    """400, and the body is no JSON."""
    answer = each.ask("POST", "job/submit", "{nope")
    assert answer.status == 400
    assert answer.headers["content-type"] == "text/plain"


def test_an_empty_body_lacks_a_script(each: Desk) -> None:
    """No job at all is refused like a job without a script."""
    assert each.ask("POST", "job/submit", "").verdict == (422, [9000])


def test_a_list_as_body_is_refused(each: Desk) -> None:
    """500 with 9209."""
    assert each.ask("POST", "job/submit", []).verdict == (500, [9209])


def test_more_nodes_than_there_are_is_a_warning_and_a_pending_job(each: Desk) -> None:
    """What is not available now is accepted: 200 with warnings, and the job waits."""
    answer = each.submit(nodes="90", tasks=90)
    assert answer.verdict == (200, [])
    assert "not available now" in answer.warnings
    each.until(lambda: each.job(answer.job_id)["state_reason"] == "PartitionNodeLimit", "the reason is known")
    assert each.state(answer.job_id) == {"PENDING"}


def test_more_cpus_than_the_partition_has_is_only_a_warning(slurm: Desk) -> None:
    """Too many for any node is refused, too many for all of them together is accepted and waits for ever."""
    answer = slurm.submit(cpus_per_task=5000)
    assert answer.verdict == (200, [])
    assert "not available now" in answer.warnings


def test_a_partition_that_is_down_accepts_jobs(slurm: Desk) -> None:
    """A closed partition says so in a warning and as the job's reason."""
    answer = slurm.submit(partition="closed")
    assert "DOWN" in answer.warnings
    slurm.until(lambda: slurm.job(answer.job_id)["state_reason"] == "PartitionDown", "the reason is known")


def test_priority_zero_is_a_hold(each: Desk) -> None:
    """A job of priority 0 is held by its user, and the answer warns."""
    answer = each.submit(priority=number(0))
    assert "held state" in answer.warnings
    job = each.job(answer.job_id)
    assert (job["hold"], job["state_reason"], job["job_state"]) == (True, "JobHeldUser", ["PENDING"])


def test_a_hold_may_be_asked_for(slurm: Desk) -> None:
    """`hold` does the same as priority 0."""
    assert slurm.job(slurm.pending(hold=True))["state_reason"] == "JobHeldUser"


def test_a_job_that_cannot_start_at_once_is_refused_when_it_should(slurm: Desk) -> None:
    """`immediate` where nothing can start: 422 with 2078."""
    assert slurm.submit(immediate=True, partition="closed").verdict == (422, [2078])


def test_immediate_fails_behind_a_queue_although_nodes_are_free(slurm: Desk) -> None:
    """With a job waiting ahead, `immediate` is refused even where nodes are free."""
    (node,) = slurm.idle("plain")
    slurm.running(required_nodes=[node], **slurm_desk.WHOLE_NODE)
    waiting = slurm.pending(required_nodes=[node])
    slurm.until(lambda: slurm.job(waiting)["state_reason"] == "Resources", "a job waits")
    assert slurm.submit(immediate=True).verdict == (422, [2078])


def test_immediate_on_a_free_partition_starts(slurm: Desk) -> None:
    """Without a queue, `immediate` is accepted."""
    answer = slurm.submit(immediate=True, partition="mapped")
    assert answer.verdict == (200, [])
    slurm.started(answer.job_id)


# -- whose job it is


def test_the_job_belongs_to_the_user_of_the_token(each: Desk) -> None:
    """Without user_id, and with the meaningless 99, it is the token's own user."""
    jobs = [each.job(each.held()), each.job(each.held(user_id="99"))]
    assert {job["user_name"] for job in jobs} == {"slurm"}
    assert each.job(each.plain_user.held())["user_name"] == "alice"


def test_an_operator_may_submit_for_another_user(each: Desk) -> None:
    """By number or by name; root is accepted too."""
    users = [each.job(each.held(user_id=user))["user_name"] for user in ("5001", "alice", "0")]
    assert users == ["slurm-bridge", "alice", "root"]


def test_a_plain_user_may_not_submit_for_another_user(each: Desk) -> None:
    """422 with 2010."""
    assert each.plain_user.submit(user_id="5003").verdict == (422, [2010])


def test_an_admin_comment_needs_an_operator(each: Desk) -> None:
    """A plain user's is refused with 2002; an operator's may be long."""
    assert each.plain_user.submit(admin_comment="x").verdict == (422, [2002])
    job_id = each.held(admin_comment="x" * 4000)
    assert each.job(job_id)["admin_comment"] == "x" * 4000


def test_a_negative_nice_needs_an_operator(each: Desk) -> None:
    """2123 for a plain user; only a positive nice is allowed."""
    assert each.plain_user.submit(nice=-5).verdict == (422, [2123])
    assert each.job(each.plain_user.held(nice=5))["nice"] == 5
    assert each.job(each.held(nice=-5))["nice"] == -5


# -- chosen ids


def _chosen() -> int:
    """An id that no earlier run has used."""
    return 10_000_000 + secrets.randbelow(50_000_000)


def test_a_chosen_id_is_given_once(each: Desk) -> None:
    """The second submit of the same id is refused with 2011, also after the job has ended."""
    wanted = _chosen()
    assert each.submit(job_id=wanted, **slurm_desk.HELD).job_id == wanted
    assert each.submit(job_id=wanted).verdict == (422, [2011])
    each.delete(wanted)
    assert each.submit(job_id=wanted).verdict == (422, [2011])


def test_a_chosen_id_is_a_fence_for_parallel_submits(slurm: Desk) -> None:
    """Of many submits of one id at once exactly one is accepted."""
    first = _chosen()

    def submit(count: int) -> tuple[int, list[int]]:
        return slurm.submit(job_id=first + count % 5, **slurm_desk.HELD).verdict

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = Counter(map(str, pool.map(submit, range(40))))
    assert answers == {"(200, [])": 5, "(422, [2011])": 35}


def test_a_chosen_id_does_not_move_the_counter(slurm: Desk) -> None:
    """The next automatic id goes on from the last automatic one; an id above MaxJobId is accepted too."""
    before = slurm.held()
    chosen = 67_108_864 + secrets.randbelow(1_000_000)
    assert slurm.held(job_id=chosen) == chosen
    assert before < slurm.held() < chosen


def test_a_plain_user_may_not_choose_the_id(each: Desk) -> None:
    """404 with 2017, as if the job did not exist."""
    assert each.plain_user.submit(job_id=_chosen()).verdict == (404, [2017])
