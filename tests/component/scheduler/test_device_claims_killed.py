"""Calls that are lost, and others that are first, between Slurm's allocation and pods with their devices."""

import pathlib

import pytest

from slurm_bridge import errors
from slurm_bridge.model import kinds
from slurm_bridge.model.devices import FINALIZER
from slurm_bridge.scheduler.effects import device_claims
from slurm_bridge.sim import faults
from tests.component.scheduler.claimed_devices import Devices, bridge_of, exactly, using
from tests.component.scheduler.device_rules import DeviceRules
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.world import NAMESPACE


def test_a_lost_answer_to_the_allocation_is_found_on_the_claim(tmp_path: pathlib.Path) -> None:
    """The write has happened: the claim is not written again."""
    bridge = bridge_of(tmp_path)
    devices = Devices(bridge)
    devices.template()
    status = "/resourceclaims/.*/status"
    bridge.kube_calls.plan(faults.Drop(), method="PATCH", target=status)
    bridge.pod("a", spec=using("one"))
    bridge.until(lambda: bridge.node_of("a"))
    assert bridge.kube_calls.count(method="PATCH", target=status) == 1
    assert len(devices.held("a")) == 1


def test_a_job_that_ends_before_the_binding_leaves_nothing_that_blocks_others(tmp_path: pathlib.Path) -> None:
    """Its claim has a device, its pod waits for another job: the next pod that Slurm gives the device gets it."""
    bridge = bridge_of(tmp_path)
    devices = Devices(bridge)
    rules = DeviceRules(bridge.world)
    rules.watch()
    devices.template("all", exactly(count=4))
    bridge.kube_calls.plan(faults.Answer(503), method="POST", target="/binding", times=1)
    only = {"nodeSelector": {"kubernetes.io/hostname": "n1"}}
    bridge.pod("a", spec={**using("all"), **only})
    bridge.until(lambda: devices.held("a"))
    _end_and_hold(bridge, "a")
    bridge.pod("b", spec={**using("all"), **only})
    bridge.until(lambda: bridge.node_of("b"), 120)
    assert bridge.node_of("a") == ""
    assert devices.held("a") == []
    assert len(devices.held("b")) == 4


def test_devices_of_a_pod_that_is_bound_meanwhile_are_not_taken_back(tmp_path: pathlib.Path) -> None:
    """Its binding was made and no watch has told of it yet: the pod itself is looked at before its claim is."""
    bridge = bridge_of(tmp_path)
    devices = Devices(bridge)
    devices.template("all", exactly(count=4))
    bridge.kube_calls.plan(faults.Answer(503), method="POST", target="/binding", times=1)
    only = {"nodeSelector": {"kubernetes.io/hostname": "n1"}}
    bridge.pod("a", spec={**using("all"), **only})
    bridge.until(lambda: devices.held("a"))
    _end_and_hold(bridge, "a")
    bridge.kube_calls.plan(faults.Meanwhile(lambda: bridge.steal("a", "n1")), method="GET", target="/pods/a$")
    bridge.pod("b", spec={**using("all"), **only})
    bridge.run(20)
    assert bridge.node_of("a") == "n1"
    assert len(devices.held("a")) == 4
    assert bridge.node_of("b") == ""


def test_a_replica_that_leads_no_more_takes_nothing_back(tmp_path: pathlib.Path) -> None:
    """It says so: what follows is not for it to do either."""
    bridge = bridge_of(tmp_path)
    devices = Devices(bridge)
    devices.template()
    bridge.kube_calls.plan(faults.Answer(503), method="POST", target="/binding", times=1)
    bridge.pod("a", spec=using("one"))
    bridge.until(lambda: devices.held("a"))
    bridge.hear()
    pod = bridge.core.pod_index.get(bridge.uid("a"))
    assert pod is not None
    assert not pod.bound
    bridge.leads = False
    with pytest.raises(errors.NotLeading):
        device_claims.undo(bridge.core.context, [pod])
    assert devices.held("a")


def test_a_claim_that_changed_meanwhile_is_looked_at_again(tmp_path: pathlib.Path) -> None:
    """Another scheduler was first: its allocation stays, and the nodes are kept until the claim is free."""
    bridge = bridge_of(tmp_path)
    devices = Devices(bridge)
    devices.claim("mine")
    first = faults.Meanwhile(lambda: devices.allocate("mine", "n2", "gpu-3"))
    bridge.kube_calls.plan(first, method="PATCH", target="/resourceclaims/mine/status")
    bridge.pod("a", spec=using(it="mine"))
    bridge.run(10)
    assert bridge.node_of("a") == ""
    assert devices.held("a") == ["n2/gpu-3"]
    assert "has devices for others" in bridge.condition("a")[1]
    devices.clear("mine")
    bridge.until(lambda: bridge.node_of("a"))


def test_a_deleted_claim_of_a_pod_without_a_node_gives_its_devices_back(tmp_path: pathlib.Path) -> None:
    """So it can go. The pod says that it does not exist, and has a node when it does."""
    bridge = bridge_of(tmp_path)
    devices = Devices(bridge)
    DeviceRules(bridge.world).watch()
    devices.claim("mine")
    bridge.kube_calls.plan(faults.Answer(503), method="POST", target="/binding", times=1)
    bridge.pod("a", spec=using(it="mine"))
    bridge.until(lambda: devices.held("a"))
    bridge.kube_calls.plan(faults.Answer(503), method="PATCH", target="/resourceclaims/", times=2)
    bridge.kube.delete(kinds.RESOURCECLAIMS, (NAMESPACE, "mine"))
    bridge.until(lambda: not devices.claims())
    bridge.until(lambda: "default/mine does not exist" in bridge.condition("a")[1], 5)
    devices.claim("mine")
    bridge.until(lambda: bridge.node_of("a"))


def test_a_claim_that_is_deleted_keeps_devices_of_others(tmp_path: pathlib.Path) -> None:
    """Another scheduler has given them to it: only that one takes them back."""
    bridge = bridge_of(tmp_path)
    devices = Devices(bridge)
    devices.claim("mine")
    uid = bridge.pod("other", spec={"schedulerName": "other", "nodeName": "n2", **using(it="mine")})
    devices.allocate("mine", "n2", "gpu-3", pods={"other": uid})
    bridge.kube.merge(kinds.RESOURCECLAIMS, (NAMESPACE, "mine"), {"metadata": {"finalizers": [FINALIZER]}})
    bridge.kube.delete(kinds.RESOURCECLAIMS, (NAMESPACE, "mine"))
    bridge.pod("a", spec=using(it="mine"))
    bridge.run(30)
    assert devices.held("a") == ["n2/gpu-3"]
    assert bridge.condition("a")[0] == "WaitsForResourceClaims"
    assert bridge.kube_calls.count(method="PATCH", target="/resourceclaims/") == 0


def _end_and_hold(bridge: Bridge, name: str) -> None:
    """An administrator ends the job; its pod is parked."""
    bridge.slurm.control.end(bridge.job(name).job_id, "CANCELLED")
    bridge.run(2)
