"""Extended resources of DeviceClasses: Slurm is asked for GRES, and the bridge makes the claim for the devices."""

import pathlib
from typing import Any

import pytest

from slurm_bridge.model import kinds
from slurm_bridge.sim import faults
from slurm_bridge.translate import class_resources
from tests.component.scheduler.claimed_devices import (
    CPUS,
    DRIVER,
    GROUPS,
    Devices,
    Json,
    bridge_of,
    exactly,
    results_of,
    using,
)
from tests.component.scheduler.device_rules import DeviceRules
from tests.component.scheduler.gang_scenes import bound, gang
from tests.component.scheduler.test_device_claims import asked
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.world import NAMESPACE

GPU = "example.com/gpu"
IMPLICIT = f"deviceclass.resource.kubernetes.io/{DRIVER}"


@pytest.fixture
def bridge(tmp_path: pathlib.Path) -> Bridge:
    """On hybrid nodes, with the hook."""
    return bridge_of(tmp_path)


@pytest.fixture
def devices(bridge: Bridge) -> Devices:
    """The GPUs of its nodes, of a class with an extended resource."""
    found = Devices(bridge)
    found.named(GPU)
    return found


def asking(count: int = 1, resource: str = GPU, **more: Any) -> Json:
    """The spec of a pod that asks for so many."""
    amounts = {"cpu": "1", resource: str(count)}
    return {"containers": [{"name": "c", "image": "x", "resources": {"limits": amounts, "requests": amounts}}], **more}


def made(bridge: Bridge, name: str = "a") -> Json:
    """The claim that the status of a pod names."""
    status = bridge.manifest(name)["status"]["extendedResourceClaimStatus"]
    found = bridge.kube.get(kinds.RESOURCECLAIMS, NAMESPACE, status["resourceClaimName"])
    assert found is not None
    return found


def plugin_comes(bridge: Bridge, devices: Devices) -> None:
    """A pod whose claim has its device loses its job, and then a node has the resource by a plugin."""
    bridge.kube_calls.plan(faults.Answer(503), method="POST", target="/binding", times=1)
    bridge.pod("a", spec=asking())
    bridge.until(lambda: devices.held("a"))
    bridge.slurm.control.end(bridge.job("a").job_id, "CANCELLED")
    bridge.kube.merge(kinds.NODES, ("", "n3"), {"status": {"allocatable": {GPU: "4"}}}, subresource="status")
    bridge.run(3)
    bridge.annotate("a", **{"slurm-bridge.io/retry": "1"})


