"""Equal parts of a group, each in a rack of its own: a component of the job for each part."""

import pathlib
from collections.abc import Iterable, Mapping

from slurm_bridge.model import names
from slurm_bridge.workloads.kinds import kai_podgroup
from tests.component.families.kai.test_kai_windows import NODES, RACKS, bridge_of, free, living, where
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.world import NAMESPACE
from tests.unit.families.kai.racks import REQUIRED, SUBGROUP


def parts(bridge: Bridge, *sizes: int, cpu: str = "4", **marks: str) -> dict[str, list[str]]:
    """Subgroups `a`, `b`, … of equal pods, each of which wants to be in one rack."""
    found, total = dict[str, list[str]](), sum(sizes)
    for part, size in zip("abcdefgh", sizes, strict=False):
        found[part] = [f"{part}-{number}" for number in range(size)]
        for name in found[part]:
            labels = {names.GROUP: "g", names.GROUP_SIZE: str(total), SUBGROUP: part}
            bridge.pod(name, labels=labels, annotations={REQUIRED: "rack", **marks}, cpu=cpu)
    return found


def placed(bridge: Bridge, found: Mapping[str, Iterable[str]], seconds: float = 120) -> dict[str, set[str]]:
    """The nodes of each part, once all pods have one."""
    bridge.until(lambda: all(all(where(bridge, pods)) for pods in found.values()), seconds=seconds)
    return {part: where(bridge, pods) for part, pods in found.items()}


def test_equal_subgroups_start_in_racks_of_their_own(tmp_path: pathlib.Path) -> None:
    """No rack has room for both of them."""
    bridge = bridge_of(tmp_path, ())
    nodes = placed(bridge, parts(bridge, 2, 2))
    assert all(one in map(set, RACKS.values()) for one in nodes.values())
    assert not nodes["a"] & nodes["b"]
    assert bridge.submits() == 1


def test_a_subgroup_has_only_nodes_of_its_component(tmp_path: pathlib.Path) -> None:
    """Also where all of them would fit on the nodes of another."""
    bridge = bridge_of(tmp_path, ())
    nodes = placed(bridge, parts(bridge, 2, 2, 1, cpu="1"))
    assert not nodes["a"] & nodes["b"] | nodes["a"] & nodes["c"] | nodes["b"] & nodes["c"]


def test_equal_subgroups_wait_for_racks_that_empty(tmp_path: pathlib.Path) -> None:
    """One rack is free at once, another one later."""
    bridge = bridge_of(tmp_path, NODES[2:])
    found = parts(bridge, 2, 2)
    bridge.until(lambda: living(bridge))
    free(bridge, *RACKS["c"])
    nodes = placed(bridge, found)
    assert sorted(map(sorted, nodes.values())) == [sorted(RACKS["a"]), sorted(RACKS["c"])]


def test_a_member_that_is_made_anew_comes_to_its_own_subgroup(tmp_path: pathlib.Path) -> None:
    """Although another one has a place for a pod like it."""
    bridge = bridge_of(tmp_path, ())
    found = parts(bridge, 2, 2, cpu="1")
    nodes = placed(bridge, found)
    for name in ("a-1", "b-1"):
        bridge.delete(name)
    bridge.run(5)
    labels = {names.GROUP: "g", names.GROUP_SIZE: "4", SUBGROUP: "b"}
    bridge.pod("b-2", labels=labels, annotations={REQUIRED: "rack"}, cpu="1")
    bridge.until(lambda: bridge.node_of("b-2"), seconds=60)
    assert bridge.node_of("b-2") in nodes["b"]


def test_subgroups_of_a_podgroup_of_kai_start_in_racks_of_their_own(tmp_path: pathlib.Path) -> None:
    """The object says so, and its pods say only which subgroup they are."""
    bridge = bridge_of(tmp_path, ())
    required = {"requiredTopologyLevel": "rack"}
    spec = {"subGroups": [{"name": part, "minMember": 2, "topologyConstraint": required} for part in "ab"]}
    metadata = {"name": "g", "namespace": NAMESPACE}
    bridge.kube.create(kai_podgroup.PODGROUPS, {"metadata": metadata, "spec": spec})
    found = {part: [f"{part}-{number}" for number in range(2)] for part in "ab"}
    for part, pods in found.items():
        for name in pods:
            labels, annotations = {SUBGROUP: part}, {names.ANNOTATION_KAI_GROUP: "g"}
            bridge.pod(name, labels=labels, annotations=annotations, cpu="4")
    nodes = placed(bridge, found)
    assert all(one in map(set, RACKS.values()) for one in nodes.values())
    assert not nodes["a"] & nodes["b"]


def test_parts_that_nobody_can_count_harm_no_other_pod(tmp_path: pathlib.Path) -> None:
    """A group of too many segments is refused, and a neighbour starts."""
    bridge = bridge_of(tmp_path, ())
    marks = {"kai.scheduler/segment-size": "9" * 400, "kai.scheduler/segment-topology-required-placement": "rack"}
    found = parts(bridge, 2, 2, **marks)
    bridge.pod("neighbour")
    bridge.until(lambda: bridge.node_of("neighbour"))
    bridge.run(2)
    assert bridge.condition(found["a"][0])[0] == "InvalidTopology"
