"""What claims hold, as far as whole runs do not reach it."""

import json
from typing import Any

import msgspec
import pytest

from slurm_bridge.model.devices import DeviceConfiguration, ResourceClaim, cpus_in
from slurm_bridge.scheduler.placement import claim_writes

GROUP = {"request": "main/sub", "driver": "dra.cpu", "pool": "n1", "device": "group"}


def claim(*configs: dict[str, Any]) -> ResourceClaim:
    """With a part of a group of CPUs."""
    results = [{**GROUP, "consumedCapacity": {"dra.cpu/cpu": "2"}}]
    written = {
        "metadata": {"name": "c"},
        "status": {"allocation": {"devices": {"results": results, "config": list(configs)}}},
    }
    return msgspec.json.decode(json.dumps(written), type=ResourceClaim)


def said(cpuset: str, **requests: list[str]) -> dict[str, Any]:
    """Parameters for the driver."""
    return {**requests, "opaque": {"driver": "dra.cpu", "parameters": {"cpuConfig": {"cpuset": cpuset}}}}


@pytest.mark.parametrize("requests", [{}, {"requests": ["main"]}, {"requests": ["main/sub"]}, {"requests": []}])
def test_parameters_are_for_all_requests_or_for_those_they_name(requests: dict[str, list[str]]) -> None:
    """Also by the name of the request without its alternative."""
    assert [one.device for one in claim(said("2-3", **requests)).held] == ["group/2", "group/3"]


def test_of_several_parameters_all_cpus_count() -> None:
    """Which of them the driver follows is not known."""
    assert [one.device for one in claim(said("2"), said("3", requests=["main"])).held] == ["group/2", "group/3"]


@pytest.mark.parametrize("configs", [(), (said("2", requests=["other"]),), (said("x"),)])
def test_without_cpus_in_the_parameters_the_whole_group_is_held(configs: tuple[dict[str, Any], ...]) -> None:
    """The driver has chosen the CPUs itself."""
    assert [one.device for one in claim(*configs).held] == ["group"]


@pytest.mark.security("input")
def test_parameters_that_are_nested_too_deep_say_nothing() -> None:
    """They stop only the claim that has them."""
    deep = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
    one = DeviceConfiguration(opaque=msgspec.Raw(b'{"x":' + deep + b',"driver":"dra.cpu"}'))
    assert (one.driver, cpus_in(one, "dra.cpu"), claim_writes.parameters(one)) == ("", None, None)
