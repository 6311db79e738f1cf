"""Parts of a workload stay in domains of their own, where a job can keep them apart; else all are in one of them."""

import dataclasses
import time

import pytest

from slurm_bridge.families.kai import memo, wishes
from slurm_bridge.families.kai.memo import Way, WishMemo
from slurm_bridge.hooks.attempts import PLAIN
from slurm_bridge.hooks.chain import Chain
from slurm_bridge.model.verdict import Wait
from slurm_bridge.model.workload import NamedPart, Workload
from slurm_bridge.translate import resources, rules, translator
from slurm_bridge.translate.shapes import Form, Shape
from slurm_bridge.translate.translator import Translated
from tests.unit.families.kai import racks
from tests.unit.families.kai.racks import PREFERRED, RACK, REQUIRED, SUBGROUP, ZONE, cluster, member
from tests.unit.hooks.builders import Around

R1, R2, R3, R4 = (frozenset(text.split()) for text in ("n0 n1", "n2 n3", "n4 n5", "n6 n7"))

DRIVER = member(0, cpus="4", labels={SUBGROUP: "driver"})


def workers(key: str = REQUIRED, level: str = RACK) -> tuple[racks.Pod, ...]:
    """Two pods that take a machine each, with a wish of their own."""
    return tuple(member(number, cpus="16", marks={key: level}, labels={SUBGROUP: "workers"}) for number in (1, 2))


def het(*shapes: Shape) -> Translated:
    """A job with a component for each shape."""
    first, *others = (racks.translated(tasks=len(one.pods), minimum_nodes=1).request for one in shapes)
    whole = racks.translated(shapes=shapes)
    request = dataclasses.replace(first, components=tuple(others))
    return dataclasses.replace(whole, request=request, form=Form.HET)


def shape(*pods: racks.Pod) -> Shape:
    """Of these pods."""
    return Shape(pods=pods, cpus=int(resources.requests_of(pods[0])["cpu"]), memory_mib=512)


@pytest.fixture
def chain(around: Around) -> Chain:
    """With this hook alone."""
    return racks.chain(around)


def workload(*pods: racks.Pod, **marks: str) -> Workload:
    """All parts together."""
    return racks.job(*pods, **marks)


def test_each_component_has_its_own_nodes(chain: Chain) -> None:
    """The workers a rack of their own, the driver the rest of the zone around it: Slurm keeps none free for others."""
    made = workers()
    plan = racks.planned(
        chain, workload(DRIVER, *made, required=ZONE), cluster(), request=het(shape(*made), shape(DRIVER))
    )
    first = plan.course.attempts[0]
    assert first.parts == (R1, R2)
    assert plan.request.excluded_nodes == ("n2", "n3", "n4", "n5", "n6", "n7")
    assert plan.request.components[0].excluded_nodes == ("n0", "n1", "n4", "n5", "n6", "n7")
    assert plan.place
    assert {one.parts[0] for one in plan.course.attempts if one.parts} == {R1, R2, R3, R4}


def test_another_set_is_another_place(chain: Chain) -> None:
    """A job of several components cannot be updated: who compares places knows that the next one is a new job."""
    made = workers()
    asked = het(shape(*made), shape(DRIVER))
    job = workload(DRIVER, *made)
    first = racks.planned(chain, job, cluster(), request=asked)
    state = dataclasses.replace(first.state, attempt=1)
    second = racks.planned(chain, job, cluster(), request=asked, previous=state)
    assert second.place != first.place
    assert racks.planned(chain, job, cluster(), request=asked).place == first.place


def test_one_component_keeps_all_in_one_domain(chain: Chain) -> None:
    """Any task may come on any node of such a job, so each set has to do for all of them."""
    pods = tuple(member(number, cpus="8", marks={REQUIRED: RACK}, labels={SUBGROUP: f"g{number}"}) for number in (0, 1))
    plan = racks.planned(chain, workload(*pods), cluster(), request=racks.asked(shape(*pods), tasks=2))
    assert [one.nodes for one in plan.course.attempts][:4] == [R1, R2, R3, R4]
    assert not any(one.parts for one in plan.course.attempts)


def test_parts_that_only_prefer_take_any_nodes(chain: Chain) -> None:
    """Of a job of several components there is one attempt, which prefers nothing."""
    made = workers(PREFERRED)
    plan = racks.planned(chain, workload(DRIVER, *made), cluster(), request=het(shape(*made), shape(DRIVER)))
    assert plan.course is PLAIN


