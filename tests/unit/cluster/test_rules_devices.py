"""One device for each wish: found where there is a way, at a bounded cost."""

import itertools
import random

import pytest

from slurm_bridge.cluster.rules import devices
from slurm_bridge.model.devices import (
    CounterConsumption,
    CounterSet,
    Device,
    DeviceId,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from slurm_bridge.model.job import Gres
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.translate.device_claims import AskedDevices, DeviceRow
from tests.effort import Work


def ids(*numbers: int) -> list[DeviceId]:
    """Devices of one pool."""
    return [DeviceId("d", "p", f"{number:04}") for number in numbers]


def possible(wanted: list[list[DeviceId]]) -> bool:
    """By trying all choices."""
    return any(len(set(choice)) == len(wanted) for choice in itertools.product(*wanted))


def test_a_way_is_found_where_there_is_one() -> None:
    """For every small case: each wish has a device of its own, out of its own list; None only where no way is."""
    dice = random.Random(7)
    for _ in range(500):
        wanted = [ids(*sorted(dice.sample(range(5), dice.randint(1, 3)))) for _ in range(dice.randint(1, 5))]
        found = devices.assigned(wanted)
        assert (found is not None) == possible(wanted)
        if found is not None:
            assert len(set(found)) == len(wanted)
            assert all(one in allowed for one, allowed in zip(found, wanted, strict=True))


@pytest.mark.security("fairness")
@pytest.mark.parametrize("apart", [False, True])
def test_many_wishes_cost_little(apart: bool) -> None:
    """Neither a thousand wishes for the same devices, nor those where each has to make room for the next."""
    every = ids(*range(1000))
    wanted = [every[max(0, 990 - number) :] if apart else every for number in range(1000)]
    with Work() as work:
        found = devices.assigned(wanted)
    assert found is not None
    assert len(set(found)) == len(wanted)
    assert work.total < 100_000


def test_a_long_chain_is_no_recursion() -> None:
    """Each of two thousand holders has to move on by one device."""
    every = ids(*range(2000))
    chain = [every[number : number + 2] for number in range(1999)]
    found = devices.assigned([*chain, every[:1]])
    assert found == (*every[1:], every[0])


def slices(made: tuple[Device, ...], *sets: str, counter: str = "c") -> list[ResourceSlice]:
    """Devices, and in a slice of their own the sets of counters that they share."""
    shared = tuple(CounterSet(name=one, counters={counter: {"value": "1"}}) for one in sets)
    pool = ResourcePool(name="p", generation=1, resource_slice_count=2)
    both = (
        ResourceSliceSpec(driver="d", node_name="n1", pool=pool, devices=made),
        ResourceSliceSpec(driver="d", node_name="n1", pool=pool, shared_counters=shared),
    )
    return [ResourceSlice(metadata=ObjectMeta(name=f"s{place}"), spec=spec) for place, spec in enumerate(both)]


@pytest.mark.parametrize(
    ("sets", "counter"),
    [(("g1",), "c"), (("g0", "g0"), "c"), (("g0",), "other")],
    ids=["no set", "twice", "no counter"],
)
def test_no_device_of_a_pool_counts_whose_counters_are_wrong(sets: tuple[str, ...], counter: str) -> None:
    """As in Kubernetes; they keep their names, because claims may have them."""
    part = CounterConsumption(counter_set="g0", counters={"c": {"value": "1"}})
    made = (Device(name="part", consumes_counters=(part,)), Device(name="beside"))
    right = devices.by_node(slices(made, "g0"))["n1"]
    assert [one.id.device for one in right.usable] == ["beside", "part"]
    wrong = devices.by_node(slices(made, *sets, counter=counter))["n1"]
    assert wrong.usable == ()
    assert [one.id.device for one in wrong.kept_back] == ["beside", "part"]


def test_parts_that_overlap_by_way_of_others_are_of_one_whole() -> None:
    """Without an index, counters that any device shares are those of one thing: no claim gets two parts of it."""
    parts = {"a": ("g0",), "b": ("g0", "m0"), "c": ("m0",), "d": ("g1",)}
    made = tuple(
        Device(name=name, consumes_counters=tuple(CounterConsumption(counter_set=one) for one in sets))
        for name, sets in parts.items()
    )
    there = devices.by_node(slices(made, "g0", "g1", "m0"))["n1"].usable
    row = DeviceRow(device_class="d", driver="d", gres=Gres(name="gpu", type="", count=1), chosen=True, partitions=True)
    assert len({devices.whole(one, row) for one in there}) == 2
    wanted = AskedDevices(request="r", row=row, count=1)
    found = devices.distributed([(wanted, [one for one in there if one.id.device == name]) for name in "ab"])
    assert found is None