@pytest.mark.parametrize("resource", [GPU, IMPLICIT])
def test_the_pod_gets_a_claim_with_the_devices_of_its_job(bridge: Bridge, devices: Devices, resource: str) -> None:
    """It belongs to the pod, and the pod's status says which container has which request."""
    bridge.pod("a", spec=asking(2, resource))
    bridge.until(lambda: bridge.node_of("a"))
    assert asked(bridge) == "gpu:2"
    claim, uid = made(bridge), bridge.uid("a")
    assert claim["metadata"]["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
    assert [(one["kind"], one["uid"], one["controller"]) for one in claim["metadata"]["ownerReferences"]] == [
        ("Pod", uid, True)
    ]
    assert [one["uid"] for one in claim["status"]["reservedFor"]] == [uid]
    assert {one["request"] for one in results_of(claim)} == {"container-0-request-1"}
    assert len(devices.held("a")) == 2
    assert {one.partition("/")[0] for one in devices.held("a")} == {bridge.node_of("a")}
    assert bridge.manifest("a")["status"]["extendedResourceClaimStatus"]["requestMappings"] == [
        {"containerName": "c", "resourceName": resource, "requestName": "container-0-request-1"}
    ]


def test_beside_claims_and_other_pods_no_device_is_given_twice(bridge: Bridge, devices: Devices) -> None:
    """A pod with both, a gang, and pods with templates: all ten are given away."""
    rules = DeviceRules(bridge.world)
    rules.watch()
    devices.template()
    bridge.pod("a", spec=asking(2, **using("one")))
    pods = gang(bridge, 3, spec=asking())
    for name in "bcde":
        bridge.pod(name, spec=using("one"))
    bridge.until(lambda: all(bound(bridge, [*pods, *"abcde"])))
    assert asked(bridge) == "gpu:3"
    held = [one for name in [*pods, *"abcde"] for one in devices.held(name)]
    assert len(held) == len(set(held)) == 10


def test_a_resource_that_some_node_has_by_a_plugin_is_left_to_it(bridge: Bridge, devices: Devices) -> None:
    """No claim is made, and the pod gets this node."""
    bridge.kube.merge(kinds.NODES, ("", "n3"), {"status": {"allocatable": {GPU: "4"}}}, subresource="status")
    bridge.pod("a", spec=asking(2))
    bridge.until(lambda: bridge.node_of("a"))
    assert bridge.node_of("a") == "n3"
    assert asked(bridge) == ""
    assert devices.claims() == []


def test_the_table_of_gres_counts_a_resource_once(tmp_path: pathlib.Path) -> None:
    """The resource of the vendor's plugin may be that of the vendor's class."""
    bridge = bridge_of(tmp_path)
    Devices(bridge).named("amd.com/gpu")
    bridge.pod("a", spec=asking(2, "amd.com/gpu"))
    bridge.until(lambda: bridge.node_of("a"))
    assert asked(bridge) == "gpu:2"


def test_a_class_that_is_not_in_the_table_is_told(bridge: Bridge, devices: Devices) -> None:
    """With the class, and what is in the table."""
    devices.kube.create(kinds.DEVICECLASSES, {"metadata": {"name": "x.io"}, "spec": {"extendedResourceName": "x.io/x"}})
    bridge.pod("a", spec=asking(1, "x.io/x"))
    bridge.pod("b", spec=asking(33))
    bridge.run(3)
    assert (
        f"DeviceClass x.io, which is not in the table of hook device-claims ({CPUS}, {DRIVER}, {GROUPS})"
        in bridge.condition("a")[1]
    )
    assert "33; at most 32 are allowed" in bridge.condition("b")[1]


def test_the_gres_annotation_beside_it_is_told(bridge: Bridge, devices: Devices) -> None:
    """It would replace what the claim needs."""
    assert devices.claims() == []
    bridge.pod("a", spec=asking(), annotations={"slurmjob.slinky.slurm.net/gres": "gpu:1"})
    bridge.run(3)
    assert "leave it out" in bridge.condition("a")[1]


@pytest.mark.security("neighbours")
def test_a_claim_of_this_name_that_is_not_the_pods_is_left_alone(bridge: Bridge, devices: Devices) -> None:
    """A claim of a user with the name of the claim that a pod is to get is left alone; the pod waits, and is told."""
    bridge.slurm.control.pause()
    uid = bridge.pod("a", spec=asking())
    bridge.run(2)
    pod = bridge.core.pod_index.get(uid)
    assert pod is not None
    name = class_resources.name_of(pod)
    devices.claim(name, exactly(count=3))
    bridge.slurm.control.unpause()
    bridge.run(20)
    assert bridge.node_of("a") == ""
    assert "was not created for this pod" in bridge.condition("a")[1]
    assert [one["metadata"]["name"] for one in devices.claims()] == [name]
    bridge.kube.delete(kinds.RESOURCECLAIMS, (NAMESPACE, name))
    bridge.until(lambda: bridge.node_of("a"), 120)


@pytest.mark.security("input")
def test_a_claim_that_asks_for_more_than_the_pod_is_replaced(bridge: Bridge, devices: Devices) -> None:
    """A claim that a user made in a pod's name, for more than the pod asks for, is replaced before it has devices."""
    bridge.slurm.control.pause()
    uid = bridge.pod("a", spec=asking())
    bridge.run(2)
    pod = bridge.core.pod_index.get(uid)
    assert pod is not None
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": uid, "controller": True}
    meta = {"name": class_resources.name_of(pod), "namespace": NAMESPACE, "ownerReferences": [owner]}
    spec = {"devices": {"requests": [exactly("container-0-request-1", 4)]}}
    bridge.kube.create(kinds.RESOURCECLAIMS, {"metadata": meta, "spec": spec})
    bridge.slurm.control.unpause()
    bridge.until(lambda: bridge.node_of("a"))
    assert len(devices.held("a")) == 1


def test_a_claim_that_is_not_needed_any_more_is_deleted(bridge: Bridge, devices: Devices) -> None:
    """A plugin has the resource before the pod is bound: its kubelet must not wait for a claim."""
    plugin_comes(bridge, devices)
    bridge.until(lambda: bridge.node_of("a"), 120)
    assert bridge.node_of("a") == "n3"
    assert devices.claims() == []
    assert "extendedResourceClaimStatus" not in bridge.manifest("a")["status"]


def test_a_claim_whose_allocation_was_not_answered_is_deleted_soon(bridge: Bridge, devices: Devices) -> None:
    """It has not happened, and no watch will say so: the deletion of just this version tells."""
    bridge.kube_calls.plan(faults.Answer(503), method="PATCH", target="/resourceclaims/.*/status", times=1)
    bridge.pod("a", spec=asking())
    bridge.until(lambda: bridge.kube_calls.count(method="PATCH", target="/resourceclaims/.*/status"))
    bridge.kube.merge(kinds.NODES, ("", "n3"), {"status": {"allocatable": {GPU: "4"}}}, subresource="status")
    bridge.slurm.control.end(bridge.job("a").job_id, "CANCELLED")
    bridge.run(3)
    bridge.annotate("a", **{"slurm-bridge.io/retry": "1"})
    bridge.until(lambda: bridge.node_of("a"), 60)
    assert devices.claims() == []


def test_a_claim_that_changes_meanwhile_is_not_deleted(bridge: Bridge, devices: Devices) -> None:
    """What was looked at is a precondition: another look sees what became of it."""

    def note() -> None:
        (claim,) = devices.claims()
        name = (NAMESPACE, claim["metadata"]["name"])
        bridge.kube.merge(kinds.RESOURCECLAIMS, name, {"metadata": {"annotations": {"x": "y"}}})

    bridge.kube_calls.plan(faults.Meanwhile(note), method="DELETE", target="/resourceclaims/")
    plugin_comes(bridge, devices)
    bridge.until(lambda: bridge.node_of("a"), 120)
    answers = [
        one.status for one in bridge.kube_calls.journal if one.method == "DELETE" and "/resourceclaims/" in one.target
    ]
    assert answers == [409, 200]
    assert devices.claims() == []


def test_a_claim_that_somebody_deletes_while_it_has_devices_comes_anew(bridge: Bridge, devices: Devices) -> None:
    """It gives them back, so that it can go, and the pod gets another one."""
    bridge.kube_calls.plan(faults.Answer(503), method="POST", target="/binding", times=1)
    bridge.pod("a", spec=asking())
    bridge.until(lambda: devices.held("a"))
    claim = made(bridge)["metadata"]
    bridge.kube.delete(kinds.RESOURCECLAIMS, (NAMESPACE, claim["name"]))
    bridge.until(lambda: bridge.node_of("a"))
    assert made(bridge)["metadata"]["uid"] != claim["uid"]
    assert len(devices.held("a")) == 1


@pytest.mark.security("neighbours")
def test_a_forged_status_deletes_no_claim_of_the_pod(bridge: Bridge, devices: Devices) -> None:
    """A pod status that names the claim of a template as that for extended resources loses this name, nothing else."""
    devices.template()
    bridge.slurm.control.pause()
    bridge.pod("a", spec=using("one"))
    bridge.run(3)
    (claim,) = devices.of("a")
    name = claim["metadata"]["name"]
    bridge.status("a", extendedResourceClaimStatus={"resourceClaimName": name, "requestMappings": []})
    bridge.slurm.control.unpause()
    bridge.until(lambda: bridge.node_of("a"))
    assert [one["metadata"]["uid"] for one in devices.of("a")] == [claim["metadata"]["uid"]]
    assert bridge.kube_calls.count(method="DELETE", target="/resourceclaims/") == 0
    assert "extendedResourceClaimStatus" not in bridge.manifest("a")["status"]


def test_a_cluster_that_does_not_keep_the_status_is_told(bridge: Bridge, devices: Devices) -> None:
    """No device is given: the kubelet of the pod would not know of the claim. Other claims are as ever."""
    bridge.kube.objects.gated_off = frozenset({"extendedResourceClaimStatus"})
    bridge.pod("a", spec=asking())
    bridge.until(lambda: any("does not keep" in message for _, message in bridge.events("a")), 20)
    assert any("feature gate DRAExtendedResource" in message for _, message in bridge.events("a"))
    assert bridge.node_of("a") == ""
    assert not any(results_of(one) for one in devices.claims())
    devices.template()
    bridge.pod("b", spec=using("one"))
    bridge.until(lambda: bridge.node_of("b"))


@pytest.mark.parametrize(
    ("method", "target"), [("POST", "/resourceclaims$"), ("PATCH", "/pods/a/status"), ("PATCH", "/resourceclaims/")]
)
@pytest.mark.parametrize("fault", [faults.Drop(), faults.Answer(503)])
def test_lost_answers_make_no_second_claim(
    bridge: Bridge, devices: Devices, method: str, target: str, fault: faults.Fault
) -> None:
    """Whichever write is lost is found, or done again."""
    bridge.kube_calls.plan(fault, method=method, target=target, times=1)
    bridge.pod("a", spec=asking())
    bridge.until(lambda: bridge.node_of("a"))
    assert len(devices.claims()) == 1
    assert len(devices.held("a")) == 1
