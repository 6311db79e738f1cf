"""What reads answer: full lists, changes since, states, resources, one by one; and what is empty but not gone."""

import itertools
import time
from typing import Any

import pytest
from slurm_desk import NEVER_USED, NEWEST, VERSIONS, Desk, value


def last_update(answer_json: dict[str, Any]) -> int:
    """The time that a list carries."""
    return int(answer_json["last_update"]["number"])


def test_a_job_has_its_id_as_number_and_its_state_as_list(each: Desk) -> None:
    """The full record, unlike jobs/state, writes the id as a number."""
    job = each.job(each.held())
    assert isinstance(job["job_id"], int)
    assert job["job_state"] == ["PENDING"]


def test_states_have_the_id_as_text(each: Desk) -> None:
    """jobs/state writes the id as a string and the state as a list."""
    job_id = each.held()
    assert each.get(f"jobs/state/?job_id={job_id}").json["jobs"] == [{"job_id": str(job_id), "state": ["PENDING"]}]


def test_states_of_several_ids_repeat_the_key(each: Desk) -> None:
    """Only those that were asked for are listed."""
    one, two, _ = each.held(), each.held(), each.held()
    assert set(each.states(one, two)) == {str(one), str(two)}


def test_states_leave_unknown_ids_out(each: Desk) -> None:
    """200, and the list has what is known; none of them known is an empty list."""
    job_id = each.held()
    assert set(each.states(job_id, NEVER_USED)) == {str(job_id)}
    answer = each.get(f"jobs/state/?job_id={NEVER_USED}")
    assert (answer.verdict, answer.json["jobs"]) == ((200, []), [])


def test_states_do_not_read_a_comma_list(each: Desk) -> None:
    """500, and the body is no JSON."""
    answer = each.get("jobs/state/?job_id=1,2")
    assert answer.status == 500
    assert answer.text == "Unspecified error"


def test_states_refuse_words(each: Desk) -> None:
    """422 with 9000."""
    assert each.get("jobs/state/?job_id=abc").verdict == (422, [9000])


def test_states_without_ids_list_all(each: Desk) -> None:
    """The jobs of all users, also ended ones."""
    ended, waiting = each.held(), each.held()
    each.delete(ended)
    listed = {job["job_id"]: job["state"] for job in each.get("jobs/state/").json["jobs"]}
    assert (listed[str(ended)], listed[str(waiting)]) == (["CANCELLED"], ["PENDING"])


def test_two_thousand_ids_are_answered(slurm: Desk) -> None:
    """Chunks of that size fit into the address whatever the ids."""
    job_id = slurm.held()
    assert set(slurm.states(job_id, *range(NEVER_USED, NEVER_USED + 2000))) == {str(job_id)}


def test_too_many_ids_are_too_long(slurm: Desk) -> None:
    """An address of more than 100 KB: 500 and plain text."""
    query = "&".join(f"job_id={job_id}" for job_id in range(NEVER_USED, NEVER_USED + 8000))
    answer = slurm.get(f"jobs/state/?{query}")
    assert answer.status == 500
    assert answer.text == "Insane message length"


def test_an_unknown_job_is_not_found(each: Desk) -> None:
    """404 with 2017."""
    assert each.get(f"job/{NEVER_USED}").verdict == (404, [2017])


def test_a_full_list_has_the_time_of_the_last_change(each: Desk) -> None:
    """`last_update` is what `update_time` may be given next."""
    job_id = each.held()
    body = each.get("jobs/").json
    assert job_id in [job["job_id"] for job in body["jobs"]]
    assert last_update(body) > 0


def test_no_change_is_an_empty_list(each: Desk) -> None:
    """`update_time` of now: 200, no jobs, and a warning that says why."""
    each.held()
    answer = each.get(f"jobs/?update_time={int(time.time()) + 3600}")
    assert (answer.verdict, answer.json["jobs"]) == ((200, []), [])
    assert "No job changes" in answer.warnings


def test_any_change_is_the_full_list(each: Desk) -> None:
    """One job changed after that time: all jobs are listed."""
    one, two = each.held(), each.held()
    since = last_update(each.get("jobs/").json) - 1
    listed = {job["job_id"] for job in each.get(f"jobs/?update_time={since}").json["jobs"]}
    assert {one, two} <= listed


