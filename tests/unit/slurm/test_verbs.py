"""The verbs: how many calls they make, what they repeat, and that orders never raise."""

import json

import pytest

from slurm_bridge import errors
from slurm_bridge.model.job import Done, Gres, Phase, Refusal, Unknown
from slurm_bridge.slurm import fields
from tests.direct_line import NotAnswered, Silent
from tests.unit.slurm.samples import owner, problem, recorded, request


def rows(*ids: int) -> dict[str, object]:
    """Running jobs, as jobs/state lists them."""
    return {"jobs": [{"job_id": str(job_id), "state": ["RUNNING"]} for job_id in ids]}


def full(job_id: int = 9, **changes) -> dict[str, object]:
    """The waiting job that `request()` makes."""
    sent = fields.submit(request())
    known = {
        "job_id": job_id,
        "job_state": ["PENDING"],
        "admin_comment": sent["admin_comment"],
        "name": "train",
        "tasks": 1,
        "cpus": 1,
        "cpus_per_task": 1,
        "memory_per_node": 500,
        "node_count": 1,
        "flags": ["JOB_IMPLICIT_MAX_NODES"],
    }
    return {"jobs": [known | changes]}


def test_one_job_and_several_components_have_different_bodies(make, slurm):
    """A heterogeneous job is a list of components; the answer is the leader's id."""
    slurm.says("POST", "/job/submit", {"job_id": 5})
    client = make()
    assert client.submit(request()) == Done(job_id=5)
    assert client.submit(request(components=(request(tasks=2),))) == Done(job_id=5)
    one, two = (json.loads(body) for body in slurm.asked("POST", "/job/submit"))
    assert set(one) == {"job"}
    assert [each["tasks"] for each in two["jobs"]] == [1, 2]


def test_an_impossible_request_is_not_sent(make, slurm):
    """Also an owner record that is too long is refused before it is sent."""
    client = make()
    assert client.submit(request(tasks=0)).why is Refusal.INVALID
    assert client.update(9, request(tasks=0)).why is Refusal.INVALID
    assert client.submit(request(owner=owner("u" * 3000))).why is Refusal.INVALID
    assert client.note(9, owner("u" * 3000)).why is Refusal.INVALID
    assert len(slurm.calls) == 0


@pytest.mark.parametrize("lost", [Silent(), NotAnswered("reset")])
def test_orders_are_sent_once(make, slurm, lost):
    """A lost answer of an order is unknown; nobody sends it again."""
    for method, path in (("POST", "/job/submit"), ("POST", "/job/9"), ("DELETE", "/job/9")):
        slurm.says(method, path, lost)
    client = make()
    assert isinstance(client.submit(request()), Unknown)
    assert client.submit(request(job_id=77)).job_id == 77
    assert client.update(9, request()).job_id == 9
    assert client.note(9, owner()).job_id == 9
    assert client.cancel(9).job_id == 9
    assert len(slurm.calls) == 6  # and one ping


def test_reads_are_tried_again(make, slurm):
    """A read that got no good answer did nothing; the pause between tries is the clock's."""
    slurm.says("GET", "/jobs/state/", Silent())
    slurm.says("GET", "/jobs/state/", rows(1))
    assert set(make().states()) == {1}


def test_reads_are_given_up(make, slurm):
    """After the last try the error is raised as it is."""
    slurm.says("GET", "/jobs/state/", "<html>", 502, content_type="text/html")
    with pytest.raises(errors.Unanswered):
        make(read_tries=3).states()
    assert len(slurm.asked("GET", "/jobs/state/")) == 3


def test_a_stop_ends_the_trying(make, slurm):
    """Nobody waits for a slurmrestd that is down while the daemon is stopping."""
    slurm.says("GET", "/jobs/state/", "<html>", 502, content_type="text/html")
    client = make(read_tries=9)
    client._stop.set()
    with pytest.raises(errors.Unavailable, match="stopping"):
        client.states()
    assert len(slurm.asked("GET", "/jobs/state/")) == 1


def test_an_update_is_read_back(make, slurm):
    """Done means that Slurm shows the new shape."""
    slurm.says("POST", "/job/9", {"results": None, "errors": []})
    slurm.says("GET", "/job/9", full())
    assert make().update(9, request()) == Done(job_id=9)


def test_an_update_that_did_not_take_is_unknown(make, slurm):
    """Slurm answers 200 to fields that it keeps as they were."""
    slurm.says("POST", "/job/9", {"results": None, "errors": []})
    slurm.says("GET", "/job/9", full(required_nodes="n[1-2]"))
    outcome = make().update(9, request())
    assert isinstance(outcome, Unknown)
    assert "required_nodes" in outcome.message


