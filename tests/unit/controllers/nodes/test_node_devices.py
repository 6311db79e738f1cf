"""How the devices of ResourceSlices are counted."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.controllers.nodes import node_devices
from slurm_bridge.controllers.nodes.node_devices import DriverDevices
from slurm_bridge.model.devices import (
    CounterConsumption,
    CounterSet,
    Device,
    DeviceTaint,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from slurm_bridge.model.meta import ObjectMeta

DRIVER = "gpu.example.com"


def devices(*names: str, **given: Any) -> tuple[Device, ...]:
    return tuple(Device(name=name, **given) for name in names)


def piece(
    *found: Device,
    driver: str = DRIVER,
    node: str = "w1",
    pool: str = "p",
    generation: int = 1,
    count: int = 1,
    counters: tuple[CounterSet, ...] = (),
) -> ResourceSlice:
    """A slice of a pool that has `count` of them."""
    head = ResourcePool(name=pool, generation=generation, resource_slice_count=count)
    spec = ResourceSliceSpec(driver=driver, node_name=node, pool=head, devices=found, shared_counters=counters)
    return ResourceSlice(metadata=ObjectMeta(name="s"), spec=spec)


def counted(*slices: ResourceSlice) -> DriverDevices | None:
    """What is found of the driver on w1."""
    return node_devices.by_node(slices, {DRIVER}).get("w1", {}).get(DRIVER)


SET = CounterSet(name="gpu-0")
SHARED = {"consumes_counters": (CounterConsumption(counter_set="gpu-0"),)}
TWO = devices("a", "b")

ROWS = (
    ("a complete pool", [piece(*TWO)], 2),
    ("a pool of two slices", [piece(*TWO, count=2), piece(*devices("c"), count=2)], 3),
    ("a pool of which one slice is missing", [piece(*TWO, count=2)], None),
    ("a pool with a slice too many", [piece(*TWO), piece(*devices("c"))], None),
    ("slices that disagree on their number", [piece(*TWO, count=2), piece(*devices("c"), count=3)], None),
    ("an older generation", [piece(*TWO, generation=1), piece(*devices("a"), generation=2)], 1),
    ("a newer generation that is incomplete", [piece(*TWO), piece(*TWO, generation=2, count=2)], None),
    ("two pools", [piece(*TWO, pool="p"), piece(*TWO, pool="q")], 4),
    ("two pools of which one is incomplete", [piece(*TWO, pool="p"), piece(*TWO, pool="q", count=9)], None),
    ("one name in two slices", [piece(*TWO, count=2), piece(*devices("b", "c"), count=2)], 3),
    (
        "partitions and whole devices",
        [piece(*devices("gpu-0", "gpu-0-mig-1", **SHARED), *devices("c"), counters=(SET,))],
        1,
    ),
    ("partitions of what the pool does not have", [piece(*devices("gpu-0", **SHARED), *devices("c"))], 0),
    ("a tainted device", [piece(*TWO, *devices("c", taints=(DeviceTaint(effect="NoExecute"),)))], 2),
    ("a taint without effect", [piece(*TWO, *devices("c", taints=(DeviceTaint(effect="None"),)))], 3),
    ("an empty pool", [piece()], 0),
    ("the pool of the same name on another node", [piece(*TWO), piece(node="w2", generation=2**62, count=2**62)], 2),
)


@pytest.mark.parametrize(("slices", "count"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_devices_are_counted_by_the_rules_of_kubernetes(slices: list[ResourceSlice], count: int | None) -> None:
    """Unknown as long as the driver is publishing."""
    found = counted(*slices)
    assert found is not None
    assert found.count == count


def test_slices_of_no_single_node_and_of_other_drivers_do_not_count() -> None:
    """Network devices have a selector, or are those of all nodes."""
    assert node_devices.by_node([piece(*TWO, node=""), piece(*TWO, driver="nic.example.com")], {DRIVER}) == {}


PIECES = st.builds(
    lambda names, shared, **place: piece(*devices(*names, **(SHARED if shared else {})), **place),
    st.lists(st.sampled_from("abc"), max_size=3),
    st.booleans(),
    node=st.sampled_from(["w1", "w2"]),
    pool=st.sampled_from(["p", "q"]),
    generation=st.integers(0, 2),
    count=st.integers(0, 3),
)


@given(st.lists(PIECES, max_size=6).flatmap(lambda made: st.tuples(st.just(made), st.permutations(made))))
def test_the_order_of_slices_never_matters(slices: tuple[list[ResourceSlice], list[ResourceSlice]]) -> None:
    """Informers keep them in no order."""
    one, other = slices
    assert node_devices.by_node(one, {DRIVER}) == node_devices.by_node(other, {DRIVER})


@given(st.lists(PIECES, max_size=4), st.lists(st.sampled_from("abc"), max_size=3))
def test_slices_of_older_generations_and_of_other_nodes_change_nothing(
    others: list[ResourceSlice], names: list[str]
) -> None:
    """However many of them there are."""
    newest = piece(*devices(*names), generation=3)
    older = [one for one in others if one.spec.node_name == "w2" or one.spec.pool.name == "p"]
    assert counted(*older, newest) == counted(newest)


def test_a_pool_whose_counters_are_wrong_is_told_from_partitions() -> None:
    """The remedy is another one."""
    found = counted(piece(*devices("gpu-0", **SHARED), *devices("c")))
    assert found == DriverDevices(wrong=True)
