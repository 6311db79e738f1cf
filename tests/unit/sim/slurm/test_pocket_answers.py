"""The shapes of answers, version by version."""

import pytest
from pocket_desk import Desk


def test_states_are_short(slurm: Desk) -> None:
    """Ids are text, words a list; unknown ids are left out, and a comma is an error."""
    one, two = slurm.running(), slurm.pending(hold=True)
    everything = slurm.call("GET", "jobs/state/").body["jobs"]
    assert everything == [{"job_id": str(one), "state": ["RUNNING"]}, {"job_id": str(two), "state": ["PENDING"]}]
    assert slurm.call("GET", f"jobs/state/?job_id={two}&job_id=999").body["jobs"] == everything[1:]
    assert slurm.call("GET", "jobs/state/?job_id=1,2").status == 500
    assert slurm.call("GET", "jobs/state/?job_id=x").errors == [9000]


def test_components_are_written_as_differences(slurm: Desk) -> None:
    """`2+1` is the id and its distance from the leader, which a chosen id of the leader makes absurd."""
    plain, chosen = slurm.het({}, {}).job_id, slurm.het({"job_id": 950}, {}).job_id
    words = [line["job_id"] for line in slurm.call("GET", "jobs/state/").body["jobs"]]
    assert words == [f"{plain}+0", f"{plain + 1}+1", "950+0", f"3+{2**32 - 947}"]
    found = slurm.call("GET", f"job/{chosen}").body["jobs"]
    assert [(job["job_id"], job["het_job_offset"]["number"], job["het_job_id_set"]) for job in found] == [
        (950, 0, "3,950"),
        (3, 1, "3,950"),
    ]
    assert [job["job_id"] for job in slurm.call("GET", f"job/{plain}%2B1".replace("%2B", "+")).body["jobs"]] == [2]


def test_an_allocation_is_told_while_it_lasts(slurm: Desk) -> None:
    """2085 before and after, 2017 for an unknown job, and no such path in v0.0.43."""
    job_id = slurm.pending(tasks=3)
    assert slurm.call("GET", f"resources/{job_id}").errors == [2085]
    slurm.slurm.tick()
    (share,) = slurm.call("GET", f"resources/{job_id}").body["nodes"]
    assert (share["mem_alloc"], share["core_bitmap"], share["gres"]) == (100, "0x0000000000000007", [])
    assert slurm.call("GET", f"resources/{job_id}", version="v0.0.43").status == 404
    slurm.cancel(job_id)
    assert slurm.call("GET", f"resources/{job_id}").errors == [2085]
    assert slurm.call("GET", "resources/999").errors == [2017]


def test_a_full_record_holds_the_allocation(slurm: Desk) -> None:
    """`job_resources` lists nodes with cpus and memory; it is null before the start."""
    job_id = slurm.pending(tasks=2)
    assert slurm.job(job_id)["job_resources"] is None
    slurm.slurm.tick()
    (node,) = slurm.job(job_id)["job_resources"]["nodes"]["allocation"]
    assert (node["cpus"]["count"], node["memory"]["allocated"]) == (2, 100)


@pytest.mark.parametrize(
    ("version", "missing", "present"),
    [
        ("v0.0.43", {"step_id", "submit_line", "container_type"}, {"power"}),
        ("v0.0.44", {"container_type"}, {"power", "step_id"}),
        ("v0.0.45", {"power"}, {"step_id", "container_type"}),
    ],
)
def test_jobs_differ_by_version(slurm: Desk, version: str, missing: set[str], present: set[str]) -> None:
    """The older ones lack some fields and have `power`."""
    job_id = slurm.pending()
    found = set(slurm.call("GET", f"job/{job_id}", version=version).body["jobs"][0])
    assert present <= found
    assert not missing & found


@pytest.mark.parametrize(("version", "words"), [("v0.0.43", ["IDLE"]), ("v0.0.44", ["IDLE", "EXTERNAL"])])
def test_the_word_external_came_later(slurm: Desk, version: str, words: list[str]) -> None:
    """v0.0.43 does not show it."""
    assert slurm.call("GET", "node/ext001", version=version).body["nodes"][0]["state"] == words


def test_ping_differs_by_version(slurm: Desk) -> None:
    """v0.0.45 has a status, the older ones say UP and primary."""
    newest, older = (slurm.call("GET", "ping/", version=v).body["pings"][0] for v in ("v0.0.45", "v0.0.43"))
    assert (newest["responding"], newest["status"]) == (True, "No error")
    assert (older["pinged"], older["mode"]) == ("UP", "primary")


def test_nothing_new_is_no_list(slurm: Desk) -> None:
    """Jobs: 200, empty, with a warning; nodes and partitions: 304."""
    slurm.pending()
    later = int(slurm.clock.wall()) + 5
    answer = slurm.call("GET", f"jobs/?update_time={later}")
    assert (answer.status, answer.body["jobs"]) == (200, [])
    assert "No job changes" in answer.warnings
    assert slurm.call("GET", f"nodes/?update_time={later}").status == 304
    assert slurm.call("GET", f"partitions/?update_time={later}").status == 304
    assert len(slurm.call("GET", f"jobs/?update_time={later - 5}").body["jobs"]) == 1
    assert slurm.call("GET", "jobs/?update_time=abc").errors == [9202, 9000]


def test_unknown_names_answer_in_their_own_ways(slurm: Desk) -> None:
    """A node 200 with error 0, a partition 200 with a warning, a job 404."""
    node = slurm.call("GET", "node/nowhere")
    assert (node.status, node.errors, "nodes" in node.body) == (200, [0], False)
    assert "Unable to find" in slurm.call("GET", "partition/nowhere").warnings
    assert slurm.call("GET", "reservation/nowhere").errors == [0]
    assert slurm.call("GET", "job/999").status == 404
    assert slurm.call("GET", "job/abc").errors == [9000]


def test_partitions_tell_their_rules(slurm: Desk) -> None:
    """State, limits and nodes."""
    found = {entry["name"]: entry for entry in slurm.call("GET", "partitions/").body["partitions"]}
    assert found["debug"]["flags"] == ["DEFAULT"]
    assert found["limited"]["maximums"]["time"]["number"] == 10
    assert found["closed"]["partition"]["state"] == ["DOWN"]
    assert found["gpu"]["nodes"]["configured"] == "ext[007-016]"


def test_licenses_and_diag_count(slurm: Desk) -> None:
    """What is used, and how many jobs there are."""
    slurm.running(licenses="matlab:3")
    licenses = slurm.call("GET", "licenses/").body["licenses"]
    assert [(entry["LicenseName"], entry["Free"]) for entry in licenses] == [("matlab", 7), ("ansys", 2)]
    assert slurm.call("GET", "diag/").body["statistics"]["jobs_running"] == 1


def test_the_document_names_versions_and_paths(slurm: Desk) -> None:
    """What a client negotiates by."""
    document = slurm.call("GET", "/openapi/v3").body
    plugins = [entry["plugin"] for entry in document["info"]["x-slurm"]["data_parsers"]]
    assert plugins == ["v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45"]
    assert "/slurm/v0.0.44/resources/{job_id}" in document["paths"]
    assert "/slurm/v0.0.43/resources/{job_id}" not in document["paths"]


def test_a_version_that_is_not_served_is_nowhere(slurm: Desk) -> None:
    """404 in plain text, as for any unknown path or method."""
    assert slurm.call("GET", "ping/", version="v0.0.99").status == 404
    assert slurm.call("PUT", "job/1").status == 404
