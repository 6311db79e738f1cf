"""What the table of the hook may say."""

from typing import Any

import pydantic
import pytest

from slurm_bridge.families.device_claims.options import DeviceClaimsOptions


def read(**row: Any) -> DeviceClaimsOptions:
    """One row."""
    return DeviceClaimsOptions.model_validate({"classes": [{"device_class": "x", **row}]})


def test_devices_are_gres_or_cpus() -> None:
    """Cpus have the number of the CPU as their index."""
    (gpu,) = read(gres="gpu:a100", index="index").rows.values()
    (cpu,) = read(cpus=True, index="cpuID").rows.values()
    assert (gpu.gres.type, gpu.cpus, cpu.cpus, cpu.index) == ("a100", False, True, "cpuID")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({}, "say either gres or cpus: true"),
        ({"gres": "gpu", "cpus": True, "index": "index"}, "say either gres or cpus: true"),
        ({"gres": "CPU", "index": "cpuID"}, "of CPUs say cpus: true"),
        ({"cpus": True}, "of CPUs say index"),
        ({"cpus": True, "index": "cpuID", "without_index": "choose"}, "leave out without_index"),
        ({"cpus": True, "capacity": "cpu", "index": "cpuID"}, "without index"),
        ({"cpus": True, "capacity": "cpu", "without_index": "choose"}, "leave out without_index"),
        ({"gres": "gpu", "capacity": "cpu", "index": "index"}, "capacity is for groups of CPUs"),
        ({"cpus": True, "index": "cpuID", "partitions": True}, "CPUs have no partitions"),
        ({"gres": "gpu"}, "say index, or without_index: choose"),
        ({"gres": "gpu:8", "index": "index"}, "is not name"),
    ],
)
def test_what_cannot_work_is_told(row: dict[str, Any], words: str) -> None:
    """With the class and what to write."""
    with pytest.raises(pydantic.ValidationError, match=words):
        read(**row)


def test_the_type_may_be_an_attribute() -> None:
    """Of a GRES that has only its name in the table, and of no CPU."""
    (row,) = read(gres="gpu", type="profile", index="index").rows.values()
    assert (row.open, row.of_type("1g.10gb").gres.type, row.of_type("1g.10gb").open) == (True, "1g.10gb", False)
    for wrong in ({"gres": "gpu:a100"}, {"cpus": True}):
        with pytest.raises(pydantic.ValidationError, match="type is an attribute"):
            read(type="profile", index="index", **wrong)


def test_groups_of_cpus_have_a_capacity() -> None:
    """Their CPUs follow from attributes whose names the driver has chosen."""
    (row,) = read(cpus=True, capacity="dra.cpu/cpu").rows.values()
    assert (row.cpus, row.capacity, row.index, row.plain) == (True, "dra.cpu/cpu", "cpuIDs", False)
