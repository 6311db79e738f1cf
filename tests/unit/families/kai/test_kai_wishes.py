"""Whose annotations speak for which pods of a workload."""

import dataclasses
from collections.abc import Mapping

import pytest

from slurm_bridge.families.kai import wishes
from slurm_bridge.families.kai.topology import Topology, TopologyConstraint
from slurm_bridge.families.kai.wishes import Wishes
from slurm_bridge.model import names, texts
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import NamedPart, Source, Workload
from tests.unit.families.kai.racks import PREFERRED, RACK, REQUIRED, SUBGROUP, TOPOLOGY, ZONE, job, member

KNOWN = {
    "dc": Topology(name="dc", levels=(ZONE, RACK)),
    "net": Topology(name="net", levels=("spine", "leaf", "port")),
}


def read(workload: Workload, usual: str = "") -> Wishes:
    """With two topologies."""
    return wishes.read(workload, KNOWN, usual)


def constraint(required: str | None = None, preferred: str | None = None, topology: str = "dc") -> TopologyConstraint:
    """In this topology."""
    return TopologyConstraint(topology=topology, required=required, preferred=preferred)


def part(name: str, *numbers: int, marks: Mapping[str, str] | None = None) -> tuple[Pod, ...]:
    """Pods of one part."""
    return tuple(member(number, marks=marks, labels={SUBGROUP: name}) for number in numbers)


def test_nobody_asks() -> None:
    """Other annotations are nobody's business here."""
    assert read(job(member(0, marks={"kai.scheduler/queue": "x"}), other="y")) == Wishes()


def test_the_object_speaks_for_all_pods() -> None:
    """In its own words."""
    found = read(job(member(0), member(1), required=ZONE, preferred=RACK))
    assert found.whole is not None
    assert (found.whole.constraint, len(found.whole.pods), found.parts) == (constraint(ZONE, RACK), 2, ())
    assert found.whole.spoken == "Job team/train has required one zone for its 2 pods"


def test_the_strongest_voice_counts_for_each_key() -> None:
    """As it is for all annotations."""
    workload = job(member(0), required=RACK)
    weaker = Source(kind="PodGroup", name="train", annotations={REQUIRED: ZONE, PREFERRED: RACK})
    found = read(dataclasses.replace(workload, sources=(weaker, *workload.sources)))
    assert found.whole is not None
    assert found.whole.constraint == constraint(RACK, RACK)


def test_equal_pods_speak_for_themselves() -> None:
    """As the weakest voice; a Job's template is enough."""
    found = read(job(*(member(number, marks={REQUIRED: RACK}) for number in range(2)), required=ZONE))
    assert found.whole is not None
    assert found.whole.constraint == constraint(ZONE)
    alone = read(job(*(member(number, marks={REQUIRED: RACK}) for number in range(2))))
    assert alone.whole is not None
    assert alone.whole.constraint == constraint(RACK)


def test_parts_have_wishes_of_their_own() -> None:
    """Beside that for all; a part that asks for nothing has none."""
    pods = (*part("driver", 0), *part("workers", 1, 2, marks={REQUIRED: RACK}))
    found = read(job(*pods, required=ZONE))
    assert found.whole is not None
    assert found.whole.constraint == constraint(ZONE)
    (workers,) = found.parts
    assert (workers.part, workers.constraint, len(workers.pods)) == ("workers", constraint(RACK), 2)
    assert [one.part for one in found.required] == ["default", "workers"]


def test_a_part_is_in_the_topology_of_its_workload() -> None:
    """Which may be all that the object says."""
    found = read(job(*part("a", 0), *part("b", 1, marks={REQUIRED: "leaf"}), topology="net"))
    assert (found.whole, found.problems) == (None, ())
    assert [one.constraint for one in found.parts] == [constraint("leaf", topology="net")]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({SUBGROUP: "mine", names.LABEL_JOBSET_PART: "other"}, "mine"),
        ({names.LABEL_JOBSET_PART: "workers"}, "workers"),
        ({names.LABEL_LWS_WORKER: "0"}, "leader"),
        ({names.LABEL_LWS_WORKER: "3"}, "workers"),
        ({}, "default"),
    ],
)
def test_parts_by_labels(labels: dict[str, str], expected: str) -> None:
    """KAI's own label first, then those that controllers write."""
    assert wishes.part_of(member(0, labels=labels)) == expected


