"""CPUs of groups by ResourceClaim: a part of one group, which is just the CPUs of the job's cores."""

import pathlib
from typing import Any

import pytest

from slurm_bridge.model import cpuset, kinds
from tests.component.scheduler.claimed_devices import (
    CAPACITY,
    GROUPS,
    Devices,
    Json,
    bridge_of,
    cpus_of_a_group,
    exactly,
    using,
)
from tests.component.scheduler.gang_scenes import member
from tests.component.scheduler.test_claimed_cpus import ON_N1, cores, requesting
from tests.component.scheduler.test_device_claims import change_node
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.world import NAMESPACE


@pytest.fixture
def bridge(tmp_path: pathlib.Path) -> Bridge:
    """On nodes of eight cores, each one group."""
    return bridge_of(tmp_path)


@pytest.fixture
def devices(bridge: Bridge) -> Devices:
    """GPUs, and a driver that publishes each node's CPUs as one device."""
    made = Devices(bridge)
    made.publish_groups()
    return made


def allocation(devices: Devices, pod: str) -> Json:
    """Of the only claim of a pod."""
    (claim,) = devices.of(pod)
    found: Json = claim["status"]["allocation"]["devices"]
    return found


def cpus_of(devices: Devices, pod: str) -> set[int]:
    """Those that the driver is told to prepare."""
    found = set[int]()
    for claim in devices.of(pod):
        for config in claim["status"]["allocation"]["devices"].get("config", ()):
            text = config["opaque"]["parameters"]["cpuConfig"]["cpuset"]
            numbers = cpuset.parse(text)
            assert numbers is not None
            assert not found & numbers
            found |= numbers
    return found


def test_the_claim_is_told_as_the_api_wants_it(bridge: Bridge, devices: Devices) -> None:
    """How much of the group it consumes, an id of its share, and which CPUs the driver is to prepare."""
    devices.template("three", cpus_of_a_group(3))
    bridge.pod("a", spec={**using("three"), **ON_N1})
    bridge.until(lambda: bridge.node_of("a"))
    found = allocation(devices, "a")
    share = found["results"][0].pop("shareID")
    assert len(share) == 36
    assert found["results"] == [
        {"request": "cpus", "driver": GROUPS, "pool": "n1", "device": "numa0", "consumedCapacity": {CAPACITY: "3"}}
    ]
    parameters = {"apiVersion": "v1alpha1", "cpuConfig": {"cpuset": cpuset.write(cores(bridge))}}
    opaque = {"driver": GROUPS, "parameters": parameters}
    assert found["config"] == [{"source": "FromClaim", "requests": ["cpus"], "opaque": opaque}]


@pytest.mark.parametrize(("requested", "asked"), [("100m", 3), ("3", 3), ("5", 5)])
@pytest.mark.parametrize("key", [CAPACITY, "cpu"])
def test_cpus_of_groups_are_among_those_that_the_pod_requests(
    bridge: Bridge, devices: Devices, requested: str, asked: int, key: str
) -> None:
    """The larger number counts, and the name of the capacity may be without its domain."""
    devices.template("three", cpus_of_a_group(3, key=key))
    bridge.slurm.control.pause()
    bridge.pod("a", spec={**using("three"), **requesting(requested)})
    bridge.run(3)
    assert (bridge.job().ask.cpus_per_task, bridge.job().ask.gres_per_node) == (asked, ())


def test_several_claims_share_a_group(bridge: Bridge, devices: Devices) -> None:
    """Each pod has the CPUs of its own job; two claims of one pod divide those of theirs."""
    devices.template("two", cpus_of_a_group(2))
    devices.template("both", cpus_of_a_group(1), exactly())
    for name in ("a", "b"):
        bridge.pod(name, spec={**using("two", "both"), **ON_N1})
    bridge.until(lambda: bridge.node_of("a") and bridge.node_of("b"))
    for name in ("a", "b"):
        grant = bridge.job(name).grant
        assert grant is not None
        assert cpus_of(devices, name) == set(grant.shares[0].cores)


