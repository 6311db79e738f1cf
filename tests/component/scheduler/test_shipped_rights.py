"""The daemon with exactly the rights that deploy/ grants."""

import pathlib
from typing import Any

import pytest
import yaml

from slurm_bridge.kube.client import KubeClient
from slurm_bridge.model import kinds, names
from slurm_bridge.sim import faults
from slurm_bridge.sim.kube import access
from tests.component.scheduler import claimed_devices
from tests.component.scheduler.claimed_volumes import HOOKS, LOCAL, Storage, using
from tests.component.scheduler.whole_core import Bridge
from tests.simulation import fleet
from tests.simulation.world import World

DEPLOY = pathlib.Path(__file__).resolve().parents[3] / "deploy"
RBAC = (DEPLOY / "rbac.yaml", DEPLOY / "device-claims" / "rbac.yaml")
TOKEN = "token-of-the-service-account"


def granted() -> tuple[access.AccessRule, ...]:
    """The rules of all roles, as the pocket API server takes them."""
    documents = [one for file in RBAC for one in yaml.safe_load_all(file.read_text())]
    rules = [rule for one in documents for rule in one.get("rules", ())]
    return tuple(access.AccessRule(verbs=tuple(rule["verbs"]), resources=_resources(rule)) for rule in rules)


def _resources(rule: Any) -> tuple[str, ...]:
    parts = [(one.partition("/"), group) for group in rule["apiGroups"] for one in rule["resources"]]
    return tuple(
        f"{plural}.{group}{slash}{more}" if group else plural + slash + more for (plural, slash, more), group in parts
    )


class Limited(Bridge):
    """The API server knows the daemon as its service account."""

    def _cluster(self) -> KubeClient:
        self.kube.access.grant(TOKEN, access.User(name="system:serviceaccount:x:slurm-bridge", rules=granted()))
        given, self.kube.token = self.kube.token, TOKEN
        try:
            return super()._cluster()
        finally:
            self.kube.token = given


@pytest.fixture
def limited(bridge: Bridge) -> Limited:
    """In the same world."""
    return Limited(bridge.folder, world=bridge.world)


def test_claims_and_volumes_are_bound_with_the_shipped_rights(limited: Limited) -> None:
    """A node is selected for one claim, and a volume is kept for the other."""
    limited = Limited(limited.folder, world=limited.world, hooks=HOOKS)
    storage = Storage(limited)
    storage.volume("v", "n3")
    storage.claim("made")
    storage.claim("local", of=LOCAL)
    limited.pod("a", spec=using("made", "local"))
    storage.until(lambda: limited.node_of("a"))
    assert limited.node_of("a") == storage.selected("made") == "n3"


def test_resource_claims_get_their_devices_with_the_shipped_rights(bridge: Bridge) -> None:
    """Of the hook: a finalizer, the devices of the allocation, and back again."""
    world = World(1, bridge.folder / "token", fleet=fleet.HYBRID)
    limited = Limited(bridge.folder, world=world, hooks=claimed_devices.hooks())
    devices = claimed_devices.Devices(limited)
    devices.template()
    limited.kube_calls.plan(faults.Answer(503), method="POST", target="/binding")
    limited.pod("a", spec=claimed_devices.using("one"))
    limited.until(lambda: devices.held("a"))
    node = devices.held("a")[0].partition("/")[0]
    limited.kube.merge(kinds.NODES, ("", node), {"spec": {"unschedulable": True}})
    limited.until(lambda: limited.node_of("a"), 120)
    assert devices.held("a")[0].partition("/")[0] == limited.node_of("a") != node


@pytest.mark.security("rights")
def test_a_pod_is_parked_without_the_right_to_patch_pods(limited: Limited) -> None:
    """The shipped rights are enough to schedule, park and end pods, and none of them changes a pod's spec."""
    job = limited.waiting("a")
    limited.slurm.control.end(job.job_id, "CANCELLED")
    limited.until(lambda: limited.park_note("a"))
    limited.slurm.control.unpause()
    limited.bound("b")
    limited.slurm.control.end(limited.job("b").job_id, "CANCELLED")
    limited.until(lambda: limited.leaving("b"), 120)
    patched = limited.kube_calls.count(method="PATCH", target="/pods/")
    assert patched
    assert patched == limited.kube_calls.count(method="PATCH", target="/status")


def test_the_pocket_server_knows_the_difference(limited: Limited) -> None:
    """Or the case above would show nothing: the same account is refused at the pod itself."""
    limited.pod("a")
    seen = limited._cluster().get(kinds.PODS, "default", "a")
    assert seen is not None
    with pytest.raises(Exception, match="cannot patch resource"):
        limited._cluster().patch(kinds.PODS, seen, {"metadata": {"annotations": {names.ANNOTATION_PARKED: "x"}}})