def test_a_level_tells_the_topology() -> None:
    """Where only one has it, or one is usual."""
    assert read(job(member(0), required="leaf")).required[0].constraint.topology == "net"
    assert read(job(member(0), required=RACK), usual="dc").required[0].constraint.topology == "dc"
    (problem,) = read(job(member(0), required=RACK, preferred="leaf")).problems
    assert problem == (
        f'annotation {REQUIRED}="rack" of Job team/train: use levels of one topology'
        f" (zone, rack, spine, leaf, port), or also {TOPOLOGY}"
    )


def test_pods_of_a_part_agree() -> None:
    """Else nobody knows whose word counts."""
    (problem,) = read(job(member(0, marks={REQUIRED: RACK}), member(1))).problems
    assert problem == (
        f'annotation {REQUIRED}: "rack" of Pod team/p0 and none of Pod team/p1 differ;'
        " use one value for all pods of a part"
    )


def test_all_problems_are_told() -> None:
    """Those of a part name the pod."""
    pods = (*part("a", 0), *part("b", 1, marks={REQUIRED: "shelf"}))
    found = read(job(*pods, required="x", topology="dc"))
    assert found.problems == (
        f'annotation {REQUIRED}="x" of Job team/train: use a level of topology dc: zone, rack',
        f'annotation {REQUIRED}="shelf" of Pod team/p1: use a level of topology dc: zone, rack',
    )


class TestSegments:
    """A group in segments of so many pods each."""

    SIZE, LEVEL, LABEL = wishes.SEGMENT_SIZE, wishes.SEGMENT_REQUIRED, wishes.INDEX_LABEL

    def test_pods_are_divided_by_their_ranks(self) -> None:
        """The last segment may have fewer."""
        found = read(job(*map(member, range(5)), **{self.SIZE: "2", self.LEVEL: RACK}))
        assert [[pod.metadata.name for pod in one.pods] for one in found.parts] == [["p0", "p1"], ["p2", "p3"], ["p4"]]
        assert {one.constraint for one in found.parts} == {constraint(RACK)}
        assert {one.spoken for one in found.parts} == {"Job team/train has required one rack for each 2 of its pods"}

    def test_a_label_tells_the_index(self) -> None:
        """Whatever the order of the pods."""
        pods = [member(number, labels={"my/rank": str(3 - number)}) for number in range(4)]
        found = read(job(*pods, **{self.SIZE: "2", self.LEVEL: RACK, self.LABEL: "my/rank"}))
        assert [[pod.metadata.name for pod in one.pods] for one in found.parts] == [["p2", "p3"], ["p0", "p1"]]

    def test_an_index_of_the_controller_counts_before_the_rank(self) -> None:
        """A member that is missing shifts no other one."""
        pods = [member(number, marks={names.ANNOTATION_COMPLETION_INDEX: str(number)}) for number in (1, 2, 3)]
        found = read(job(*pods, **{self.SIZE: "2", self.LEVEL: RACK}))
        assert [[pod.metadata.name for pod in one.pods] for one in found.parts] == [["p1"], ["p2", "p3"]]
        assert found.parts[1].means(member(7, marks={names.ANNOTATION_COMPLETION_INDEX: "2"}))
        assert not found.parts[1].means(member(7, marks={names.ANNOTATION_COMPLETION_INDEX: "1"}))

    def test_a_part_is_divided(self) -> None:
        """Within the domain that it has as a whole."""
        marks = {REQUIRED: ZONE, self.SIZE: "2", self.LEVEL: RACK}
        found = read(job(*part("driver", 9), *part("workers", 0, 1, 2, 3, marks=marks)))
        assert [(one.part, one.within, len(one.pods)) for one in found.parts] == [
            ("workers", "", 4),
            ("workers/0", "workers", 2),
            ("workers/1", "workers", 2),
        ]

    @pytest.mark.parametrize(
        ("marks", "key", "words"),
        [
            ({SIZE: "2"}, SIZE, f"it together with {LEVEL} or {wishes.SEGMENT_PREFERRED}"),
            ({LEVEL: RACK}, LEVEL, f"it together with {SIZE}"),
            ({LEVEL: RACK, SIZE: "1"}, SIZE, "a whole number from 2 on"),
            ({LEVEL: RACK, SIZE: "9" * 5000}, SIZE, "a whole number from 2 on"),
            (
                {LEVEL: RACK, SIZE: "2", LABEL: "rank"},
                LABEL,
                "a label with another whole number on each pod, unlike on Pod team/p0",
            ),
            ({LEVEL: "shelf", SIZE: "2", TOPOLOGY: "dc"}, LEVEL, "a level of topology dc: zone, rack"),
        ],
    )
    def test_what_means_nothing_is_told(self, marks: dict[str, str], key: str, words: str) -> None:
        """With the object, the key, the value as far as it can be shown, and what is allowed."""
        (problem,) = read(job(*map(member, range(4)), **marks)).problems
        assert problem == f'annotation {key}="{texts.shown(marks[key])}" of Job team/train: use {words}'
        assert len(problem) < 300

    def test_a_misspelt_key_is_told(self) -> None:
        """As it is for levels."""
        (problem,) = read(job(member(0), **{"kai.scheduler/segment-sice": "2"})).problems
        assert problem.startswith("annotation kai.scheduler/segment-sice of Job team/train is not known: use one of")

    def test_more_segments_than_slurm_allows_components_are_refused(self) -> None:
        """Else each of them would be looked at."""
        (problem,) = read(job(*map(member, range(300)), **{self.SIZE: "2", self.LEVEL: RACK})).problems
        assert problem == (
            "Job team/train: 150 parts have a topology of their own;"
            " at most 128 are allowed, because each is a component of a Slurm job"
        )

    def test_all_pods_and_parts_are_not_divided_at_once(self) -> None:
        """A pod would be in two racks."""
        pods = (*part("a", 0, 1), *part("b", 2, 3, marks={REQUIRED: RACK}))
        (problem,) = read(job(*pods, **{self.SIZE: "2", self.LEVEL: RACK})).problems
        assert problem.endswith(" of Job team/train: use it where no part of the workload has a topology of its own")


