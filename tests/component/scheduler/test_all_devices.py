"""Claims for all matching devices of a node (`allocationMode: All`): nodes differ in how many these are."""

import pathlib
from typing import Any

import pytest

from slurm_bridge.model import kinds
from slurm_bridge.sim.slurm import state
from tests.component.scheduler.claimed_devices import DRIVER, Devices, Json, bridge_of, exactly, using
from tests.component.scheduler.gang_scenes import member
from tests.component.scheduler.test_device_claims import change_node, forget_indices
from tests.component.scheduler.whole_core import Bridge

INDEX = f'device.attributes["{DRIVER}"].index'


def every(*conditions: str, **more: Any) -> Json:
    """A request for all devices that meet these."""
    asked = exactly("gpu", 1, *conditions, **more)
    del asked["exactly"]["count"]
    return {**asked, "exactly": {**asked["exactly"], "allocationMode": "All"}}


def on(node: str) -> Json:
    """Part of the spec of a pod."""
    return {"nodeSelector": {"kubernetes.io/hostname": node}}


def asked(bridge: Bridge, pod: str = "a") -> int:
    """How many GPUs the pod's job asks for."""
    return sum(one.count for one in (*bridge.job(pod).ask.gres_per_node, *bridge.job(pod).ask.gres_per_task))


@pytest.fixture
def bridge(tmp_path: pathlib.Path) -> Bridge:
    """Four GPUs on n1 and n2, two on n4."""
    return bridge_of(tmp_path)


@pytest.fixture
def devices(bridge: Bridge) -> Devices:
    """The same, as the driver publishes them."""
    made = Devices(bridge)
    made.template("all", every())
    return made


@pytest.mark.parametrize(("node", "count"), [("n2", 4), ("n4", 2)])
def test_slurm_is_asked_for_as_many_as_eligible_nodes_have(
    bridge: Bridge, devices: Devices, node: str, count: int
) -> None:
    """The pod gets all of them."""
    bridge.pod("a", spec={**using("all"), **on(node)})
    bridge.until(lambda: bridge.node_of("a"))
    assert asked(bridge) == count
    assert devices.held("a") == [f"{node}/gpu-{number}" for number in range(count)]


def test_the_number_that_most_nodes_have_comes_first(bridge: Bridge, devices: Devices) -> None:
    """Two nodes have four, one has two; and each pod of a gang has a node of its own."""
    for number in range(2):
        member(bridge, f"g-{number}", size=2, spec=using("all"))
    bridge.until(lambda: all(bridge.node_of(f"g-{number}") for number in range(2)))
    assert {bridge.node_of(f"g-{number}") for number in range(2)} == {"n1", "n2"}
    assert [len(devices.held(f"g-{number}")) for number in range(2)] == [4, 4]


def test_nodes_with_more_are_not_asked_for_fewer(bridge: Bridge, devices: Devices) -> None:
    """Slurm could give two of four: these nodes are excluded while two are asked for."""
    for node in ("n1", "n3"):
        devices.retract(node)
        devices.publish(node, 2)
        change_node(bridge, node, gres=(state.Gres(name="gpu", type="", count=2),))
    bridge.slurm.control.pause()
    bridge.pod("a", spec=using("all"))
    bridge.run(3)
    assert asked(bridge) == 2
    assert "n2" in bridge.job().ask.excluded


def test_a_node_that_has_one_more_by_then_is_given_back(bridge: Bridge, devices: Devices) -> None:
    """Four would not be all of them: the claim gets none, and the next job asks for five."""
    bridge.slurm.control.pause()
    bridge.pod("a", spec={**using("all"), **on("n1")})
    bridge.run(3)
    bridge.slurm.control.unpause()
    bridge.world.pass_time(1)
    devices.retract("n1")
    devices.publish("n1", 5)
    change_node(bridge, "n1", gres=(state.Gres(name="gpu", type="", count=5),))
    bridge.until(lambda: bridge.node_of("a"), 60)
    assert (asked(bridge), len(devices.held("a"))) == (5, 5)


