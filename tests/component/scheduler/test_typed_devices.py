"""Devices whose attribute says what type they are in Slurm: one DeviceClass for slices of all profiles."""

import pathlib
from typing import Any

import pytest

from slurm_bridge.families.device_claims import hook
from slurm_bridge.model import kinds
from slurm_bridge.sim.slurm import state
from tests.component.scheduler.claimed_devices import DRIVER, ROW, Devices, bridge_of, exactly, using
from tests.component.scheduler.gang_scenes import member
from tests.component.scheduler.test_device_claims import change_node
from tests.component.scheduler.whole_core import Bridge

SMALL, LARGE = "1g.10gb", "2g.20gb"
PROFILE = f'device.attributes["{DRIVER}"].model'


def of(*profiles: str) -> str:
    """The condition on a slice."""
    return f"{PROFILE} in [{', '.join(map(repr, profiles))}]"


@pytest.fixture
def bridge(tmp_path: pathlib.Path) -> Bridge:
    """Two slices of each profile on n1, two small ones on n2; Slurm numbers them on."""
    made = bridge_of(tmp_path, None, {**ROW, "type": "model"})
    slices(made, "n1", SMALL, LARGE)
    slices(made, "n2", SMALL)
    for name in ("n3", "s4"):
        change_node(made, name, gres=())
    return made


@pytest.fixture
def devices(bridge: Bridge) -> Devices:
    """The same, as the driver publishes them."""
    made = Devices(bridge)
    for node, profiles in (("n1", (SMALL, LARGE)), ("n2", (SMALL,)), ("n4", ())):
        made.retract(node)
        made.publish(node, 2 * len(profiles), *profiles)
    return made


def slices(bridge: Bridge, node: str, *profiles: str) -> None:
    """Two of each in Slurm."""
    change_node(bridge, node, gres=tuple(state.Gres(name="gpu", type=one, count=2) for one in profiles))


def asked(bridge: Bridge, pod: str = "a") -> list[tuple[str, int]]:
    """Types and counts of the pod's job."""
    ask = bridge.job(pod).ask
    return [(one.type, one.count) for one in (*ask.gres_per_node, *ask.gres_per_task)]


def test_slurm_is_asked_for_the_type_of_the_devices(bridge: Bridge, devices: Devices) -> None:
    """Each claim gets its sort, on the only node that has both."""
    devices.template("small", exactly("s", 2, f'{PROFILE} == "{SMALL}"'))
    devices.template("large", exactly("l", 1, f'{PROFILE} == "{LARGE}"'))
    bridge.pod("a", spec=using("small", "large"))
    bridge.until(lambda: bridge.node_of("a"))
    assert asked(bridge) == [(SMALL, 2), (LARGE, 1)]
    assert devices.held("a") == ["n1/gpu-0", "n1/gpu-1", "n1/gpu-2"]


def test_of_several_types_the_first_counts_that_eligible_nodes_have(bridge: Bridge, devices: Devices) -> None:
    """In the order of their names; no node has three of any."""
    devices.template("any", exactly("any", 2, of(LARGE, SMALL)))
    devices.template("many", exactly("any", 3))
    slices(bridge, "n2", LARGE)
    devices.retract("n2")
    devices.publish("n2", 2, LARGE)
    for name, node in (("a", "n1"), ("b", "n2")):
        bridge.pod(name, spec={**using("any"), "nodeSelector": {"kubernetes.io/hostname": node}})
    bridge.pod("c", spec=using("many"))
    bridge.until(lambda: bridge.node_of("a") and bridge.node_of("b"))
    assert [asked(bridge, name) for name in "ab"] == [[(SMALL, 2)], [(LARGE, 2)]]
    assert "do not have the claimed devices" in bridge.condition("c")[1]


def test_a_gang_has_one_slice_each(bridge: Bridge, devices: Devices) -> None:
    """Four small ones on two nodes."""
    devices.template("small", exactly("s", 1, of(SMALL)))
    for number in range(4):
        member(bridge, f"g-{number}", size=4, spec=using("small"))
    bridge.until(lambda: all(bridge.node_of(f"g-{number}") for number in range(4)))
    held = sorted(device for number in range(4) for device in devices.held(f"g-{number}"))
    assert held == ["n1/gpu-0", "n1/gpu-1", "n2/gpu-0", "n2/gpu-1"]


