"""How jobs end by DELETE, one at a time and many at once, and what the answers claim."""

from slurm_desk import NEVER_USED, Desk


def codes(answer_json: dict[str, list[dict[str, dict[str, int]]]]) -> list[int]:
    """The numbers in the list of statuses."""
    return [status["error"]["code"] for status in answer_json["status"]]


def test_a_job_ends_at_once(each: Desk) -> None:
    """200 with an empty list, and the job is CANCELLED."""
    job_id = each.held()
    answer = each.delete(job_id)
    assert (answer.verdict, answer.json["status"]) == ((200, []), [])
    assert each.state(job_id) == {"CANCELLED"}


def test_a_running_job_ends_at_once(slurm: Desk) -> None:
    """CANCELLED in the next answer."""
    job_id = slurm.running()
    slurm.delete(job_id)
    assert slurm.state(job_id) == {"CANCELLED"}


def test_an_ended_job_is_answered_200(each: Desk) -> None:
    """200, no error, and 2021 in the list of statuses."""
    job_id = each.held()
    each.delete(job_id)
    answer = each.delete(job_id)
    assert answer.verdict == (200, [])
    assert codes(answer.json) == [2021]


def test_an_unknown_job_is_answered_200(each: Desk) -> None:
    """200, no error, and 2017 in the list of statuses, where only `step_id` names the job."""
    answer = each.delete(NEVER_USED)
    assert answer.verdict == (200, [])
    (status,) = answer.json["status"]
    assert (status["error"]["code"], status["step_id"], status["job_id"]["set"]) == (2017, str(NEVER_USED), False)


def test_an_impossible_id_is_refused(each: Desk) -> None:
    """Above the highest possible id: 404 with 2017."""
    assert each.delete(99_999_999).verdict == (404, [2017])


def test_words_as_an_id_are_refused(each: Desk) -> None:
    """422 with 9000 in the path, 422 with 2137 in a list."""
    assert each.ask("DELETE", "job/abc").verdict == (422, [9000])
    assert each.ask("DELETE", "jobs/", {"jobs": ["abc"]}).verdict == (422, [2137])


def test_many_end_in_one_call(each: Desk) -> None:
    """DELETE jobs/ ends all of a list; only what could not be ended has a status."""
    first, second, over = each.held(), each.held(), each.held()
    each.delete(over)
    answer = each.delete_many(first, over, NEVER_USED, second)
    assert answer.verdict == (200, [])
    told = {status["step_id"]: status["error"]["code"] for status in answer.json["status"]}
    assert told == {str(over): 2021, str(NEVER_USED): 2017}
    assert each.states(first, second) == {str(first): {"CANCELLED"}, str(second): {"CANCELLED"}}


def test_ids_may_be_numbers_in_the_list(each: Desk) -> None:
    """They work, with a warning each."""
    job_id = each.held()
    answer = each.ask("DELETE", "jobs/", {"jobs": [job_id]})
    assert answer.verdict == (200, [])
    assert str(job_id) in answer.warnings
    assert each.state(job_id) == {"CANCELLED"}


def test_an_empty_list_ends_nothing(each: Desk) -> None:
    """422 with 2173: the list must not be empty."""
    job_id = each.held()
    assert each.ask("DELETE", "jobs/", {"jobs": []}).verdict == (422, [2173])
    assert each.ask("DELETE", "jobs/", {}).verdict == (422, [2173])
    assert each.state(job_id) == {"PENDING"}


def test_a_user_may_end_their_own_job(each: Desk) -> None:
    """With their own token."""
    job_id = each.plain_user.held()
    assert each.plain_user.delete(job_id).json["status"] == []
    assert each.state(job_id) == {"CANCELLED"}


def test_an_external_job_cannot_be_requeued(slurm: Desk) -> None:
    """422 with 2039, and it runs on."""
    job_id = slurm.running()
    assert slurm.ask("POST", "jobs/requeue", {"jobs": [str(job_id)]}).verdict == (422, [2039])
    assert slurm.state(job_id) == {"RUNNING"}


def test_requeue_came_with_the_newest_version(slurm: Desk) -> None:
    """v0.0.43 and v0.0.44 answer 404."""
    for version in ("v0.0.43", "v0.0.44"):
        assert slurm.at(version).ask("POST", "jobs/requeue", {"jobs": ["1"]}).status == 404