def test_every_member_of_a_gang_gets_its_own(bridge: Bridge, devices: Devices) -> None:
    """No CPU twice on a node."""
    devices.template("three", cpus_of_a_group(3))
    for number in range(6):
        member(bridge, f"g-{number}", size=6, spec=using("three"))
    bridge.until(lambda: all(bridge.node_of(f"g-{number}") for number in range(6)))
    held = [(bridge.node_of(f"g-{one}"), cpu) for one in range(6) for cpu in cpus_of(devices, f"g-{one}")]
    assert len(held) == len(set(held)) == 18


def test_whole_cores_come_first(bridge: Bridge) -> None:
    """With two threads in a core three CPUs are of two cores."""
    change_node(bridge, "n1", threads_per_core=2)
    devices = Devices(bridge)
    devices.publish_groups(threads=2)
    devices.template("three", cpus_of_a_group(3))
    bridge.pod("a", spec={**using("three"), **ON_N1})
    bridge.until(lambda: bridge.node_of("a"))
    first, second = sorted(cores(bridge))
    assert cpus_of(devices, "a") == {first, first + 4, second}


@pytest.mark.parametrize(("counts", "fits"), [((4,), False), ((2, 2), True)])
def test_a_part_is_of_one_group(bridge: Bridge, counts: tuple[int, ...], fits: bool) -> None:
    """Of four cores two are on each NUMA node: of no use for one request of four, and the node is given back."""
    devices = Devices(bridge)
    devices.publish_groups(2)
    devices.template("it", *({**cpus_of_a_group(count), "name": f"r{place}"} for place, count in enumerate(counts)))
    bridge.pod("a", spec={**using("it"), **ON_N1})
    bridge.run(10)
    assert bool(bridge.node_of("a")) == fits
    told = any("n1 has no devices for ResourceClaim" in message for _, message in bridge.events("a"))
    assert told != fits


def test_more_than_any_group_has_is_told(bridge: Bridge) -> None:
    """Two groups of four have no five."""
    devices = Devices(bridge)
    devices.publish_groups(2)
    devices.template("five", cpus_of_a_group(5))
    bridge.pod("a", spec=using("five"))
    bridge.run(3)
    assert "node(s) do not have the claimed devices" in bridge.condition("a")[1]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (exactly("cpus", deviceClassName=GROUPS), "needs capacity.requests with"),
        (cpus_of_a_group("1500m"), "a whole number from 1 to"),
        (cpus_of_a_group(0), "a whole number from 1 to"),
        (cpus_of_a_group("1e99"), "a whole number from 1 to"),
        (cpus_of_a_group(2, key="memory"), "needs capacity.requests with"),
        ({**(two := cpus_of_a_group(2)), "exactly": {**two["exactly"], "count": 2}}, "is for several groups of CPUs"),
        (cpus_of_a_group(2, allocationMode="All"), "is for several groups of CPUs"),
    ],
)
def test_what_a_group_cannot_be_asked_for_is_told(bridge: Bridge, devices: Devices, asked: Json, words: str) -> None:
    """With the field, and what is allowed."""
    devices.claim("odd", asked)
    bridge.pod("a", spec=using(it="odd"))
    bridge.run(3)
    assert bridge.condition("a")[0] == "DevicesNotRequestable"
    assert words in bridge.condition("a")[1]
    assert bridge.submits() == 0


@pytest.mark.security("input")
def test_users_do_not_choose_the_cpus(bridge: Bridge, devices: Devices) -> None:
    """Parameters for the driver would name CPUs of others: such a claim is refused, and its neighbour goes on."""
    parameters = {"apiVersion": "v1alpha1", "cpuConfig": {"cpuset": "0-7"}}
    config = [{"requests": ["cpus"], "opaque": {"driver": GROUPS, "parameters": parameters}}]
    devices.claim("greedy", cpus_of_a_group(2), config=config)
    devices.template("two", cpus_of_a_group(2))
    bridge.pod("a", spec=using(it="greedy"))
    bridge.pod("b", spec=using("two"))
    bridge.until(lambda: bridge.node_of("b"))
    assert "spec.devices.config[0] has parameters for driver" in bridge.condition("a")[1]
    assert not bridge.node_of("a")


