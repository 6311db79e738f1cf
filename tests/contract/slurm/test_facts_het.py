"""Heterogeneous external jobs: how components are named, start together and end."""

import secrets

import pytest
from slurm_desk import ENDED, HELD, Desk, value

PENDING = {"PENDING"}
RUNNING = {"RUNNING"}
CANCELLED = {"CANCELLED"}


def held(desk: Desk) -> int:
    """Two components that will not start."""
    answer = desk.submit_het(HELD, HELD)
    assert answer.verdict == (200, []), answer.text
    return answer.job_id


def running(desk: Desk) -> int:
    """Two components that run."""
    answer = desk.submit_het({}, {})
    assert answer.verdict == (200, []), answer.text
    return desk.started(answer.job_id)


def test_the_answer_names_the_leader(each: Desk) -> None:
    """The components are jobs of their own that name the leader and their offset."""
    leader = held(each)
    found = [(job["job_id"], value(job["het_job_id"]), value(job["het_job_offset"])) for job in each.components(leader)]
    assert found == [(leader, leader, 0), (leader + 1, leader, 1)]


def test_a_component_alone_is_only_itself(each: Desk) -> None:
    """GET of a component answers with that one, GET of the leader with all."""
    leader = held(each)
    assert [job["job_id"] for job in each.components(leader + 1)] == [leader + 1]


def test_states_write_a_component_with_its_offset(each: Desk) -> None:
    """jobs/state writes "id+offset": no number; the leader's id lists all, a component's only it."""
    leader = held(each)
    both = {f"{leader}+0": PENDING, f"{leader + 1}+1": PENDING}
    assert each.states(leader) == both
    assert each.states(leader + 1) == {f"{leader + 1}+1": PENDING}


def test_the_offset_in_states_is_a_difference_of_ids(slurm: Desk) -> None:
    """With chosen ids that are not neighbours, the number after the plus is not the component's offset."""
    leader = 10_000_000 + secrets.randbelow(50_000_000)
    answer = slurm.submit_het({**HELD, "job_id": leader}, {**HELD, "job_id": leader + 5})
    assert answer.job_id == leader
    assert [value(job["het_job_offset"]) for job in slurm.components(leader)] == [0, 1]
    assert set(slurm.states(leader)) == {f"{leader}+0", f"{leader + 5}+5"}


def test_a_chosen_id_fences_the_leader(each: Desk) -> None:
    """The second submit with the leader's id is refused with 2011."""
    leader = 10_000_000 + secrets.randbelow(50_000_000)
    components = ({**HELD, "job_id": leader}, {**HELD, "job_id": leader + 1})
    assert each.submit_het(*components).job_id == leader
    assert each.submit_het(*components).verdict == (422, [2011])


def test_components_start_together_on_different_nodes(slurm: Desk) -> None:
    """Both run, each on a node of its own, and each has its own resources."""
    leader = running(slurm)
    assert slurm.states(leader) == {f"{leader}+0": RUNNING, f"{leader + 1}+1": RUNNING}
    first, second = slurm.resources(leader), slurm.resources(leader + 1)
    assert len(first) == len(second) == 1
    assert first.keys() != second.keys()


def test_components_never_share_a_node(slurm: Desk) -> None:
    """Two components that only one node fits wait for ever, though it has room for both."""
    nodes = slurm.nodes()
    (only, _) = slurm.machines("a100")
    (feature,) = [name for name in nodes[only]["features"] if name.startswith("rack")]
    component = {"partition": "gpu", "constraints": f"a100&{feature}"}
    alone = [name for name, node in nodes.items() if {"a100", feature} <= set(node["features"])]
    assert alone == [only]
    leader = slurm.submit_het(component, component).job_id
    assert slurm.stays(lambda: slurm.state(leader) == PENDING, leader, looks=1)


def test_components_pinned_to_one_node_are_refused(each: Desk) -> None:
    """The same required node in two components: 422 with 2018."""
    (node,) = each.idle("plain")
    pinned = {"required_nodes": [node]}
    assert each.submit_het(pinned, pinned).verdict == (422, [2018])