@pytest.mark.parametrize(
    ("body", "status"),
    [({"jobs": [], "errors": [problem(2017)]}, 404), ({"errors": [problem(-1)]}, 500), ({"jobs": []}, 200)],
)
def test_an_update_that_cannot_be_read_back_is_unknown(make, slurm, body, status):
    """It may have taken; somebody has to look."""
    slurm.says("POST", "/job/9", {"results": None, "errors": []})
    slurm.says("GET", "/job/9", body, status)
    assert isinstance(make().update(9, request()), Unknown)


def test_a_refused_update_is_not_read_back(make, slurm):
    """The job has started and is as it was."""
    slurm.says("POST", "/job/9", {"results": None, "errors": [problem(2073)]}, 422)
    client = make()
    assert client.update(9, request()).why is Refusal.STARTED
    assert slurm.asked("GET", "/job/9") == []


def test_a_note_changes_nothing_but_the_record(make, slurm):
    """Without the guard: the note is for running jobs as well."""
    slurm.says("POST", "/job/9", {"results": None, "errors": []})
    assert make().note(9, owner()) == Done(job_id=9)
    assert set(json.loads(slurm.asked("POST", "/job/9")[0])) == {"admin_comment"}


def test_a_cancel_names_no_signal(make, slurm):
    """Any signal but Slurm's own choice spoils an external node."""
    slurm.says("DELETE", "/job/9", {"status": [], "errors": []})
    assert make().cancel(9) == Done(job_id=9)
    assert "signal" not in slurm.calls[-1].target


def test_nothing_to_ask_is_not_asked(make, slurm):
    """Empty collections cost no call."""
    client = make()
    assert client.states([]) == {}
    assert len(slurm.calls) == 0


def test_states_of_some_jobs_repeat_the_key(make, slurm):
    """A comma list is refused; ids that Slurm does not know are simply not in the answer."""
    slurm.says("GET", "/jobs/state/?job_id=1&job_id=2", rows(2))
    assert set(make().states([2, 1])) == {2}


def test_states_that_are_told_again_are_not_read_again(make, slurm):
    """Whatever the answer has around its rows; other rows, and an answer with an error, are read."""
    client, asked = make(), "/jobs/state/?job_id=1&job_id=2"
    slurm.says("GET", asked, rows(1, 2))
    slurm.says("GET", asked, {**rows(1, 2), "meta": {"command": ["again"]}})
    slurm.says("GET", asked, rows(2))
    slurm.says("GET", asked, {**rows(2), "errors": [{"error_number": 2017, "error": "gone"}]})
    first, again, other = (client.states([1, 2]) for _ in range(3))
    assert set(first) == {1, 2}
    assert all(again[job_id] is first[job_id] for job_id in first)
    assert set(other) == {2}
    with pytest.raises(errors.BridgeError, match="gone"):
        client.states([1, 2])


def test_states_that_cannot_be_read_are_told_each_time(make, slurm):
    """A row that is left out is noted again, and the next answer is read whole."""
    bad = {"jobs": [{"job_id": "1", "state": ["RUNNING"]}, {"job_id": "2", "state": 7}]}
    slurm.says("GET", "/jobs/state/?job_id=1&job_id=2", bad)
    client, heard = make(), []
    client._oddities.met = lambda *what: heard.append(what)
    assert [set(client.states([1, 2])) for _ in range(2)] == [{1}, {1}]
    assert len(heard) == 2


def test_a_component_alone_is_not_taken_for_its_leader(make, slurm):
    """Asked for a component, Slurm names only that: the leader's entry would be a part of the truth."""
    slurm.says("GET", "/jobs/state/?job_id=13", {"jobs": [{"job_id": "13+1", "state": ["RUNNING"]}]})
    assert set(make().states([13])) == {13}


@pytest.mark.parametrize(("asked", "calls"), [(2000, 1), (2001, 2), (6001, 4)])
def test_states_of_many_jobs_are_asked_in_parts(make, slurm, asked, calls):
    """Long URLs are refused as insane messages; what was not asked for is left out."""
    ids = range(1, asked + 1)
    slurm.says("GET", "/jobs/state/", rows(*ids, 99_999))
    found = make().states(ids)
    assert len(found) == asked
    assert len(slurm.calls) == calls + 1  # and one ping


def test_an_empty_list_of_states_is_believed_only_when_it_is_a_list(make, slurm):
    """`null` is what a controller in trouble says."""
    slurm.says("GET", "/jobs/state/", {"jobs": None, "errors": []})
    with pytest.raises(errors.BadAnswer):
        make().states()


def test_an_unknown_job_is_none(make, slurm):
    """By Slurm's number, or by an answer without it."""
    slurm.says("GET", "/job/9", {"jobs": [], "errors": [problem(2017)]}, 404)
    slurm.says("GET", "/job/10", {"jobs": []})
    client = make()
    assert client.job(9) is None
    assert client.job(10) is None