def test_a_bad_time_is_refused(each: Desk) -> None:
    """422 with 9202 and 9000."""
    assert each.get("jobs/?update_time=abc").verdict == (422, [9202, 9000])


def test_an_unknown_parameter_is_ignored(each: Desk) -> None:
    """A warning, and the full list."""
    answer = each.get("jobs/?no_such_parameter=1")
    assert answer.verdict == (200, [])
    assert "no_such_parameter" in answer.warnings


def test_unchanged_nodes_are_304(each: Desk) -> None:
    """The nodes since their last change: 304 without a body."""
    answer = each.get(f"nodes/?update_time={int(time.time()) + 3600}")
    assert (answer.status, answer.text) == (304, "")


def test_unchanged_partitions_are_304(each: Desk) -> None:
    """Likewise."""
    answer = each.get(f"partitions/?update_time={int(time.time()) + 3600}")
    assert (answer.status, answer.text) == (304, "")


def test_an_unknown_node_is_200_and_nothing(each: Desk) -> None:
    """200, error number 0, and no nodes."""
    answer = each.get("node/nowhere")
    assert answer.verdict == (200, [0])
    assert not answer.json.get("nodes")


def test_an_unknown_partition_is_200_and_nothing(each: Desk) -> None:
    """200, a warning, and no partitions."""
    answer = each.get("partition/nowhere")
    assert answer.verdict == (200, [])
    assert "nowhere" in answer.warnings
    assert not answer.json.get("partitions")


def test_nodes_say_what_they_have(each: Desk) -> None:
    """CPUs, memory, threads, GPUs, features and partitions."""
    name = each.machines("a100")[0]
    node = each.node(name)
    assert (node["gres"], node["threads"], node["features"][0]) == ("gpu:a100:8", 1, "a100")
    assert {"debug", "gpu"} <= set(node["partitions"])
    assert each.node(each.machines("smt")[0])["threads"] == 2


def test_nodes_are_external_from_v0_0_44(each: Desk) -> None:
    """v0.0.43 does not show it."""
    words = set(each.node(each.machines("plain")[0])["state"])
    assert ("EXTERNAL" in words) == (each.version != "v0.0.43")


def test_partitions_have_their_limits(each: Desk) -> None:
    """Default and maximum time in minutes, nodes as a hostlist, states as a list."""
    (partition,) = each.get("partition/limited").json["partitions"]
    assert value(partition["defaults"]["time"]) == 5
    assert value(partition["maximums"]["time"]) == 10
    assert partition["partition"]["state"] == ["UP"]
    assert partition["nodes"]["configured"]
    (closed,) = each.get("partition/closed").json["partitions"]
    assert closed["partition"]["state"] == ["DOWN"]


def test_resources_of_a_running_job(slurm: Desk) -> None:
    """Per node: the memory, the cores as a bitmap, the GPUs; from v0.0.44 on."""
    job_id = slurm.running(tasks=2, nodes="2", partition="gpu", constraints="gpu", tres_per_node="gres/gpu:1")
    for version in VERSIONS[1:]:
        nodes = slurm.at(version).get(f"resources/{job_id}").json["nodes"]
        assert [node["mem_alloc"] for node in nodes] == [100, 100]
        assert [int(node["core_bitmap"], 16).bit_count() for node in nodes] == [1, 1]
        assert [gres["count"] for node in nodes for gres in node["gres"]] == [1, 1]


def test_resources_are_unknown_to_v0_0_43(slurm: Desk) -> None:
    """404 in plain text."""
    assert slurm.at("v0.0.43").get(f"resources/{slurm.held()}").status == 404


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_resources_of_a_job_that_does_not_run(slurm: Desk, version: str) -> None:
    """Pending and ended: 422 with 2085. Unknown: 404 with 2017."""
    mine = slurm.at(version)
    pending, ended = mine.held(), mine.held()
    mine.delete(ended)
    assert mine.get(f"resources/{pending}").verdict == (422, [2085])
    assert mine.get(f"resources/{ended}").verdict == (422, [2085])
    assert mine.get(f"resources/{NEVER_USED}").verdict == (404, [2017])


