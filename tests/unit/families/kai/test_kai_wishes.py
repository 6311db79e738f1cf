"""Whose annotations speak for which pods of a workload."""

import dataclasses
from collections.abc import Mapping

import pytest

from slurm_bridge.families.kai import wishes
from slurm_bridge.families.kai.topology import Topology, TopologyConstraint
from slurm_bridge.families.kai.wishes import Wishes
from slurm_bridge.model import names
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Source, Workload
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
        f'annotation {REQUIRED}="rack" of Job team/train: allowed are levels of one topology'
        f" (zone, rack, spine, leaf, port), or also {TOPOLOGY}"
    )


def test_pods_of_a_part_agree() -> None:
    """Else nobody knows whose word counts."""
    (problem,) = read(job(member(0, marks={REQUIRED: RACK}), member(1))).problems
    assert problem == (
        f'annotation {REQUIRED}: "rack" of Pod team/p0 and none of Pod team/p1 differ;'
        " allowed is one value for all pods of a part"
    )


def test_all_problems_are_told() -> None:
    """Those of a part name the pod."""
    pods = (*part("a", 0), *part("b", 1, marks={REQUIRED: "shelf"}))
    found = read(job(*pods, required="x", topology="dc"))
    assert found.problems == (
        f'annotation {REQUIRED}="x" of Job team/train: allowed is a level of topology dc: zone, rack',
        f'annotation {REQUIRED}="shelf" of Pod team/p1: allowed is a level of topology dc: zone, rack',
    )
