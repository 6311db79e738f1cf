"""PodGroups of KAI: pods of a tree of subgroups start when enough of it is there."""

from typing import Any

import pytest

from slurm_bridge.model import names
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Gang, NamedPart, Workload
from slurm_bridge.workloads import base
from slurm_bridge.workloads.kinds import kai_podgroup
from tests.unit.workloads.heard import Heard, Members

RACK, BLOCK = {names.ANNOTATION_KAI_REQUIRED: "rack"}, {names.ANNOTATION_KAI_REQUIRED: "block"}


def member(world: Heard, name: str, part: str = "", group: str = "g") -> Pod:
    """A pod of a subgroup."""
    labels = {names.LABEL_KAI_SUBGROUP: part} if part else {}
    return world.pod(name, annotations={names.ANNOTATION_KAI_GROUP: group}, labels=labels)


def group(world: Heard, *subgroups: dict[str, Any], **spec: Any) -> None:
    """The object."""
    world.put(kai_podgroup.PODGROUPS, "g", spec={**spec, "subGroups": list(subgroups)})


def named(name: str, parent: str = "", **fields: Any) -> dict[str, Any]:
    """A subgroup."""
    return {"name": name, **({"parent": parent} if parent else {}), **fields}


def required(level: str) -> dict[str, str]:
    """A constraint as KAI writes it."""
    return {"topology": "halls", "requiredTopologyLevel": level}


def test_a_group_without_subgroups_starts_from_its_minimum_on() -> None:
    """Its constraint counts like annotations, and before those of its metadata."""
    world = Heard()
    world.put(
        kai_podgroup.PODGROUPS,
        "g",
        spec={"minMember": 2, "topologyConstraint": {**required("rack"), "preferredTopologyLevel": "shelf"}},
        annotations={**BLOCK, "a": "1"},
    )
    wait = world.wait(member(world, "p-0"))
    assert (wait.reason, wait.message) == ("GangIncomplete", "1 of 2 pods of PodGroup default/g is there")
    found = world.whole(member(world, "p-0"), member(world, "p-1"))
    assert (found.root.kind, found.root.uid, found.gang) == ("PodGroup", "uid-g", Gang(minimum=2))
    assert found.sources[-1].annotations == {
        "a": "1",
        names.ANNOTATION_KAI_TOPOLOGY: "halls",
        names.ANNOTATION_KAI_REQUIRED: "rack",
        names.ANNOTATION_KAI_PREFERRED: "shelf",
    }


def test_subgroups_are_parts_of_the_workload() -> None:
    """With their parents, and with what they ask for."""
    world = Heard()
    group(
        world,
        named("workers", topologyConstraint={"requiredTopologyLevel": "block"}),
        named("a", "workers", minMember=1, topologyConstraint={"requiredTopologyLevel": "rack"}),
        named("b", "workers", minMember=2),
    )
    found = world.whole(member(world, "a-0", "a"), member(world, "b-0", "b"), member(world, "b-1", "b"))
    assert found.parts == (
        NamedPart(name="workers", annotations=BLOCK),
        NamedPart(name="a", parent="workers", annotations=RACK),
        NamedPart(name="b", parent="workers"),
    )
    assert found.gang == Gang(minimum=3)


def test_each_subgroup_needs_its_own_pods() -> None:
    """However many another one has."""
    world = Heard()
    group(world, named("a", minMember=2), named("b", minMember=2), minMember=2)
    wait = world.wait(*(member(world, f"a-{number}", "a") for number in range(4)))
    assert (wait.reason, wait.message) == (
        "GangIncomplete",
        "PodGroup default/g: 0 of 2 pods of subgroup b are there",
    )


def test_fewer_subgroups_may_be_enough() -> None:
    """On each level of the tree."""
    world = Heard()
    group(
        world,
        named("left", minSubGroup=1),
        named("right", minSubGroup=1),
        *(named(f"{side}-{number}", side, minMember=2) for side in ("left", "right") for number in range(3)),
        minSubGroup=1,
    )
    found = world.whole(member(world, "p-0", "right-2"), member(world, "p-1", "right-2"))
    assert found.gang == Gang(minimum=2)
    wait = world.wait(member(world, "p-0", "right-1"), member(world, "p-1", "right-2"))
    assert wait.message == "PodGroup default/g: 0 of 2 pods of subgroup left-0 are there"


@pytest.mark.parametrize(
    ("subgroups", "said"),
    [
        ([named("a"), named("a")], 'spec.subGroups[1].name is "a": use a name that no other subgroup has'),
        ([{}], 'spec.subGroups[0].name is "": use a name that no other subgroup has'),
        ([named("a", "b")], 'spec.subGroups[0].parent is "b": use the name of a subgroup'),
        (
            [named("a", "b"), named("b", "c"), named("c", "b")],
            'spec.subGroups[0].parent is "b": subgroup a would be within itself',
        ),
        (
            [named("a", minSubGroup=1)],
            "spec.subGroups[0].minSubGroup is 1: use a number from 1 to that of the subgroups in it, 0",
        ),
        (
            [named("x" * 1000, "x" * 1000)],
            f'spec.subGroups[0].parent is "{"x" * 60}...": subgroup {"x" * 60}... would be within itself',
        ),
        ([named(str(number)) for number in range(1000)], "spec.subGroups has 1000 entries; at most 256 are allowed"),
    ],
)
def test_subgroups_that_are_no_tree_are_told(subgroups: list[dict[str, Any]], said: str) -> None:
    """Their pods wait; those of another group do not."""
    world = Heard()
    group(world, *subgroups)
    wait = world.wait(member(world, "p-0", "a"))
    assert (wait.reason, wait.message) == ("GroupInvalid", f"PodGroup default/g: {said}")
    world.put(kai_podgroup.PODGROUPS, "h", spec={"minMember": 1})
    assert world.whole(member(world, "q-0", group="h")).root.name == "h"


def test_a_deep_tree_is_read() -> None:
    """As deep as subgroups may be nested."""
    world = Heard()
    group(world, named("0"), *(named(str(number), str(number - 1)) for number in range(1, 256)))
    assert len(world.whole(member(world, "p-0", "255")).parts) == 256


def test_a_started_group_stays_together() -> None:
    """Members that are lost do not hold the others."""
    world = Heard()
    group(world, named("a", minMember=2), named("b", minMember=2))
    one = member(world, "a-0", "a")
    found = base.gather(world.claim(one), Members(one), world.given, started=True)
    assert isinstance(found, Workload)
    assert found.pods == (one,)


def test_a_group_of_that_name_in_another_namespace_is_another_one() -> None:
    """And a pod whose group does not exist waits for it."""
    world = Heard()
    group(world, minMember=1)
    stranger = world.pod("p", namespace="other", annotations={names.ANNOTATION_KAI_GROUP: "g"})
    assert world.wait(stranger).reason == "GroupMissing"