def test_two_parts_in_racks_of_their_own(chain: Chain) -> None:
    """Each with room for it; no two components on one node."""
    one, other = (
        workers(),
        tuple(member(number, cpus="12", marks={REQUIRED: RACK}, labels={SUBGROUP: "others"}) for number in (3, 4)),
    )
    asked = het(shape(*one), shape(*other))
    asked = dataclasses.replace(
        asked,
        request=dataclasses.replace(
            asked.request,
            minimum_nodes=2,
            components=tuple(dataclasses.replace(each, minimum_nodes=2) for each in asked.request.components),
        ),
    )
    plan = racks.planned(chain, workload(*one, *other), cluster(used={"n0": 4}), request=asked)
    first = plan.course.attempts[0]
    assert len(first.parts) == 2
    assert not first.parts[0] & first.parts[1]


def test_pods_that_differ_are_counted_as_they_are(around: Around) -> None:
    """One large and seven small ones fit a rack of two machines, unless Slurm counts each as the largest one."""
    large, small = member(0, cpus="16"), tuple(member(number, cpus="1") for number in range(1, 8))
    made = racks.chain(around)
    job, asked = racks.job(large, *small, required=RACK), het(shape(large), shape(*small))
    plan = racks.planned(made, job, cluster(), request=asked)
    assert {one.nodes for one in plan.course.attempts} == {R1, R2, R3, R4}
    alike = dataclasses.replace(cluster(), heterogeneous=False)
    bound = racks.asked(shape(large), shape(*small), tasks=8)
    assert made.plan(job, bound, alike, now=100.0) == Wait(
        reason="Unschedulable",
        message="unschedulable on cluster: Job team/train has required one rack for its 8 pods",
    )


class TestMemo:
    def test_what_is_written_is_read(self) -> None:
        """For the same wish."""
        tag, a, b = memo.key(["wish"]), memo.key(["dc", "r1"]), memo.key(["dc", "r2"])
        ways = (Way(keys=(a,)), Way(keys=(a, b, b), apart=True), Way(keys=(a, b)))
        noted = WishMemo(tag=tag, ways=ways, roomy=1, turn=7)
        assert WishMemo.parse(noted.text, tag) == noted
        assert WishMemo.parse(noted.text, a) is None
        assert WishMemo.parse(WishMemo(tag=tag, ways=()).text, tag) == WishMemo(tag=tag, ways=())

    @pytest.mark.parametrize(
        "text",
        ["", "TAG", "TAG-1-1-", "TAG-x-1-TAG-00", "TAG-1-1-TAG-01", "TAG-1-1-TA-00", "a1b2-2-0-1f3c9a0e77d1"],
    )
    def test_anything_else_is_planned_anew(self, text: str) -> None:
        """Whatever has written it: the last one is of an earlier version, which knew 16 bits of each set."""
        tag = memo.key(["wish"])
        assert WishMemo.parse(text.replace("TAG", tag), tag) is None

    def test_what_is_too_long_for_the_record_is_cut_off(self) -> None:
        """The first sets stay, and how many of them had room."""
        ways = tuple(
            Way(keys=tuple(memo.key([f"{place} {part}"]) for part in range(9)), apart=True) for place in range(9)
        )
        kept = WishMemo(tag=memo.key([]), ways=ways, roomy=9).bounded
        assert 0 < len(kept.ways) == kept.roomy < 9
        assert kept.ways == ways[: len(kept.ways)]
        assert len(kept.text) <= memo.MOST_LETTERS

    def test_domains_whose_names_are_spelled_alike_are_told_apart(self) -> None:
        """Dots in names are no levels."""
        assert memo.key(["dc", "a.b", "c"]) != memo.key(["dc", "a", "b.c"])


