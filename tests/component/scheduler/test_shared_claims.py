"""A claim that several pods of one gang name: they share its devices, on one node."""

import pathlib

import pytest

from slurm_bridge.sim import faults
from tests.component.scheduler.claimed_devices import DRIVER, Devices, bridge_of, exactly, results_of, using
from tests.component.scheduler.device_rules import DeviceRules
from tests.component.scheduler.gang_scenes import bound, gang, job_of, member
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.world import NAMESPACE


@pytest.fixture
def bridge(tmp_path: pathlib.Path) -> Bridge:
    """On hybrid nodes, with the hook."""
    return bridge_of(tmp_path)


@pytest.fixture
def devices(bridge: Bridge) -> Devices:
    """The GPUs of its nodes."""
    found = Devices(bridge)
    DeviceRules(bridge.world).watch()
    return found


def users(devices: Devices, name: str) -> list[str]:
    """The pods that a claim is reserved for."""
    (claim,) = [one for one in devices.claims() if one["metadata"]["name"] == name]
    return sorted(one["name"] for one in claim["status"].get("reservedFor") or ())


def test_all_pods_have_the_same_devices_on_one_node(bridge: Bridge, devices: Devices) -> None:
    """Slurm is asked for them once, and for the cpus of all pods."""
    devices.claim("ours", exactly(count=3))
    pods = gang(bridge, 4, spec=using(it="ours"))
    bridge.until(lambda: all(bound(bridge, pods)))
    assert len(set(bound(bridge, pods))) == 1
    ask = job_of(bridge).ask
    assert [(one.name, one.count) for one in (*ask.gres_per_node, *ask.gres_per_task)] == [("gpu", 3)]
    assert users(devices, "ours") == pods
    assert len(devices.held("g-0")) == 3


def test_beside_claims_of_their_own(bridge: Bridge, devices: Devices) -> None:
    """Three pods with one GPU each and one for all: four of one node."""
    devices.claim("ours")
    devices.template()
    pods = gang(bridge, 3, spec=using("one", it="ours"))
    bridge.until(lambda: all(bound(bridge, pods)))
    held = {one for pod in pods for one in devices.held(pod)}
    assert len(held) == 4
    assert len({one.partition("/")[0] for one in held}) == 1


def test_where_no_node_is_large_enough_the_gang_is_told(bridge: Bridge, devices: Devices) -> None:
    """With the claim, and what would help."""
    devices.claim("ours")
    gang(bridge, 4, spec=using(it="ours"), cpu="3")
    bridge.run(3)
    reason, message = bridge.condition("g-0")
    assert reason == "Unschedulable"
    assert f"use ResourceClaim {NAMESPACE}/ours, so all of them have to be on one node" in message
    assert "resourceClaimTemplateName" in message
    assert bridge.submits() == 0


def test_alternatives_are_not_shared(bridge: Bridge, devices: Devices) -> None:
    """Slurm is asked for the claim with one of the pods only."""
    options = [{"name": f"n{count}", "deviceClassName": DRIVER, "count": count} for count in (2, 1)]
    devices.claim("ours", {"name": "gpu", "firstAvailable": options})
    gang(bridge, 2, spec=using(it="ours"))
    bridge.run(3)
    assert "have alternatives" in bridge.condition("g-0")[1]


def test_pods_of_another_workload_wait(bridge: Bridge, devices: Devices) -> None:
    """The devices are those of the first job: with it they are given away."""
    devices.claim("ours")
    bridge.pod("a", spec=using(it="ours"))
    bridge.until(lambda: bridge.node_of("a"))
    bridge.pod("b", spec=using(it="ours"))
    bridge.run(5)
    assert bridge.condition("b")[0] == "ResourceClaimInUse"
    assert users(devices, "ours") == ["a"]


def test_a_member_that_comes_later_shares_what_the_others_have(bridge: Bridge, devices: Devices) -> None:
    """It takes the place of one that is gone, in the same job."""
    devices.claim("ours", exactly(count=2))
    pods = gang(bridge, 3, spec=using(it="ours"), lost="keep")
    bridge.until(lambda: all(bound(bridge, pods)))
    before = devices.held("g-0")
    bridge.delete("g-2", grace=0)
    member(bridge, "g-9", size=3, spec=using(it="ours"), lost="keep")
    bridge.until(lambda: bridge.node_of("g-9"))
    assert bridge.node_of("g-9") == bridge.node_of("g-0")
    assert users(devices, "ours") == ["g-0", "g-1", "g-9"]
    assert devices.held("g-9") == before


@pytest.mark.parametrize("fault", [faults.Drop(), faults.Answer(503)])
def test_a_lost_answer_leaves_one_allocation(bridge: Bridge, devices: Devices, fault: faults.Fault) -> None:
    """For all pods, or for none."""
    devices.claim("ours", exactly(count=2))
    bridge.kube_calls.plan(fault, method="PATCH", target="/resourceclaims/ours/status", times=1)
    pods = gang(bridge, 3, spec=using(it="ours"))
    bridge.until(lambda: all(bound(bridge, pods)))
    assert users(devices, "ours") == pods
    assert [len(results_of(one)) for one in devices.claims()] == [2]


@pytest.mark.security("neighbours")
def test_a_claim_that_another_pod_uses_as_well_is_not_taken_from_it(bridge: Bridge, devices: Devices) -> None:
    """A gang whose pods share a claim waits while a pod of another scheduler has its devices."""
    devices.claim("ours")
    devices.allocate("ours", "n2", "gpu-3", pods={"stranger": "uid-of-a-stranger"})
    pods = gang(bridge, 2, spec=using(it="ours"))
    bridge.run(5)
    assert bound(bridge, pods) == ["", ""]
    assert bridge.condition("g-0")[0] == "ResourceClaimInUse"
    assert devices.held("g-0") == ["n2/gpu-3"]
