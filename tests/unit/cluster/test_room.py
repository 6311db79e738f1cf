"""Which nodes have room now: what either side knows of counts."""

import dataclasses
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from slurm_bridge.cluster import room
from slurm_bridge.cluster.cluster_cache import ClusterCache
from slurm_bridge.cluster.columns import NodeColumns
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.model.job import Gres, Memory, MemoryPer
from slurm_bridge.model.slurmnode import SlurmNode
from slurm_bridge.translate import resources
from tests.unit.hooks.builders import cluster, node, partition, pod, request

GPU = Gres(name="gpu", count=2, type="v100")


def slurm(**fields: Any) -> SlurmNode:
    """A node with eight cpus, eight GiB and two GPUs, of which these things are different."""
    given: dict[str, Any] = {"name": "n", "states": frozenset({"IDLE", "EXTERNAL"}), "cpus": 8, "memory_mib": 8192}
    return SlurmNode(**{**given, "gres": (GPU,), **fields})


def seen(**fields: Any) -> ClusterSnapshot:
    """The node "n" as Slurm tells it, with eight cpus in Kubernetes."""
    made = cluster([node("n", allocatable={"cpu": "8", "memory": "8Gi", "pods": "110"})])
    facts = dataclasses.replace(made.nodes["n"], slurm=slurm(**fields))
    return dataclasses.replace(made, nodes={"n": facts}, slurm_nodes={facts.slurm_name: facts.slurm})


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, True),
        ({"used_cpus": 4}, True),
        ({"used_cpus": 5}, False),
        ({"used_memory_mib": 8000}, False),
        ({"used_gres": (Gres(name="gpu", count=1, type="v100"),)}, True),
        ({"used_gres": (GPU,)}, False),
        ({"states": frozenset({"IDLE", "DRAIN"})}, False),
        ({"states": frozenset({"MIXED", "RESERVED"})}, False),
        ({"states": frozenset({"DOWN", "EXTERNAL"})}, False),
    ],
)
def test_what_slurm_has_given_away_is_no_room(fields: dict[str, Any], *, expected: bool) -> None:
    """To jobs of anybody; and where it starts none there is none."""
    asked = request(cpus_per_task=4, memory=Memory(mib=1024), gres=(Gres(name="gpu", count=1),))
    found = room.NodeRooms().now(seen(**fields).columns, pod(requests={"cpu": "4"}), asked)
    assert found.tolist() == [expected]


@pytest.mark.parametrize(("cpus", "expected"), [("8", True), ("9", False)])
def test_what_pods_have_requested_is_no_room(cpus: str, *, expected: bool) -> None:
    """Of a node that Slurm thinks is idle."""
    found = room.NodeRooms().now(seen().columns, pod(requests={"cpu": cpus}), request(memory=Memory(mib=1)))
    assert found.tolist() == [expected]


def test_memory_is_counted_as_slurm_is_asked_for_it() -> None:
    """Per cpu: as often as there are cpus. For a group it is Slurm that adds it up."""
    asked = request(cpus_per_task=4, memory=Memory(mib=2049, per=MemoryPer.CPU))
    assert room.NodeRooms().now(seen().columns, pod(), asked).tolist() == [False]
    assert room.NodeRooms().now(seen().columns, pod(), dataclasses.replace(asked, tasks=4)).tolist() == [True]


def test_who_has_a_reservation_finds_room_in_it() -> None:
    """The nodes of a reservation are reserved: for it."""
    reserved = seen(states=frozenset({"IDLE", "RESERVED"}))
    asked = request(memory=Memory(mib=1))
    assert room.NodeRooms().now(reserved.columns, pod(), asked).tolist() == [False]
    assert room.NodeRooms().now(
        reserved.columns, pod(), dataclasses.replace(asked, reservation="maintenance")
    ).tolist() == [True]


def test_a_node_that_slurm_does_not_know_has_no_room() -> None:
    """With or without a reservation."""
    made = cluster([node("n")])
    unknown = dataclasses.replace(made, nodes={"n": dataclasses.replace(made.nodes["n"], slurm=None)})
    for reservation in (None, "mine"):
        asked = request(memory=Memory(mib=1), reservation=reservation)
        assert room.NodeRooms().now(unknown.columns, pod(), asked).tolist() == [False]


_events = st.lists(st.tuples(st.sampled_from(["run", "end", "slurm", "node", "drop"]), st.integers(0, 3)), max_size=25)


@hypothesis.given(_events, st.lists(st.integers(0, 30), max_size=10))
def test_what_is_remembered_is_what_is_there(events: list[tuple[str, int]], back: list[int]) -> None:
    """After whatever has happened, also when an older snapshot is asked about."""
    keeper, rooms, taken = ClusterCache(resources.requests_of), room.NodeRooms(), list[ClusterSnapshot]()
    asked = request(cpus_per_task=4, memory=Memory(mib=1024), gres=(Gres(name="gpu", count=1),))
    for place, (what, number) in enumerate(events):
        name = f"n{number}"
        match what:
            case "run":
                keeper.on_pod(None, pod(f"p{place}", requests={"cpu": "3"}, node_name=name, phase="Running"))
            case "end":
                keeper.on_pod(pod(f"p{number}"), None)
            case "slurm":
                told = [slurm(name=f"n{one}", used_cpus=one * number) for one in range(4)]
                keeper.set_slurm(told, [partition("debug")])
            case "node":
                keeper.on_node(None, node(name, allocatable={"cpu": str(3 + place), "memory": "8Gi"}))
            case _:
                keeper.on_node(node(name), None)
        taken.append(keeper.snapshot())
        wanted = pod(requests={"cpu": "4"})
        for seen in (taken[-1], *(taken[-1 - one % len(taken)] for one in back[place : place + 1])):
            found = rooms.now(seen.columns, wanted, asked)
            anew = NodeColumns.of(seen.nodes)
            assert seen.columns.nodes(found) == anew.nodes(room.NodeRooms().now(anew, wanted, asked))
            rows = np.arange(len(seen.columns))
            assert room.NodeRooms().among(seen.columns, rows, wanted, asked).tolist() == found.tolist()
            assert rooms.among(seen.columns, rows, wanted, asked).tolist() == found.tolist()


def test_few_nodes_of_many_have_the_room_that_they_have_among_all() -> None:
    """Of the first pod of a kind, and of those that follow."""
    seen = cluster([node(f"n{place:02}", allocatable={"cpu": str(place), "memory": "8Gi"}) for place in range(32)])
    rooms, rows = room.NodeRooms(), np.array([9, 2, 30])
    for _ in range(3):
        found = rooms.among(seen.columns, rows, pod(requests={"cpu": "5"}), request(memory=Memory(mib=1)))
        assert (
            found.tolist()
            == room.NodeRooms()
            .among(seen.columns, rows, pod(requests={"cpu": "5"}), request(memory=Memory(mib=1)))
            .tolist()
        )
    other = rooms.among(seen.columns, rows, pod(requests={"cpu": "10"}), request(memory=Memory(mib=1)))
    assert other.sum() <= found.sum()