class TestEqualParts:
    """Pods that ask for the same, in parts that want a rack each."""

    def parts(self, *sizes: int, cpus: str = "16", key: str = REQUIRED) -> tuple[racks.Pod, ...]:
        """Parts `a`, `b` and so on."""
        numbers = iter(range(sum(sizes)))
        return tuple(
            member(next(numbers), cpus=cpus, marks={key: RACK}, labels={SUBGROUP: part})
            for part, size in zip("abcdefgh", sizes, strict=False)
            for _ in range(size)
        )

    def shapes(self, chain: Chain, job: Workload) -> tuple[Shape, ...]:
        """As the translation makes them with what the hook says of the workload."""
        found = translator.translate(job, rules.Rules(cluster_id="here", parts_of=chain.parts_of))
        assert isinstance(found, Translated)
        return found.shapes

    def test_each_part_is_a_shape(self, chain: Chain) -> None:
        """Unless nothing is required of them, or there is only one."""
        found = self.shapes(chain, workload(*self.parts(2, 2)))
        assert [(one.part, len(one.pods)) for one in found] == [("a", 2), ("b", 2)]
        assert len(self.shapes(chain, workload(*self.parts(2, 2, key=PREFERRED)))) == 1
        assert len(self.shapes(chain, workload(*self.parts(4)))) == 1
        assert len(self.shapes(chain, workload(*(member(number) for number in range(4)), required=RACK))) == 1

    def test_pods_of_no_part_are_a_shape_beside_them(self, chain: Chain) -> None:
        """Also those that are equal to the others."""
        pods = (*self.parts(2), member(7, cpus="16", labels={SUBGROUP: "driver"}))
        assert [(one.part, len(one.pods)) for one in self.shapes(chain, workload(*pods))] == [("", 1), ("a", 2)]

    def test_each_part_has_a_rack(self, chain: Chain) -> None:
        """No rack takes both."""
        job = workload(*self.parts(2, 2))
        plan = racks.planned(chain, job, cluster(), request=het(*self.shapes(chain, job)))
        first = plan.course.attempts[0].parts
        assert len(first) == 2
        assert all(one in (R1, R2, R3, R4) for one in first)
        assert first[0] != first[1]

    def test_parts_are_within_the_domain_of_all(self, chain: Chain) -> None:
        """Three racks' worth of parts do not fit one zone of two; two do."""
        two, three = workload(*self.parts(2, 2), required=ZONE), workload(*self.parts(2, 2, 2), required=ZONE)
        plan = racks.planned(chain, two, cluster(used={"n0": 1}), request=het(*self.shapes(chain, two)))
        assert set(plan.course.attempts[0].parts) == {R3, R4}
        found = chain.plan(three, het(*self.shapes(chain, three)), cluster(), now=100.0)
        assert isinstance(found, Wait)
        assert "has required one zone for its 6 pods" in found.message

    def test_full_racks_are_tried_after_those_with_room(self, chain: Chain) -> None:
        """Each part waits for a rack of its own."""
        job, used = workload(*self.parts(2, 2)), {f"n{number}": 16 for number in range(2, 8)}
        plan = racks.planned(chain, job, cluster(used=used), request=het(*self.shapes(chain, job)))
        assert R1 in plan.course.attempts[0].parts
        assert all(len({*one.parts}) == 2 for one in plan.course.attempts)

    def test_the_same_sets_are_found_again(self, chain: Chain) -> None:
        """Whatever is free by then."""
        job = workload(*self.parts(2, 2))
        first = racks.planned(chain, job, cluster(), request=het(*self.shapes(chain, job)))
        later = racks.planned(
            chain, job, cluster(used={"n0": 16}), request=het(*self.shapes(chain, job)), previous=first.state
        )
        assert [one.parts for one in later.course.attempts] == [one.parts for one in first.course.attempts]

    def test_segments_are_parts(self, chain: Chain) -> None:
        """Of six equal pods two each in a rack."""
        marks = {wishes.SEGMENT_SIZE: "2", wishes.SEGMENT_REQUIRED: RACK}
        job = workload(*(member(number, cpus="16") for number in range(6)), **marks)
        plan = racks.planned(chain, job, cluster(), request=het(*self.shapes(chain, job)))
        assert len({*plan.course.attempts[0].parts}) == 3

    def test_a_nested_part_is_within_the_one_around_it(self, chain: Chain) -> None:
        """Workers in one zone, each of two groups of them in a rack; what is around them may be in another zone."""
        pods = (*self.parts(2, 2), member(8, cpus="16", labels={SUBGROUP: "driver"}))
        around = NamedPart(name="workers", annotations={REQUIRED: ZONE})
        named = (around, NamedPart(name="a", parent="workers"), NamedPart(name="b", parent="workers"))
        job = dataclasses.replace(workload(*pods), parts=named)
        plan = racks.planned(chain, job, cluster(used={"n0": 1}), request=het(*self.shapes(chain, job)))
        driver, *workers = plan.course.attempts[0].parts
        assert set(workers) == {R3, R4}
        assert driver == R1 | R2

    def test_a_search_through_many_parts_ends(self, chain: Chain) -> None:
        """A hundred parts on eight nodes find nothing, soon; another workload is placed meanwhile."""
        marks = {wishes.SEGMENT_SIZE: "2", wishes.SEGMENT_REQUIRED: RACK}
        job = workload(*(member(number, cpus="1") for number in range(200)), **marks)
        began = time.monotonic()
        assert isinstance(chain.plan(job, het(*self.shapes(chain, job)), cluster(), now=100.0), Wait)
        assert time.monotonic() - began < 5
        assert racks.planned(chain, racks.team(2, required=RACK), cluster()).course.attempts[0].nodes == R1

    def test_more_parts_than_sets_that_are_tried_have_a_rack_each(self, chain: Chain) -> None:
        """Of one set at most ten are tried; of racks for parts all are looked at, and soon."""
        places = {f"m{number}": (f"z{number // 100}", f"r{number // 2}") for number in range(400)}
        marks = {wishes.SEGMENT_SIZE: "2", wishes.SEGMENT_REQUIRED: RACK}
        job = workload(*(member(number, cpus="16") for number in range(240)), **marks)
        plan = racks.planned(chain, job, cluster(places), request=het(*self.shapes(chain, job)))
        assert len({*plan.course.attempts[0].parts}) == 120
