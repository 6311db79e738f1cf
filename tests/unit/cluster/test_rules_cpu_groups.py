"""Groups of CPUs taken apart, and shared out."""

import pytest

from slurm_bridge.cluster.rules import cpu_groups
from slurm_bridge.cluster.rules.cpu_groups import GroupWish
from slurm_bridge.model.devices import Device, DeviceAttribute, DeviceCapacity
from tests.effort import Work

DRIVER = "dra.cpu"


def group(cpus: str, layout: str, amount: str) -> Device:
    """As a driver publishes it; one attribute has the driver's domain."""
    said = {"dra.cpu/cpuIDs": DeviceAttribute(string=cpus), "smtLayout": DeviceAttribute(string=layout)}
    capacity = {"dra.cpu/cpu": DeviceCapacity(value=amount)}
    return Device(name="g", attributes=said, capacity=capacity, allow_multiple_allocations=True)


@pytest.mark.parametrize(
    ("cpus", "layout", "amount", "found"),
    [
        ("0-3", "0-3", "4", [(0, 0), (1, 1), (2, 2), (3, 3)]),
        ("0-3", "0-3>2", "4", [(0, 0), (2, 0), (1, 1), (3, 1)]),
        ("2-3,6-7", "0-7>4", "4", [(2, 2), (6, 2), (3, 3), (7, 3)]),
        ("0-5", "2-5>2;0-1", "6", [(0, 0), (1, 1), (2, 2), (4, 2), (3, 3), (5, 3)]),
        ("0-3", "0-7>1", "4", [(0, 0), (1, 0), (2, 2), (3, 2)]),
    ],
)
def test_cpus_come_core_by_core(cpus: str, layout: str, amount: str, found: list[tuple[int, int]]) -> None:
    """Of siblings the lowest one names the core; the layout is that of the whole machine."""
    assert [(one.number, one.core) for one in cpu_groups.cpus(DRIVER, group(cpus, layout, amount))] == found


@pytest.mark.security("input")
@pytest.mark.parametrize(
    ("cpus", "layout", "amount"),
    [
        ("0-3", "0-3", "3"),
        ("0-3", "0-3", "x"),
        ("0-3", "0-2", "4"),
        ("0-3", "0-3>0", "4"),
        ("0-3", "0-3>-2", "4"),
        ("", "0-3", "0"),
        ("0-9999999", "0-3", "4"),
        ("0-3", ";" * 5000, "4"),
    ],
)
def test_what_does_not_add_up_is_no_group(cpus: str, layout: str, amount: str) -> None:
    """A wrong number would be another job's CPU."""
    assert cpu_groups.cpus(DRIVER, group(cpus, layout, amount)) == ()


def test_the_largest_wish_chooses_first() -> None:
    """And the fullest group that has enough: what is left of the other one is of use for another wish."""
    there = {"a": ["a/0", "a/1", "a/2"], "b": ["b/0", "b/1"]}
    assert cpu_groups.packed([GroupWish(2, there), GroupWish(3, there)]) == (("b/0", "b/1"), ("a/0", "a/1", "a/2"))
    assert cpu_groups.packed([GroupWish(1, there), GroupWish(1, there)]) == (("b/0",), ("b/1",))


def test_cpus_of_two_groups_serve_no_wish() -> None:
    """Five are there, and no group has four."""
    assert cpu_groups.packed([GroupWish(4, {"a": ["a/0", "a/1", "a/2"], "b": ["b/0", "b/1"]})]) is None


def test_a_way_is_found_where_the_first_choice_leaves_none() -> None:
    """Of six and five CPUs: four and two are of one group, three and two of the other one."""
    there = {group: [f"{group}/{number}" for number in range(count)] for group, count in {"a": 6, "b": 5}.items()}
    found = cpu_groups.packed([GroupWish(count, there) for count in (4, 3, 2, 2)])
    assert found is not None
    assert [len(one) for one in found] == [4, 3, 2, 2]
    assert [len({cpu.partition("/")[0] for cpu in one}) for one in found] == [1, 1, 1, 1]
    assert len({cpu for one in found for cpu in one}) == 11


@pytest.mark.security("fairness")
def test_a_search_without_an_end_is_given_up() -> None:
    """Three out of each four CPUs, and one too many of them."""
    there = {f"g{group:02}": [f"g{group:02}/{number}" for number in range(4)] for group in range(20)}
    with Work() as work:
        assert cpu_groups.packed([GroupWish(3, there)] * 21) is None
        assert cpu_groups.packed([GroupWish(3, there)] * 20 + [GroupWish(1, there)] * 21) is None
    assert work.total < 100_000