@pytest.mark.parametrize(
    "policy",
    [
        {"validRange": {"min": "4", "step": "1"}},
        {"validRange": {"min": "1", "step": "2", "max": "9"}},
        {"validRange": {"min": "1", "max": "1"}},
        {"validValues": ["1", "4"]},
    ],
)
def test_what_a_driver_would_round_up_is_on_no_node(bridge: Bridge, policy: Json) -> None:
    """The claim would consume more than Slurm was asked for."""
    devices = Devices(bridge)
    devices.publish_groups(requestPolicy=policy)
    devices.template("two", cpus_of_a_group(2))
    bridge.pod("a", spec=using("two"))
    bridge.run(5)
    assert "node(s) do not have the claimed devices" in bridge.condition("a")[1]


@pytest.mark.security("input")
@pytest.mark.parametrize(
    "said",
    [
        {"cpuIDs": {"string": "0-99999999"}},
        {"cpuIDs": {"string": "7-0"}},
        {"cpuIDs": {"string": "0-6"}},
        {"smtLayout": {"string": "0-3>x"}},
        {"smtLayout": {"string": "0-7>0"}},
        {"smtLayout": {"string": ""}},
    ],
)
def test_groups_that_say_nonsense_are_no_groups(bridge: Bridge, devices: Devices, said: dict[str, Any]) -> None:
    """The node is left out; others serve."""
    name = f"n1-{GROUPS}"
    published = bridge.kube.get(kinds.RESOURCESLICES, "", name)
    assert published is not None
    (group,) = published["spec"]["devices"]
    group["attributes"].update(said)
    bridge.kube.merge(kinds.RESOURCESLICES, ("", name), {"spec": {"devices": [group]}})
    devices.template("two", cpus_of_a_group(2))
    bridge.pod("a", spec={**using("two"), **ON_N1})
    bridge.pod("b", spec=using("two"))
    bridge.until(lambda: bridge.node_of("b"))
    assert "node(s) do not have the claimed devices" in bridge.condition("a")[1]


def test_cpus_of_a_claim_on_its_way_out_are_waited_for(bridge: Bridge, devices: Devices) -> None:
    """Another scheduler has told the driver of these; they are known by the parameters."""
    devices.claim("foreign", cpus_of_a_group(8))
    uid = bridge.pod("other", spec={"schedulerName": "other", "nodeName": "n1"})
    result = {"request": "cpus", "driver": GROUPS, "pool": "n1", "device": "numa0", "consumedCapacity": {CAPACITY: "8"}}
    parameters = {"apiVersion": "v1alpha1", "cpuConfig": {"cpuset": "0-7"}}
    config = {"source": "FromClaim", "requests": ["cpus"], "opaque": {"driver": GROUPS, "parameters": parameters}}
    status = {
        "allocation": {"devices": {"results": [result], "config": [config]}},
        "reservedFor": [{"resource": "pods", "name": "other", "uid": uid}],
    }
    bridge.kube.merge(kinds.RESOURCECLAIMS, (NAMESPACE, "foreign"), {"status": status}, subresource="status")
    devices.template("two", cpus_of_a_group(2))
    bridge.pod("a", spec={**using("two"), **ON_N1})
    bridge.run(6)
    assert bridge.condition("a")[0] == "WaitsForDevices"
    assert not bridge.node_of("a")
    devices.clear("foreign")
    bridge.until(lambda: bridge.node_of("a"))
    assert cpus_of(devices, "a") == set(cores(bridge))