def test_of_a_heterogeneous_job_the_leader_is_shown(make, slurm):
    """The answer has all components."""
    slurm.says("GET", "/job/9", {"jobs": [*full(10)["jobs"], *full(9)["jobs"]]})
    view = make().job(9)
    assert view is not None
    assert view.job_id == 9


def test_find_goes_by_the_record_of_the_operator(make, slurm):
    """The same workload, whatever the attempt; a comment is no evidence, and foreign jobs are nobody's."""
    other = full(11, admin_comment='{"looks": "similar"}', comment=full()["jobs"][0]["admin_comment"])
    slurm.says(
        "GET", "/jobs/", {"jobs": [*full(9)["jobs"], *full(10, job_state=["CANCELLED"])["jobs"], *other["jobs"]]}
    )
    assert [view.job_id for view in make().find(owner())] == [9, 10]
    assert make().find(owner("other")) == []


@pytest.mark.parametrize("number", [2017, 2085])
def test_a_job_that_holds_nothing_has_no_allocation(make, slurm, number):
    """Not running yet, not any more, or not there."""
    slurm.says("GET", "/resources/9", {"nodes": [], "errors": [problem(number)]}, 422)
    assert make().allocation(9) is None


def test_any_other_refusal_of_an_allocation_is_raised(make, slurm):
    """Only two numbers mean "nothing"."""
    slurm.says("GET", "/resources/9", {"nodes": [], "errors": [problem(2084)]}, 422)
    with pytest.raises(errors.Conflict):
        make().allocation(9)


def test_nodes_are_asked_for_their_threads_once(make, slurm):
    """Two allocations on known nodes cost two calls, not four."""
    slurm.says("GET", "/resources/9", recorded("v0.0.45", "resources_smt").body.decode())
    slurm.says("GET", "/nodes/", recorded("v0.0.45", "nodes").body.decode())
    client = make(cache_ttl=0)
    assert {share.cpus for share in client.allocation(9).shares} == {4}
    client.allocation(9)
    assert len(slurm.asked("GET", "/nodes/")) == 1


def test_without_resources_the_full_job_tells_the_allocation(make, slurm):
    """v0.0.43 has no such path; asking for it would look like a version that disappeared."""
    known = json.loads(recorded("v0.0.43", "job_running").body)
    job_id = known["jobs"][0]["job_id"]
    slurm.says("GET", "/ping/", {"pings": []}, version="v0.0.43")
    slurm.says("GET", f"/job/{job_id}", known, version="v0.0.43")
    found = make(api_versions=("v0.0.43",)).allocation(job_id)
    assert found is not None
    assert found.nodes == ("ext007", "ext013")
    assert found.shares[0].gres == (Gres(name="gpu", count=2),)


@pytest.mark.parametrize("state", ["PENDING", "CANCELLED"])
def test_without_resources_only_a_living_job_holds_nodes(make, slurm, state):
    """The full record may still list what an ended job had."""
    known = json.loads(recorded("v0.0.43", "job_running").body)
    known["jobs"][0] |= {"job_id": 9, "job_state": [state]}
    slurm.says("GET", "/ping/", {"pings": []}, version="v0.0.43")
    slurm.says("GET", "/job/9", known, version="v0.0.43")
    assert make(api_versions=("v0.0.43",)).allocation(9) is None


@pytest.mark.parametrize("times", [(5, 4, 1), (5, 6, 2), (0, 0, 2)])
@pytest.mark.parametrize("verb", ["nodes", "partitions"])
def test_what_may_be_stale_is_kept_for_a_while(make, slurm, clock, verb, times):
    """For `cache_ttl` seconds of the injected clock; 0 asks every time."""
    ttl, later, calls = times
    slurm.says("GET", f"/{verb}/", recorded("v0.0.45", verb).body.decode())
    client = make(cache_ttl=ttl)
    first = getattr(client, verb)()
    clock.advance(later)
    assert getattr(client, verb)() == first
    assert len(slurm.asked("GET", f"/{verb}/")) == calls


def test_a_failure_is_not_kept(make, slurm):
    """The next reader asks again."""
    slurm.says("GET", "/nodes/", {"errors": [problem(2002)]}, 403)
    slurm.says("GET", "/nodes/", {"nodes": []})
    client = make()
    with pytest.raises(errors.NotAuthorized):
        client.nodes()
    assert client.nodes() == ()


def test_a_full_job_is_read_as_a_view(make, slurm):
    """Owner, phase and times of one job."""
    slurm.says("GET", "/job/9", full())
    view = make().job(9)
    assert view is not None
    assert view.owner == owner()
    assert view.state.phase is Phase.PENDING
