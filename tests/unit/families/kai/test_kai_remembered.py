"""A plan goes through the sets that it began with, in clusters of many racks and with parts."""

import dataclasses

from slurm_bridge.hooks.chain import Chain
from slurm_bridge.translate.shapes import Form, Shape
from tests.unit.families.kai import racks
from tests.unit.families.kai.racks import RACK, REQUIRED, SUBGROUP, cluster, member, planned, team
from tests.unit.families.kai.test_kai_parts import het, shape
from tests.unit.hooks.builders import Around

MANY = {f"n{number:03}": (f"r{number:03}",) for number in range(434)}
#: Short digests of these two are alike: 16 bits of them were what a plan remembered once.
ALIKE = "n011", "n426"


def flat(around: Around) -> Chain:
    """One level of racks."""
    return racks.chain(around, options={"topologies": [{"name": "dc", "levels": [RACK]}]})


def test_a_waiting_job_stays_in_its_rack(around: Around) -> None:
    """The fullest rack that has room, and not another one of hundreds."""
    chain, (fullest, full) = flat(around), ALIKE
    seen = cluster(MANY, levels=(RACK,), used={fullest: 8, full: 16})
    job = team(2, cpus="4", required=RACK)
    first = planned(chain, job, seen)
    again = planned(chain, job, seen, previous=first.state)
    assert first.course.attempts[0].nodes == again.course.attempts[0].nodes == {fullest}
    assert again.state == first.state


def test_parts_stay_in_their_racks_though_others_become_better(around: Around) -> None:
    """Among a hundred racks each, all of which have room for a part by then but the one that was chosen for it."""
    chain = flat(around)
    places = dict(list(MANY.items())[:100])
    large = member(0, cpus="16", marks={REQUIRED: RACK}, labels={SUBGROUP: "large"})
    small = member(2, cpus="4", marks={REQUIRED: RACK}, labels={SUBGROUP: "small"})
    job, request = racks.job(large, small), het(shape(large), shape(small))
    first = planned(chain, job, cluster(places, levels=(RACK,), used={"n070": 8}), request=request)
    chosen = first.course.attempts[0].parts
    used = {**dict.fromkeys(chosen[0], 4), "n070": 8}
    again = planned(chain, job, cluster(places, levels=(RACK,), used=used), request=request, previous=first.state)
    assert again.course.attempts[0].parts == chosen
    assert again.place == first.place


def test_sets_that_cannot_take_all_pods_on_one_node_are_chosen_anew(around: Around) -> None:
    """A node joins that is large enough for all: the racks that are remembered have none."""
    chain = racks.chain(around)
    pods = member(0, cpus="16"), member(1, cpus="8")
    shapes = tuple(Shape(pods=(one,), cpus=cpus, memory_mib=512) for one, cpus in zip(pods, (16, 8), strict=True))
    job, apart = racks.job(*pods, required=RACK), het(*shapes)
    first = planned(chain, job, cluster(), request=apart)
    joined = cluster({**racks.PLACES, "n8": ("z3", "r5")}, sizes={"n8": 64})
    alone = dataclasses.replace(racks.asked(*shapes), form=Form.SUM)
    later = planned(chain, job, joined, request=alone, previous=first.state)
    assert set(racks.tried(later)) == {"n8"}
    assert planned(chain, job, joined, request=alone, previous=later.state).state == later.state


def test_a_plan_of_an_earlier_version_is_made_anew(around: Around) -> None:
    """It is no reason to fail."""
    chain, seen, job = flat(around), cluster(MANY, levels=(RACK,)), team(2, cpus="4", required=RACK)
    first = planned(chain, job, seen)
    former = dataclasses.replace(first.state, memo="kai=a1b2-2-0-1f3c9a0e77d1")
    assert planned(chain, job, seen, previous=former).course.attempts == first.course.attempts
