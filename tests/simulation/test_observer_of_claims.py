"""The observer of claims can fail: each promise is broken by hand."""

import pathlib
from typing import Any

import pytest

from slurm_bridge.model import kinds
from slurm_bridge.model.devices import FINALIZER
from slurm_bridge.model.job import Gres
from tests.component.scheduler.claimed_devices import DRIVER, DeviceObjects, using
from tests.simulation import fleet
from tests.simulation.broken_promise import Broken
from tests.simulation.claim_rules import ClaimRules, claims_of
from tests.simulation.manual_daemon import Hand
from tests.simulation.world import NAMESPACE, World, spec


class Scene:
    """Pods `a` and `b` with a claim for one GPU each, and a daemon that does what the test says."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.world = World(2, folder / "token", fleet=fleet.HYBRID)
        self.rules = ClaimRules(self.world)
        self.hand, self.objects = Hand(self.world), DeviceObjects(self.world)
        self.objects.template("one")
        for name in ("a", "b"):
            made = {"metadata": {"name": name}, "spec": {**spec("1"), **using("one")}}
            self.world.kube.create(kinds.PODS, made)
        self.world.pass_time(1.0)

    def submit(self, name: str) -> int:
        """A job with one GPU of n1."""
        job = self.hand.submit(name, gres=(Gres(name="gpu", count=1),), excluded_nodes=("n2", "n3", "s4"))
        self.world.pass_time(5.0)
        return job

    def claim_of(self, pod: str) -> str:
        """The name of its claim."""
        (name,) = claims_of(self.world.find(pod) or {}).values()
        return name

    def give(self, pod: str, device: str = "gpu-0", node: str = "n1", *, claim: str = "", uid: str = "") -> None:
        """What the daemon writes: the finalizer, then the status."""
        self.write(claim or self.claim_of(pod), {"metadata": {"finalizers": [FINALIZER]}})
        results = [{"request": "gpu", "driver": DRIVER, "pool": node, "device": device}]
        users = [{"resource": "pods", "name": pod, "uid": uid or (self.world.find(pod) or {})["metadata"]["uid"]}]
        status = {"allocation": {"devices": {"results": results}}, "reservedFor": users}
        self.write(claim or self.claim_of(pod), {"status": status}, "status")

    def write(self, name: str, changes: dict[str, Any], subresource: str = "") -> None:
        """One call."""
        claim = self.hand.cluster.get(kinds.RESOURCECLAIMS, NAMESPACE, name)
        assert claim is not None
        self.hand.cluster.patch(kinds.RESOURCECLAIMS, claim, changes, subresource)


@pytest.fixture
def scene(tmp_path: pathlib.Path) -> Scene:
    return Scene(tmp_path)


def test_what_is_right_is_silent(scene: Scene) -> None:
    """Devices as Slurm gave them, the binding, the end of the pod: there is no complaint, and nothing is left."""
    job = scene.submit("a")
    scene.give("a")
    scene.hand.bind("a", "n1", job)
    assert scene.rules.bindings == 1
    scene.world.delete_pod("a")
    scene.world.pass_time(30.0)
    assert scene.rules.leaked() == []


def test_d1_a_device_in_two_claims(scene: Scene) -> None:
    """It is seen with the second write."""
    scene.give("a")
    with pytest.raises(Broken, match="D1"):
        scene.give("b")


def test_d1_a_device_that_another_scheduler_has_given(scene: Scene) -> None:
    """What it did just before is forgiven; what a daemon must have heard of is not."""
    scene.objects.claim("theirs")
    scene.objects.allocate("theirs", "n1", "gpu-0")
    scene.give("a")
    scene.world.pass_time(50.0)
    scene.objects.claim("more")
    scene.objects.allocate("more", "n1", "gpu-1")
    scene.rules.look()
    scene.world.pass_time(50.0)
    with pytest.raises(Broken, match="D1"):
        scene.give("b", "gpu-1")


@pytest.mark.parametrize(("device", "node"), [("", ""), ("gpu-0", "n2"), ("gpu-3", "n1")])
def test_d2_a_pod_without_its_devices(scene: Scene, device: str, node: str) -> None:
    """None at all, those of another node, and others than Slurm gave."""
    job = scene.submit("a")
    if device:
        scene.give("a", device, node)
    with pytest.raises(Broken, match="D2"):
        scene.hand.bind("a", "n1", job)


def test_d2_devices_of_another_pod(scene: Scene) -> None:
    """The claim is reserved for it alone."""
    job = scene.submit("a")
    scene.give("b", claim=scene.claim_of("a"))
    with pytest.raises(Broken, match="D2"):
        scene.hand.bind("a", "n1", job)


def test_d3_a_claim_of_others(scene: Scene) -> None:
    """No pod of ours uses it."""
    scene.objects.claim("theirs")
    scene.world.pass_time(50.0)
    with pytest.raises(Broken, match="D3"):
        scene.give("a", claim="theirs")


def test_d3_a_claim_that_has_devices(scene: Scene) -> None:
    """They are taken back before it is another pod's."""
    scene.give("a")
    with pytest.raises(Broken, match="D3"):
        scene.give("b", claim=scene.claim_of("a"))


@pytest.mark.parametrize("changes", [{"annotations": {"x": "y"}}, {"finalizers": ["x/y"]}, {"ownerReferences": []}])
def test_d3_more_than_devices(scene: Scene, changes: dict[str, Any]) -> None:
    """Everything else of a claim is its owner's."""
    with pytest.raises(Broken, match="D3"):
        scene.write(scene.claim_of("a"), {"metadata": changes})


def test_d3_devices_of_a_pod_that_runs(scene: Scene) -> None:
    """They are not taken back."""
    job = scene.submit("a")
    scene.give("a")
    scene.hand.bind("a", "n1", job)
    with pytest.raises(Broken, match="D3"):
        scene.write(scene.claim_of("a"), {"status": {"allocation": None, "reservedFor": None}}, "status")


def test_d4_devices_for_no_pod(scene: Scene) -> None:
    """Nothing takes them back from a claim whose finalizer is gone."""
    scene.give("a")
    scene.world.kube.merge(kinds.RESOURCECLAIMS, (NAMESPACE, scene.claim_of("a")), {"metadata": {"finalizers": None}})
    scene.world.kube.merge(
        kinds.RESOURCECLAIMS, (NAMESPACE, scene.claim_of("a")), {"status": {"reservedFor": None}}, subresource="status"
    )
    assert [text[:2] for text in scene.rules.leaked()] == ["D4"]
