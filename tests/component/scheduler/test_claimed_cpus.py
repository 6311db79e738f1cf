"""CPUs by ResourceClaim: they are cpus of the job, and the claims get the CPUs of its cores."""

import pathlib

import pytest

from slurm_bridge.model import kinds, names
from tests.component.scheduler.claimed_devices import (
    CPUS,
    Devices,
    Json,
    bridge_of,
    exactly,
    using,
)
from tests.component.scheduler.gang_scenes import member
from tests.component.scheduler.test_device_claims import change_node
from tests.component.scheduler.whole_core import Bridge

ON_N1 = {"nodeSelector": {"kubernetes.io/hostname": "n1"}}


def cpus(count: int = 1, *conditions: str) -> Json:
    """A request for so many."""
    return exactly("cpus", count, *conditions, deviceClassName=CPUS)


def requesting(cpu: str) -> Json:
    """A container that requests cpus itself."""
    return {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}


def cores(bridge: Bridge) -> tuple[int, ...]:
    """Those that Slurm has given to the pod's job."""
    grant = bridge.job().grant
    assert grant is not None
    return grant.shares[0].cores


@pytest.fixture
def bridge(tmp_path: pathlib.Path) -> Bridge:
    """On nodes of eight cores."""
    return bridge_of(tmp_path)


@pytest.fixture
def devices(bridge: Bridge) -> Devices:
    """GPUs and CPUs."""
    made = Devices(bridge)
    made.publish_cpus()
    return made


@pytest.mark.parametrize(("requested", "asked"), [("100m", 3), ("3", 3), ("5", 5)])
def test_cpus_of_claims_are_among_those_that_the_pod_requests(
    bridge: Bridge, devices: Devices, requested: str, asked: int
) -> None:
    """As drivers of CPUs want it, a pod requests what its claims ask for once more; the larger number counts."""
    devices.template("three", cpus(3))
    bridge.slurm.control.pause()
    bridge.pod("a", spec={**using("three"), **requesting(requested)})
    bridge.run(3)
    assert (bridge.job().ask.cpus_per_task, bridge.job().ask.gres_per_node) == (asked, ())


def test_claims_get_the_cpus_of_the_cores_that_slurm_allocated(bridge: Bridge, devices: Devices) -> None:
    """Native jobs have the first ones; two claims share those of the job, and one has a GPU beside."""
    devices.template("two", cpus(2))
    devices.template("both", cpus(1), exactly())
    bridge.pod("a", spec={**using("two", "both"), **ON_N1})
    bridge.until(lambda: bridge.node_of("a"))
    assert devices.held("a") == [*(f"n1/cpu-{core}" for core in cores(bridge)), "n1/gpu-0"]
    assert min(cores(bridge)) > 0


def test_a_core_is_all_of_its_threads(bridge: Bridge) -> None:
    """The bitmap of Slurm counts cores: three CPUs are of two cores."""
    change_node(bridge, "n1", threads_per_core=2)
    devices = Devices(bridge)
    devices.publish_cpus(threads=2)
    devices.template("three", cpus(3))
    bridge.pod("a", spec={**using("three"), **ON_N1})
    bridge.until(lambda: bridge.node_of("a"))
    held = {int(one.rpartition("-")[2]) for one in devices.held("a")}
    assert (len(held), {cpu % 4 for cpu in held}) == (3, set(cores(bridge)))


def test_every_member_of_a_gang_gets_its_own(bridge: Bridge, devices: Devices) -> None:
    """No CPU twice, and each on the node of its pod."""
    devices.template("three", cpus(3))
    for number in range(6):
        member(bridge, f"g-{number}", size=6, spec=using("three"))
    bridge.until(lambda: all(bridge.node_of(f"g-{number}") for number in range(6)))
    held = [device for number in range(6) for device in devices.held(f"g-{number}")]
    assert len(set(held)) == 18
    for number in range(6):
        assert {one.partition("/")[0] for one in devices.held(f"g-{number}")} == {bridge.node_of(f"g-{number}")}