def test_a_refused_component_leaves_the_first_cancelled(each: Desk) -> None:
    """A het submit that is refused for its second component leaves the first as a CANCELLED job."""
    answer = each.submit_het({"name": f"{each.job_name}-left"}, {"partition": "nowhere"})
    assert answer.verdict == (422, [2000])
    left = [job for job in each.get("jobs/").json["jobs"] if job["name"] == f"{each.job_name}-left"]
    assert {word for job in left for word in job["job_state"]} == CANCELLED


def test_deleting_the_leader_ends_all(each: Desk) -> None:
    """DELETE on the leader's id ends every component."""
    leader = held(each)
    assert each.delete(leader).json["status"] == []
    assert all(ENDED & words for words in each.states(leader).values())


def test_deleting_a_running_leader_ends_all(slurm: Desk) -> None:
    """Running components end at once too."""
    leader = running(slurm)
    slurm.delete(leader)
    assert list(slurm.states(leader).values()) == [CANCELLED, CANCELLED]


def test_deleting_a_component_ends_only_it(slurm: Desk) -> None:
    """The others go on running, and deleting the leader then claims that all had ended."""
    leader = running(slurm)
    assert slurm.delete(leader + 1).json["status"] == []
    assert slurm.states(leader) == {f"{leader}+0": RUNNING, f"{leader + 1}+1": CANCELLED}
    told = [status["error"]["code"] for status in slurm.delete(leader).json["status"]]
    assert told == [2021, 2021]
    assert list(slurm.states(leader).values()) == [CANCELLED, CANCELLED]


def test_deleting_a_pending_component_ends_only_it(each: Desk) -> None:
    """The leader stays pending."""
    leader = held(each)
    each.delete(leader + 1)
    assert each.states(leader) == {f"{leader}+0": PENDING, f"{leader + 1}+1": CANCELLED}


@pytest.mark.parametrize("count", [1, 3])
def test_any_number_of_components_is_accepted(slurm: Desk, count: int) -> None:
    """Also one alone."""
    leader = slurm.submit_het(*[HELD] * count).job_id
    assert len(slurm.components(leader)) == count


def test_an_update_changes_the_component_that_it_names(each: Desk) -> None:
    """The leader's id stands for itself alone, other than in a cancel."""
    leader = held(each)
    assert each.update(leader, comment="first").verdict == (200, [])
    assert each.update(leader + 1, comment="second").verdict == (200, [])
    assert [job["comment"] for job in each.components(leader)] == ["first", "second"]


def test_a_held_component_is_warned_of_when_it_is_the_last(each: Desk) -> None:
    """Of the others nothing is said."""
    assert each.submit_het(HELD, {}).json["warnings"] == []
    (first, second) = each.submit_het({}, HELD).json["warnings"]
    words = "Job is in held state, pending scheduler release"
    assert first["description"] == f"HetJob submission resulted in non-zero return code: {words}"
    assert second["description"] == words


def test_a_component_is_named_by_the_distance_of_its_id(slurm: Desk) -> None:
    """Where the leader's id was chosen, "leader+1" is nothing."""
    chosen = slurm.submit_het({**HELD, "job_id": 10_000_000 + secrets.randbelow(50_000_000)}, HELD).job_id
    assert slurm.get(f"job/{chosen}%2B1").verdict == (404, [2017])
    leader = held(slurm)
    assert [job["job_id"] for job in slurm.components(f"{leader}%2B1")] == [leader + 1]


@pytest.mark.ageing
@pytest.mark.patient
@pytest.mark.timeout(400)
def test_a_leader_cannot_be_read_when_a_component_was_just_forgotten(slurm: Desk) -> None:
    """500 with -1 for half a minute, though its state and what it holds are told; then the rest is shown."""
    leader = running(slurm)
    slurm.delete(leader + 1)
    slurm.servers.pass_time(35)
    slurm.until(lambda: not slurm.states(leader + 1), "the component is forgotten", seconds=100)
    assert slurm.get(f"job/{leader}").verdict == (500, [-1])
    assert slurm.states(leader) == {f"{leader}+0": RUNNING}
    assert len(slurm.resources(leader)) == 1
    slurm.servers.pass_time(35)
    slurm.until(lambda: slurm.get(f"job/{leader}").status == 200, "the leader can be read", seconds=200)
    (left,) = slurm.components(leader)
    assert (left["job_id"], left["het_job_id_set"]) == (leader, f"{leader}-{leader + 1}")