def test_types_that_appear_wake_the_pod(bridge: Bridge, devices: Devices) -> None:
    """Until then no job is asked for."""
    devices.template("huge", exactly("h", 1, of("7g.80gb")))
    bridge.pod("a", spec=using("huge"))
    bridge.run(3)
    assert bridge.submits() == 0
    assert "4 node(s) do not have the claimed devices" in bridge.condition("a")[1]
    slices(bridge, "n2", "7g.80gb")
    devices.retract("n2")
    devices.publish("n2", 2, "7g.80gb")
    bridge.until(lambda: bridge.node_of("a") == "n2")
    assert asked(bridge) == [("7g.80gb", 1)]


def test_a_driver_that_is_started_anew_changes_no_request(bridge: Bridge, devices: Devices) -> None:
    """Its slices are gone for a moment: the job stays as it is, and gets its devices when they are back."""
    devices.template("large", exactly("l", 1, of(LARGE)))
    bridge.slurm.control.pause()
    bridge.pod("a", spec=using("large"))
    bridge.until(lambda: bridge.submits() == 1)
    for node in ("n1", "n2"):
        devices.retract(node)
    bridge.slurm.control.unpause()
    bridge.run(10)
    assert not bridge.node_of("a")
    devices.publish("n1", 4, SMALL, LARGE)
    bridge.until(lambda: bridge.node_of("a"))
    assert bridge.submits() == 1
    assert devices.held("a") == ["n1/gpu-2"]


def test_types_are_compared_bit_by_bit(bridge: Bridge, devices: Devices, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass makes a few evaluations, and the next one goes on from there."""
    monkeypatch.setattr(hook, "MOST_EVALUATIONS", 1)
    devices.template("third", exactly("gpu", 1, of(LARGE), f'device.attributes["{DRIVER}"].index < 9'))
    bridge.pod("a", spec=using("third"))
    bridge.until(lambda: bridge.node_of("a"))


@pytest.mark.security("input")
@pytest.mark.parametrize("model", ["", "4", "1g 10gb", "x" * 65, "1g.10gb+me", "a:b", "gpu\n"])
def test_what_is_no_type_of_slurm_is_none(bridge: Bridge, devices: Devices, model: str) -> None:
    """Whatever a driver publishes: such devices are there for no claim, and others go on."""
    devices.retract("n2")
    devices.publish("n2", 2, model)
    devices.template("odd", exactly("s", 1, f"{PROFILE} == '{model.strip()}'"))
    devices.template("small", exactly("s", 1, of(SMALL)))
    bridge.pod("a", spec=using("odd"))
    bridge.pod("b", spec=using("small"))
    bridge.until(lambda: bridge.node_of("b"))
    assert bridge.condition("a")[0] != ""
    assert bridge.submits() == 1


@pytest.mark.security("fairness")
def test_too_many_types_are_told(bridge: Bridge, devices: Devices) -> None:
    """Each is an alternative, and these are bounded: a selector on the attribute leaves one."""
    devices.retract("n2")
    devices.publish("n2", 20, *(f"type-{number}" for number in range(20)))
    devices.template("any", exactly("any"))
    bridge.pod("a", spec=using("any"))
    bridge.run(3)
    assert "combinations of alternatives" in bridge.condition("a")[1]
    assert bridge.submits() == 0


def test_partitions_that_consume_counters_are_none(bridge: Bridge, devices: Devices) -> None:
    """Slurm's slices are there, or not: what a driver could make of a GPU does not count."""
    devices.retract("n2")
    name = f"n1-{DRIVER}"
    published: Any = bridge.kube.get(kinds.RESOURCESLICES, "", name)
    parts = [{**one, "consumesCounters": [{"counterSet": "gpu-0"}]} for one in published["spec"]["devices"]]
    pool = {**published["spec"]["pool"], "resourceSliceCount": 2}
    bridge.kube.merge(kinds.RESOURCESLICES, ("", name), {"spec": {"devices": parts, "pool": pool}})
    sets = {"driver": DRIVER, "nodeName": "n1", "pool": pool, "sharedCounters": [{"name": "gpu-0", "counters": {}}]}
    bridge.kube.create(kinds.RESOURCESLICES, {"metadata": {"name": f"{name}-sets"}, "spec": sets})
    devices.template("small", exactly("s", 1, of(SMALL)))
    bridge.pod("a", spec=using("small"))
    bridge.run(3)
    assert "4 node(s) do not have the claimed devices" in bridge.condition("a")[1]
    assert bridge.submits() == 0
