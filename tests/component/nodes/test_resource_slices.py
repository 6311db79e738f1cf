"""GRES of registered nodes from the ResourceSlices of DRA drivers."""

import pathlib
from typing import Any

import pytest
from loguru import logger

from slurm_bridge.controllers.nodes import controller
from slurm_bridge.model import kinds
from slurm_bridge.sim.slurm import state
from tests.component.nodes.node_world import NodeWorld

DRIVER, SLICES = "gpu.example.com", "/apis/resource.k8s.io/v1/resourceslices"
FOUR = (state.Gres(name="gpu", type="", count=4),)


@pytest.fixture
def world(tmp_path: pathlib.Path) -> NodeWorld:
    """The devices of the driver are GPUs."""
    return NodeWorld(tmp_path, device_gres={DRIVER: "gpu"})


def publish(world: NodeWorld, name: str, node: str = "w1", devices: int = 4, **given: Any) -> None:
    """A slice; `pool` and `each` are merged into its pool and its devices."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1, **given.get("pool", {})}
    found = [{"name": f"{name}-gpu-{number}", **given.get("each", {})} for number in range(devices)]
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": found}
    world.kube.create(kinds.RESOURCESLICES, {"metadata": {"name": name}, "spec": spec})


def withdraw(world: NodeWorld, name: str) -> None:
    world.kube.delete(kinds.RESOURCESLICES, ("", name))


def registered(world: NodeWorld) -> None:
    """w1 with four devices, and an empty journal."""
    world.add("w1")
    publish(world, "w1-a")
    world.settle()
    assert world.node("w1").gres == FOUR
    world.line.faults.forget()


def test_a_node_is_added_with_the_devices_of_its_slices(world: NodeWorld) -> None:
    """A node without any has no GRES."""
    world.add("w2")
    registered(world)
    assert world.node("w2").gres == ()


def test_a_node_is_added_when_its_pool_is_complete(world: NodeWorld) -> None:
    """Not with a part of its devices before."""
    world.add("w1")
    publish(world, "w1-a", pool={"resourceSliceCount": 2})
    world.settle(300)
    assert (world.node("w1"), world.notes) == (None, [])
    publish(world, "w1-b", pool={"resourceSliceCount": 2})
    world.settle()
    assert world.node("w1").gres[0].count == 8


def test_a_half_published_pool_changes_nothing(world: NodeWorld) -> None:
    """However long the driver takes; what is complete is taken over."""
    registered(world)
    publish(world, "w1-b", devices=2, pool={"generation": 2, "resourceSliceCount": 2})
    world.settle(300)
    withdraw(world, "w1-a")
    world.settle(300)
    assert world.orders() == []
    publish(world, "w1-c", devices=0, pool={"generation": 2, "resourceSliceCount": 2})
    world.settle()
    assert world.node("w1").gres[0].count == 2


def test_slices_that_go_for_a_moment_change_nothing(world: NodeWorld) -> None:
    """Drivers are upgraded; what lasts is taken over."""
    registered(world)
    world.restart(settle_seconds=30.0)
    withdraw(world, "w1-a")
    world.settle(20)
    publish(world, "w1-a")
    world.settle(60)
    assert world.orders() == []
    withdraw(world, "w1-a")
    world.settle(31)
    assert world.node("w1").gres == ()


def test_slices_that_come_back_end_the_drain(world: NodeWorld) -> None:
    """As long as jobs run, the node keeps its devices."""
    registered(world)
    world.occupy("w1")
    withdraw(world, "w1-a")
    world.settle()
    assert world.drained("w1") is not None
    publish(world, "w1-a")
    world.settle()
    assert (world.drained("w1"), world.node("w1").gres) == (None, FOUR)


def test_a_node_is_not_deleted_for_devices_that_only_the_cache_lacks(world: NodeWorld) -> None:
    """The API server is asked before a node is deleted to be added again."""
    registered(world)
    world.slices = lambda: ()  # type: ignore[method-assign]
    world.restart()
    world.settle(60)
    assert world.node("w1").gres == FOUR
    assert not [order for order in world.orders() if order.startswith("DELETE")]


def test_slices_of_other_nodes_change_only_those(world: NodeWorld) -> None:
    """Whatever they say of their pool, and however many devices they have."""
    registered(world)
    world.add("w3")
    publish(world, "x", node="w3", devices=600, pool={"name": "w1", "generation": 2**62, "resourceSliceCount": 2**62})
    publish(world, "y", node="no such node", pool={"name": "w1", "generation": 7})
    publish(world, "z", node="", pool={"name": "w1", "generation": 7})
    world.settle(300)
    assert world.node("w3") is None
    assert (world.orders(), world.node("w1").gres) == ([], FOUR)


def test_partitions_are_not_counted_and_an_event_says_so_once(world: NodeWorld) -> None:
    """A whole GPU and its partitions share counters."""
    world.add("w1")
    publish(world, "w1-a", each={"consumesCounters": [{"counterSet": "gpu-0", "counters": {}}]})
    for _ in range(3):
        world.settle(300)
    assert world.node("w1").gres == ()
    assert world.told() == [("w1", "DevicesNotCounted")]
    assert DRIVER in world.notes[0].message


def test_a_node_with_devices_in_both_tables_is_not_added(world: NodeWorld) -> None:
    """They may be the same ones; the message names both keys."""
    world.restart(gres={"example.com/gpu": "gpu:a100"})
    world.add("w1", **{"example.com/gpu": "4"})
    publish(world, "w1-a")
    world.settle(300)
    assert (world.node("w1"), world.told()) == (None, [("w1", "NotRegistered")])
    assert all(word in world.notes[0].message for word in ("(gres)", "(nodes.device_gres)", "example.com/gpu", DRIVER))
    world.resize("w1", **{"example.com/gpu": "0"})
    world.settle()
    assert world.node("w1").gres == FOUR


def test_nothing_is_known_before_the_first_list(world: NodeWorld) -> None:
    """Registered nodes keep their devices, others wait, and the log says so once."""
    registered(world)
    world.slices = lambda: None  # type: ignore[method-assign]
    world.restart()
    world.add("w2")
    logged: list[str] = []
    sink = logger.add(logged.append, level="WARNING", format="{message}")
    for _ in range(4):
        world.settle(controller.UNLISTED_SECONDS)
    logger.remove(sink)
    assert (world.orders(), world.node("w2"), world.node("w1").gres) == ([], None, FOUR)
    assert sum("resource.k8s.io/v1" in line for line in logged) == 1


def test_a_change_of_slices_is_a_reason_for_a_pass(world: NodeWorld) -> None:
    """If they are the node's own, and of a driver that counts."""
    publish(world, "w1-a")
    publish(world, "w2-a", node="")
    own, other = sorted(world.slices() or (), key=lambda one: one.metadata.name)
    world.settle()
    for change, due in (((own, own), False), ((other, None), False), ((None, own), True)):
        world.controller.slices_changed(*change)
        assert world.controller.due is due


def test_without_the_table_no_slice_is_read(world: NodeWorld) -> None:
    """Not even where nodes change."""
    world.restart(device_gres={})
    world.add("w1")
    publish(world, "w1-a")
    world.settle()
    world.resize("w1", cpu="4")
    world.settle(300)
    assert (world.node("w1").cpus, world.node("w1").gres) == (4, ())
    assert not [call for call in world.kube_line.faults.journal if call.target.startswith(SLICES)]
