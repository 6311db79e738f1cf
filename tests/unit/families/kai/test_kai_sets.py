"""A workload is tried in one domain after the other, waits for one that is merely full, and is told nothing of them."""

import dataclasses

import pytest

from slurm_bridge.hooks.attempts import PLAIN, PlanState, Then
from slurm_bridge.hooks.chain import Chain, Plan
from slurm_bridge.model.verdict import Reject, Wait
from tests.unit.families.kai import racks
from tests.unit.families.kai.racks import PREFERRED, RACK, REQUIRED, TOPOLOGY, ZONE, cluster, planned, team, tried
from tests.unit.hooks.builders import Around

R1, R2, R3, R4 = "n0 n1", "n2 n3", "n4 n5", "n6 n7"


@pytest.fixture
def chain(around: Around) -> Chain:
    """With this hook alone."""
    return racks.chain(around)


class TestRequired:
    def test_nobody_who_does_not_ask_is_divided(self, chain: Chain) -> None:
        """The hook is not relevant, and there is one attempt."""
        assert planned(chain, team(), cluster()).course is PLAIN

    def test_each_rack_is_tried_and_none_is_left(self, chain: Chain) -> None:
        """In the fullest zone the fullest rack that has room now, those without room last; required sets stay."""
        plan = planned(chain, team(2, required=RACK), cluster(used={"n2": 8, "n4": 16, "n5": 16}))
        assert tried(plan)[:4] == [R4, R2, R1, R3]
        assert plan.course.attempts[-1].then is Then.STAY
        assert plan.excluded == {"n0", "n1", "n2", "n3", "n4", "n5"}

    def test_a_full_cluster_refuses_nobody(self, chain: Chain) -> None:
        """The workload waits in Slurm, for one of the racks that are large enough."""
        plan = planned(chain, team(4, required=RACK), cluster(used=dict.fromkeys(racks.PLACES, 16)))
        assert set(tried(plan)) == {R1, R2, R3, R4}

    def test_what_is_too_large_for_any_rack_waits(self, chain: Chain) -> None:
        """In the workload's own words, without any name of a set."""
        found = chain.plan(team(5, required=RACK), racks.asked(tasks=5), cluster(), now=1.0)
        said = "unschedulable on cluster: Job team/train has required one rack for its 5 pods"
        assert found == Wait(reason="Unschedulable", message=said)

    def test_nodes_outside_the_topology_are_in_no_rack(self, chain: Chain) -> None:
        """They lack a label."""
        seen = cluster({"n0": ("z1", "r1"), "n1": ("z1", "r1")})
        assert set(tried(planned(chain, team(2, required=RACK), seen))) == {R1}

    def test_it_is_looked_at_again_as_racks_fill_and_empty(self, chain: Chain) -> None:
        """Where there is more than one to choose from."""
        assert planned(chain, team(4, required=RACK), cluster()).moving


class TestPreferred:
    def test_racks_with_room_first_then_any_node(self, chain: Chain) -> None:
        """Three at most, 45 seconds each; a full rack is worth no wait."""
        plan = planned(chain, team(4, preferred=RACK), cluster(used={"n0": 16}))
        assert tried(plan) == [R2, R3, R4, "n0 n1 n2 n3", "n4 n5 n6 n7", "*"]
        assert [one.window_seconds for one in plan.course.attempts[:3]] == [45.0] * 3
        assert plan.course.attempts[-2].then is Then.WIDEN

    def test_a_rack_within_a_required_zone(self, chain: Chain) -> None:
        """Racks first, then the zones, and never further."""
        plan = planned(chain, team(2, required=ZONE, preferred=RACK), cluster(used={"n0": 8}))
        assert tried(plan)[:5] == [R1, R2, R3, "n0 n1 n2 n3", "n4 n5 n6 n7"]
        assert plan.course.attempts[-1].then is Then.STAY

    def test_a_full_rack_that_has_all_nodes_of_the_required_zone_is_waited_for(self, chain: Chain) -> None:
        """There is no wider domain with any of the nodes that the workload can have."""
        seen = cluster({"n0": ("z1", "r1"), "n1": ("z1", "r1")}, used={"n0": 16, "n1": 16})
        assert set(tried(planned(chain, team(2, required=ZONE, preferred=RACK), seen))) == {R1}

    def test_whom_no_rack_can_take_spreads_over_few(self, chain: Chain) -> None:
        """The roomiest racks fill up first, as far as they are needed."""
        plan = planned(chain, team(6, required=ZONE, preferred=RACK), cluster(used={"n0": 8}))
        assert {"n0 n1 n2 n3", "n4 n5 n6 n7"} <= set(tried(plan))