def test_a_device_with_a_taint_is_one_of_all(bridge: Bridge, devices: Devices) -> None:
    """As for kube-scheduler: a node where one of them cannot be given has not all."""
    slices = bridge.kube.get(kinds.RESOURCESLICES, "", f"n4-{DRIVER}")
    assert slices is not None
    found = slices["spec"]["devices"]
    found[0]["taints"] = [{"key": "broken", "effect": "NoSchedule"}]
    bridge.kube.merge(kinds.RESOURCESLICES, ("", f"n4-{DRIVER}"), {"spec": {"devices": found}})
    bridge.pod("a", spec={**using("all"), **on("n4")})
    bridge.run(5)
    assert "do not have the claimed devices" in bridge.condition("a")[1]
    assert devices.held("a") == []


def test_all_that_meet_a_condition_are_all_of_their_gres(bridge: Bridge, devices: Devices) -> None:
    """Slurm may give any of a GRES: where others are beside them the node is excluded."""
    devices.template("some", every(f"{INDEX} > 0"))
    bridge.pod("a", spec=using("some"))
    bridge.run(5)
    assert "do not meet the claims, and Slurm may give these" in bridge.condition("a")[1]


def test_two_claims_for_all_have_no_node(bridge: Bridge, devices: Devices) -> None:
    """The second one would have none."""
    devices.template("more", every())
    bridge.pod("a", spec=using("all", "more"))
    bridge.run(5)
    assert "do not have the claimed devices" in bridge.condition("a")[1]


def test_one_that_another_claim_has_is_waited_for(bridge: Bridge, devices: Devices) -> None:
    """Its pod is on its way out; all but one are not all."""
    devices.claim("theirs")
    uid = bridge.pod("other", spec={"schedulerName": "other", "nodeName": "n4"})
    devices.allocate("theirs", "n4", "gpu-1", pods={"other": uid})
    bridge.pod("a", spec={**using("all"), **on("n4")})
    bridge.run(6)
    assert bridge.condition("a")[0] == "WaitsForDevices"
    devices.clear("theirs")
    bridge.until(lambda: bridge.node_of("a"))
    assert len(devices.held("a")) == 2


def test_any_free_ones_are_not_all(tmp_path: pathlib.Path) -> None:
    """Slurm counts only, and another scheduler holds one: the pod waits for that one."""
    bridge = bridge_of(tmp_path, without_index="choose")
    forget_indices(bridge)
    devices = Devices(bridge)
    devices.template("all", every())
    devices.claim("theirs")
    uid = bridge.pod("other", spec={"schedulerName": "other", "nodeName": "n4"})
    devices.allocate("theirs", "n4", "gpu-0", pods={"other": uid})
    bridge.pod("a", spec={**using("all"), **on("n4")})
    bridge.run(6)
    assert not bridge.node_of("a")
    devices.clear("theirs")
    bridge.until(lambda: bridge.node_of("a"))
    assert len(devices.held("a")) == 2


@pytest.mark.security("input")
def test_a_node_with_more_than_a_claim_may_have_is_passed_over(bridge: Bridge, devices: Devices) -> None:
    """Forty devices in one claim the API server would refuse; the pod of another user gets its one."""
    devices.retract("n4")
    devices.publish("n4", 40)
    devices.template("one")
    bridge.pod("a", spec={**using("all"), **on("n4")})
    bridge.pod("b", spec=using("one"))
    bridge.until(lambda: bridge.node_of("b"))
    assert "do not have the claimed devices" in bridge.condition("a")[1]


def test_a_driver_that_starts_anew_on_one_of_several_nodes_costs_no_place_in_the_queue(
    bridge: Bridge, devices: Devices
) -> None:
    """The waiting job asks for what most nodes have at the moment, and stays the same job."""
    bridge.slurm.control.pause()
    bridge.pod("a", spec=using("all"))
    bridge.run(3)
    job, first = bridge.job("a").job_id, asked(bridge)
    devices.retract("n1")
    bridge.run(5)
    meanwhile = asked(bridge)
    devices.publish("n1", 4)
    bridge.run(5)
    assert (first, meanwhile, asked(bridge)) == (4, 2, 4)
    assert (bridge.job("a").job_id, bridge.submits()) == (job, 1)
