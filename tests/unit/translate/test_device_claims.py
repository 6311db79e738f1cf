"""Claims with absurd numbers are refused in words, before anything of them is compared."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from slurm_bridge.cluster.rules.devices import DeviceSight
from slurm_bridge.model.devices import DeviceClass, ResourceClaim
from slurm_bridge.model.job import Gres
from slurm_bridge.model.pod import Pod, PodSpec
from slurm_bridge.scheduler.placement import claim_writes
from slurm_bridge.translate import device_claims
from slurm_bridge.translate.device_claims import DeviceRow, Option, Unrequestable
from tests.effort import Work
from tests.unit.hooks.builders import pod

ROWS = {"gpu": DeviceRow(device_class="gpu", driver="gpu", gres=Gres(name="gpu", count=1), index="index")}

Json = dict[str, Any]


def request(number: int, count: int = 1, *conditions: str) -> Json:
    """One request of a claim."""
    selectors = [{"cel": {"expression": one}} for one in conditions]
    return {"name": f"r{number}", "exactly": {"deviceClassName": "gpu", "count": count, "selectors": selectors}}


def claim(name: str, *requests: Json, **more: Any) -> ResourceClaim:
    """As the API server answers."""
    meta = {"name": name, "namespace": "team", "uid": name}
    written = {"metadata": meta, "spec": {"devices": {"requests": requests, **more}}}
    return msgspec.json.decode(msgspec.json.encode(written), type=ResourceClaim)


def read(*claims: ResourceClaim) -> tuple[Option, ...] | Unrequestable:
    """What a pod with these claims asks for."""
    known: Mapping[tuple[str, str], ResourceClaim] = {one.key: one for one in claims}
    entries: tuple[Json, ...] = tuple(
        {"name": one.metadata.name, "resourceClaimName": one.metadata.name} for one in claims
    )
    asking = Pod(metadata=pod("a").metadata, spec=PodSpec(resource_claims=entries))
    return device_claims.options(asking, lambda *key: known.get(key), ROWS)


def conditions(first: int, count: int) -> list[str]:
    """All of them different."""
    return [f"device.driver == 'd{number}'" for number in range(first, first + count)]


@pytest.mark.security("fairness")
@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ([claim("a", request(0, 20), request(1, 13))], "add up to 33; at most 32 are allowed"),
        ([claim("a", request(0, 1, *conditions(0, 9)), request(1, 1, *conditions(9, 8)))], "17 different selectors"),
        ([claim(f"c{one}", request(0, 1, *conditions(16 * one, 16))) for one in range(3)], "48 different selectors"),
        ([claim("a", request(0), config=[{"opaque": {"x": 1}}])], "config[0] names no driver, or is nested too deep"),
        ([claim("a", request(0), config=[{"opaque": {"x": "y" * 70_000}}])], "spec.devices.config has 700"),
    ],
)
def test_absurd_claims_are_refused(claims: list[ResourceClaim], words: str) -> None:
    """With the field, how much it has, and what is allowed."""
    found = read(*claims)
    assert isinstance(found, Unrequestable)
    assert words in found.message
    assert not found.missing


def test_what_people_write_is_not_absurd() -> None:
    """Thirty-two devices, and the same sixteen conditions in many requests."""
    found = read(claim("a", *(request(one, 4, *conditions(0, 16)) for one in range(8))))
    assert isinstance(found, tuple)


@pytest.mark.security("fairness")
def test_parameters_are_kept_as_written() -> None:
    """They are read only where they are handed on, and keep nothing else of the answer."""
    found = claim("a", request(0), config=[{"requests": ["r0"], "opaque": {"driver": "gpu", "parameters": {"a": [1]}}}])
    (config,) = found.spec.devices.config
    assert claim_writes.parameters(config) == {"driver": "gpu", "parameters": {"a": [1]}}
    assert config.size == len('{"driver":"gpu","parameters":{"a":[1]}}')
    for nothing in ({}, {"opaque": None}):
        assert claim_writes.parameters(claim("a", request(0), config=[nothing]).spec.devices.config[0]) is None


@pytest.mark.security("fairness")
def test_claims_with_very_many_requests_cost_little() -> None:
    """They are refused before all of them are read, and the pod is named."""
    many = [claim(f"c{number}", *(request(one) for one in range(32))) for number in range(100)]
    with Work() as done:
        found = read(*many)
    assert isinstance(found, Unrequestable)
    assert "Pod team/a: the ResourceClaims have more requests" in found.message
    assert done.total < 3_000


@pytest.mark.security("neighbours")
def test_parameters_for_a_driver_of_groups_are_refused_whatever_the_claim_asks_for() -> None:
    """They would be read as the CPUs that it has, and keep these from others."""
    group = DeviceRow(device_class="group", driver="cpu", gres=Gres(name="cpu", type="", count=1), capacity="cpu/cpu")
    one = claim("a", request(0), config=[{"opaque": {"driver": "cpu", "parameters": {}}}])
    asking = Pod(metadata=pod("a").metadata, spec=PodSpec(resource_claims=({"name": "a", "resourceClaimName": "a"},)))
    found = device_claims.options(asking, lambda *_: one, {**ROWS, "group": group})
    assert isinstance(found, Unrequestable)
    assert "has parameters for driver cpu" in found.message


def test_parameters_of_a_class_for_a_driver_of_groups_are_not_handed_on() -> None:
    """The bridge alone tells it which CPUs a claim has."""
    group = DeviceRow(device_class="group", driver="cpu", gres=Gres(name="cpu", count=1), capacity="cpu/cpu")
    written = {"metadata": {"name": "gpu"}, "spec": {"config": [{"opaque": {"driver": name}} for name in ("cpu", "x")]}}
    named = msgspec.json.decode(msgspec.json.encode(written), type=DeviceClass)
    asked = device_claims.AskedDevices(request="r0", row=ROWS["gpu"], count=1)
    sight = DeviceSight(
        rows={**ROWS, "group": group},
        claim=lambda *_: None,
        holder=lambda _device: None,
        device_class=lambda _name: named,
        on=lambda _node: (),
        matches=lambda *_: True,
    )
    found = claim_writes.configs(device_claims.PodClaim(claim=claim("a", request(0)), asked=(asked,)), sight)
    assert [one["opaque"] for one in found] == [{"driver": "x"}]