def test_a_node_whose_driver_keeps_cpus_back_is_given_back(bridge: Bridge, devices: Devices) -> None:
    """Which core of Slurm is which CPU follows from all of them: a wrong one might be a native job's."""
    devices.template("one", cpus())
    for node in ("n1", "n2", "n3", "n4"):
        name = f"{node}-{CPUS}"
        published = bridge.kube.get(kinds.RESOURCESLICES, "", name)
        assert published is not None
        bridge.kube.merge(kinds.RESOURCESLICES, ("", name), {"spec": {"devices": published["spec"]["devices"][1:]}})
    bridge.pod("a", spec=using("one"))
    bridge.run(10)
    assert "publishes 7 cores on 1 sockets" in bridge.condition("a")[1]
    assert not bridge.node_of("a")
    assert devices.held("a") == []


def test_fewer_cpus_by_annotation_are_told(bridge: Bridge, devices: Devices) -> None:
    """The annotation replaces what the pod requests, and the claims still need theirs."""
    devices.template("three", cpus(3))
    for name, said in (("few", "2"), ("more", "4")):
        bridge.pod(name, spec=using("three"), annotations={f"{names.JOB_PREFIX}cpu-per-task": said})
    bridge.until(lambda: bridge.node_of("more"))
    assert bridge.condition("few")[0] == "InvalidAnnotation"
    assert "at least what the ResourceClaims of a pod ask for, 3" in bridge.condition("few")[1]


def test_the_gres_annotation_stands_beside_claims_of_cpus(bridge: Bridge, devices: Devices) -> None:
    """It replaces nothing of what they need."""
    devices.template("one", cpus())
    bridge.pod("a", spec=using("one"), annotations={f"{names.JOB_PREFIX}gres": "gpu:1"})
    bridge.until(lambda: bridge.node_of("a"))


def test_a_part_of_a_cpu_is_told(bridge: Bridge, devices: Devices) -> None:
    """These are published one by one."""
    devices.claim("part", exactly("cpus", deviceClassName=CPUS, capacity={"requests": {"dra.cpu/cpu": "2"}}))
    bridge.pod("a", spec=using(it="part"))
    bridge.run(3)
    assert (
        "spec.devices.requests[0] (cpus) has capacity: CPUs of this class are published one by one"
        in (bridge.condition("a")[1])
    )
    assert bridge.submits() == 0


def test_an_extended_resource_of_the_class_is_told(bridge: Bridge, devices: Devices) -> None:
    """Slurm has no GRES for it, and nothing is asked for."""
    assert devices
    resources = {"limits": {f"deviceclass.resource.kubernetes.io/{CPUS}": "1"}}
    bridge.pod("a", spec={"containers": [{"name": "c", "resources": resources}]})
    bridge.run(3)
    assert f"DeviceClass {CPUS}, whose devices are CPUs" in bridge.condition("a")[1]
    assert bridge.submits() == 0


@pytest.mark.security("input")
def test_more_than_any_node_has_is_harmless(bridge: Bridge, devices: Devices) -> None:
    """Thirty-two CPUs of a claim, ten claims: the pod waits in words, and others go on."""
    devices.template("many", cpus(32))
    devices.template("one", cpus())
    bridge.pod("a", spec=using(*["many"] * 10))
    bridge.pod("b", spec=using("one"))
    bridge.until(lambda: bridge.node_of("b"))
    assert "node(s) do not have the claimed devices" in bridge.condition("a")[1]


def test_a_claim_of_another_scheduler_keeps_its_cpus(bridge: Bridge, devices: Devices) -> None:
    """The nodes are kept until it is free; it is never changed."""
    devices.claim("foreign", cpus())
    devices.allocate("foreign", "n1", *(f"cpu-{number}" for number in range(8)), driver=CPUS, pods={"other": "uid"})
    devices.template("one", cpus())
    bridge.pod("a", spec={**using("one"), **ON_N1})
    bridge.run(6)
    assert bridge.condition("a")[0] == "WaitsForDevices"
    assert not bridge.node_of("a")
    devices.clear("foreign")
    bridge.until(lambda: bridge.node_of("a"))
    assert devices.held("a") == [f"n1/cpu-{core}" for core in cores(bridge)]