def test_a_running_job_is_in_the_full_list_with_its_nodes(slurm: Desk) -> None:
    """The full list carries the allocation too."""
    job_id = slurm.running(tasks=2, nodes="2")
    (job,) = [job for job in slurm.get("jobs/").json["jobs"] if job["job_id"] == job_id]
    allocated = job["job_resources"]["nodes"]["allocation"]
    assert {node["name"] for node in allocated} == set(slurm.resources(job_id))
    assert [node["memory"]["allocated"] for node in allocated] == [100, 100]


def test_a_record_without_details_lacks_only_what_each_node_gives(each: Desk) -> None:
    """Flags that leave DETAIL out save the allocation per node and its devices, and nothing else."""
    job_id = each.running()
    full, brief = (each.get(f"job/{job_id}{query}").json["jobs"][0] for query in ("", "?flags=ALL&flags=LOCAL"))
    assert {name for name in full if full[name] != brief[name]} == {"job_resources"}
    assert brief["nodes"] == full["nodes"] != ""
    assert not (brief["job_resources"] or {}).get("nodes")


def test_an_identity_that_is_never_reissued(slurm: Desk) -> None:
    """From v0.0.44 on, `step_id.sluid` tells two jobs of one id apart."""
    job_id = slurm.held()
    for version in VERSIONS[1:]:
        assert slurm.at(version).job(job_id)["step_id"]["sluid"].startswith("s")
    assert not slurm.at("v0.0.43").job(job_id).get("step_id")
    assert slurm.job(slurm.held())["step_id"]["sluid"] != slurm.job(job_id)["step_id"]["sluid"]


def test_a_plain_user_sees_everybodys_jobs(each: Desk) -> None:
    """Reading needs no operator."""
    job_id = each.held()
    assert each.plain_user.job(job_id)["user_name"] == "slurm"


def test_ids_count_up(slurm: Desk) -> None:
    """Each automatic id is above the one before."""
    ids = [slurm.held() for _ in range(4)]
    assert all(before < after for before, after in itertools.pairwise(ids))


# -- ping


def test_ping_tells_that_slurmctld_answers(each: Desk) -> None:
    """`responding` in every version; v0.0.45 adds a status, the others `pinged`."""
    (ping,) = each.get("ping/").json["pings"]
    assert ping["responding"] is True
    assert ping["primary"] is True
    assert ping.get("status") == ("No error" if each.version == NEWEST else None)
    assert ping.get("pinged") == (None if each.version == NEWEST else "UP")


def test_the_version_of_slurm_is_in_every_answer(each: Desk) -> None:
    """`meta.slurm.version` has major, minor and micro as text."""
    version = each.get("ping/").json["meta"]["slurm"]["version"]
    assert [version[part].isdigit() for part in ("major", "minor", "micro")] == [True, True, True]


def test_the_versions_that_are_served_are_in_the_specification(slurm: Desk) -> None:
    """GET /openapi/v3 names a ping for each of them."""
    paths = slurm.door.ask("GET", "/openapi/v3").json["paths"]
    assert {f"/slurm/{version}/ping/" for version in VERSIONS} <= set(paths)


# -- connections


def test_a_good_answer_keeps_the_connection(each: Desk) -> None:
    """No Connection header on a 200."""
    assert "connection" not in each.get("ping/").headers


@pytest.mark.parametrize("path", [f"job/{NEVER_USED}", "no/such/path", "jobs/state/?job_id=1,2"])
def test_every_error_closes_the_connection(each: Desk, path: str) -> None:
    """`Connection: Close`, whatever the error."""
    assert each.get(path).headers["connection"].lower() == "close"


def test_a_connection_serves_many_requests(slurm: Desk) -> None:
    """Until an error closes it, one connection does."""
    answers = slurm.in_turn("ping/", "jobs/state/", f"job/{NEVER_USED}", "ping/")
    assert [answer.status for answer in answers] == [200, 200, 404, 200]


def test_chunked_requests_are_refused(slurm: Desk) -> None:
    """Requests carry their length: whatever the client error, nothing is done."""
    answer = slurm.ask("POST", "job/submit", headers={"Transfer-Encoding": "chunked"})
    assert answer.status in (406, 411)
    assert not answer.job_id