class TestTheSamePlan:
    def test_a_job_that_waits_keeps_its_order(self, chain: Chain) -> None:
        """Whatever is free meanwhile, and after a restart, which has the text alone."""
        first = planned(chain, team(4, required=RACK), cluster(used={"n2": 2}))
        before = PlanState.parse(first.state.text)
        assert before is not None
        moved = dataclasses.replace(before, attempt=1)
        later = planned(chain, team(4, required=RACK), cluster(used={"n6": 9}), previous=moved)
        assert tried(later) == tried(first)
        assert later.state == moved

    def test_another_wish_is_another_plan(self, chain: Chain) -> None:
        """It begins anew."""
        first = planned(chain, team(2, required=RACK), cluster())
        state = dataclasses.replace(first.state, attempt=1)
        assert planned(chain, team(2, required=ZONE), cluster(), previous=state).state.attempt == 0

    def test_who_has_tried_all_goes_where_there_is_room_by_then(self, chain: Chain) -> None:
        """A rack that had none when they were ordered."""
        full = dict.fromkeys(racks.PLACES, 16)
        first = planned(chain, team(4, required=RACK), cluster(used=full))
        state = dataclasses.replace(first.state, attempt=4)
        freed = {name: cpus for name, cpus in full.items() if name not in ("n6", "n7")}
        later = planned(chain, team(4, required=RACK), cluster(used=freed), previous=state)
        assert (tried(later)[0], later.state.attempt) == (R4, 0)
        stays = planned(chain, team(4, required=RACK), cluster(used=full), previous=state)
        assert (tried(stays), stays.state) == (tried(first), state)

    def test_racks_that_only_seemed_to_have_room_are_tried_again_when_they_have(self, chain: Chain) -> None:
        """All were believed to have room at first, and a job that was tried in all waits in the last one."""
        first = planned(chain, team(4, required=RACK), cluster())
        state = dataclasses.replace(first.state, attempt=4)
        freed = {name: 16 for name in racks.PLACES if name not in ("n6", "n7")}
        later = planned(chain, team(4, required=RACK), cluster(used=freed), previous=state)
        assert (tried(later)[0], later.state.attempt) == (R4, 0)
        again = dataclasses.replace(later.state, attempt=4)
        stays = planned(chain, team(4, required=RACK), cluster(used=freed), previous=again)
        assert stays.state == again

    def test_a_preferred_domain_that_is_left_is_not_tried_again(self, chain: Chain) -> None:
        """Each zone has two attempts, its best nodes first; the last attempt of all is any node."""
        first = planned(chain, team(3, cpus="16", preferred=RACK), cluster())
        assert tried(first)[-1] == "*"
        states = [dataclasses.replace(first.state, attempt=number) for number in range(len(tried(first)))]
        for state in states:
            assert planned(chain, team(3, cpus="16", preferred=RACK), cluster(), previous=state).state == state


WRONG = {
    "unknown level": ({"required": "shelf"}, f'{REQUIRED}="shelf" of Job team/train'),
    "unknown topology": (
        {"topology": "x", "required": RACK},
        f'{TOPOLOGY}="x" of Job team/train: use one of dc',
    ),
    "coarser": (
        {"required": RACK, "preferred": ZONE},
        f'{PREFERRED}="zone" of Job team/train: use the required',
    ),
    "alone": ({"topology": "dc"}, f'{TOPOLOGY}="dc" of Job team/train: use it together with'),
    "empty": ({"required": " "}, f'{REQUIRED}="" of Job team/train: use a value that is not empty'),
    "misspelt": ({"kai.scheduler/topology-require": RACK}, "of Job team/train is not known: use one of"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_understood_is_refused(chain: Chain, name: str) -> None:
    """Naming object, key, value, and what is allowed."""
    marks, words = WRONG[name]
    found = chain.plan(team(2, **marks), racks.asked(tasks=2), cluster(), now=1.0)
    assert isinstance(found, Reject)
    assert found.reason == "InvalidTopology"
    assert words in found.message


def test_operators_read_why(around: Around) -> None:
    """The messages of the arithmetic are in the log and in lines for operators, and never in the condition."""
    chain = racks.chain(around)
    plan = planned(chain, team(4, required=RACK), cluster(used=dict.fromkeys(racks.PLACES, 16)))
    (line,) = [one for one in plan.lines if one.phase.value == "subset"]
    assert "couldn't be satisfied for job <team/train>" in line.reason
    assert line.audience.value == "operator"
    assert any("couldn't be satisfied" in said for _, level, said in around.log.said if level == "debug")


def test_the_seeds_lines(around: Around) -> None:
    """Verbosity 4 has the number, 7 the names."""
    planned(racks.chain(around), team(4, required=RACK), cluster())
    said = [(level, text) for name, level, text in around.log.said if name == "kai"]
    assert said[:1] == [("debug", "Performing kai logic")]
    assert ("debug", "Result of kai logic is 4 subsets") in said
    assert ("trace", "Result of kai logic is [n0, n1], [n2, n3], [n4, n5], [n6, n7]") in said


def test_the_plan_says_what_is_required(chain: Chain) -> None:
    """For the condition of who was tried everywhere."""
    plan = planned(chain, team(4, required=RACK), cluster())
    assert isinstance(plan, Plan)
    assert plan.wanted == ("Job team/train has required one rack for its 4 pods",)
    assert planned(chain, team(4, preferred=RACK), cluster()).wanted == ()