class TestNamedParts:
    """What an object says of the parts of its workload."""

    def nested(self, *parts: NamedPart) -> Wishes:
        """A driver, and two groups of workers."""
        pods = (*part("driver", 0), *part("prefill", 1, 2), *part("decode", 3, 4, 5))
        return read(dataclasses.replace(job(*pods, required=ZONE), parts=parts))

    def test_a_part_around_others_is_about_all_of_their_pods(self) -> None:
        """In an order in which it comes before them."""
        found = self.nested(
            NamedPart(name="prefill", parent="workers", annotations={REQUIRED: RACK}),
            NamedPart(name="decode", parent="workers", annotations={REQUIRED: RACK}),
            NamedPart(name="workers", annotations={PREFERRED: ZONE}),
        )
        assert found.problems == ()
        assert [(one.part, one.within, len(one.pods)) for one in found.parts] == [
            ("workers", "", 5),
            ("prefill", "workers", 2),
            ("decode", "workers", 3),
        ]

    def test_a_part_without_a_wish_is_passed_over(self) -> None:
        """What is within it is within what is around it."""
        found = self.nested(
            NamedPart(name="all", annotations={REQUIRED: ZONE}),
            NamedPart(name="workers", parent="all"),
            NamedPart(name="decode", parent="workers", annotations={REQUIRED: RACK}),
        )
        assert [(one.part, one.within) for one in found.parts] == [("all", ""), ("decode", "all")]

    def test_only_the_innermost_part_is_divided(self) -> None:
        """As KAI has it."""
        marks = {wishes.SEGMENT_SIZE: "2", wishes.SEGMENT_REQUIRED: RACK}
        found = self.nested(NamedPart(name="workers", annotations=marks), NamedPart(name="decode", parent="workers"))
        (problem,) = found.problems
        assert problem.endswith(" of Job team/train, subgroup workers: use it on a part that no other one is within")


def test_leader_and_workers_of_one_template_are_one_part() -> None:
    """It speaks for the whole group; with a template of its own the leader is apart."""
    group = [
        member(number, marks={REQUIRED: RACK}, labels={names.LABEL_LWS_WORKER: str(number)}) for number in range(3)
    ]
    found = read(job(*group))
    assert found.whole is not None
    assert (found.whole.constraint, found.parts) == (constraint(RACK), ())
    found = read(job(member(0, labels={names.LABEL_LWS_WORKER: "0"}), *group[1:]))
    assert [one.part for one in found.parts] == ["workers"]


def test_named_parts_called_leader_and_workers_keep_their_wishes() -> None:
    """Also where the pods themselves say nothing; KAI's own groups of a LeaderWorkerSet have these names."""
    pods = (*part("leader", 0), *part("workers", 1, 2))
    named = (NamedPart(name="leader"), NamedPart(name="workers", annotations={REQUIRED: RACK}))
    found = read(dataclasses.replace(job(*pods), parts=named))
    assert (found.whole, found.problems) == (None, ())
    (workers,) = found.parts
    assert (workers.part, workers.constraint, len(workers.pods)) == ("workers", constraint(RACK), 2)
