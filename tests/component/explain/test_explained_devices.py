"""Pods with devices of DRA drivers: the explanation counts them, as the daemon would."""

import json
from collections.abc import Callable, Iterator

import pytest

from slurm_bridge.demo import pocket
from slurm_bridge.explain.explanation import Explanation
from slurm_bridge.model import kinds
from slurm_bridge.model.verdict import Wait
from tests.component.explain import explained

DRIVER = "gpu.example.com"
CLASS = f"deviceclass.resource.kubernetes.io/{DRIVER}"
ROW = {"device_class": DRIVER, "gres": "gpu", "index": "index"}
HOOKS = f"hooks={json.dumps([{'name': 'device-claims', 'options': {'classes': [ROW]}}])}"

Explain = Callable[..., Explanation]


@pytest.fixture(autouse=True)
def gpus(world: pocket.PocketWorld) -> Iterator[None]:
    """A driver publishes two on each node of which Slurm has GPUs."""
    found = {name for name, node in world.slurmctld.world.nodes.items() if node.gres}
    world.kube.create(kinds.DEVICECLASSES, {"metadata": {"name": DRIVER}, "spec": {}})
    for node in found:
        devices = [{"name": f"gpu-{one}", "attributes": {"index": {"int": one}}} for one in range(2)]
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}
        world.kube.create(kinds.RESOURCESLICES, {"metadata": {"name": node}, "spec": spec})
    requests = [{"name": "gpu", "exactly": {"deviceClassName": DRIVER, "count": 2}}]
    meta = {"name": "mine", "namespace": "default"}
    world.kube.create(kinds.RESOURCECLAIMS, {"metadata": meta, "spec": {"devices": {"requests": requests}}})
    yield
    world.kube.delete(kinds.DEVICECLASSES, ("", DRIVER))
    world.kube.delete(kinds.RESOURCECLAIMS, ("default", "mine"))
    for node in found:
        world.kube.delete(kinds.RESOURCESLICES, ("", node))


def asking(count: int) -> dict[str, object]:
    """A pod that asks by the name of the class."""
    amounts = {"cpu": "1", CLASS: str(count)}
    container = {"name": "main", "image": "busybox", "resources": {"limits": amounts, "requests": amounts}}
    return explained.pod(containers=[container])


def test_the_devices_of_a_claim_are_part_of_the_request(explain: Explain) -> None:
    """They are known only when the claims were read."""
    claimed = [{"name": "gpus", "resourceClaimName": "mine"}]
    found = explain(explained.pod(resourceClaims=claimed), HOOKS)
    assert found.obstacle is None
    assert {one.field: one.value for one in found.values}["gres"] == "gpu:2"


@pytest.mark.parametrize(("count", "starts"), [(1, True), (3, False)])
def test_devices_by_an_extended_resource_are_there(explain: Explain, count: int, starts: bool) -> None:
    """As many as drivers publish, although no kubelet counts them."""
    found = explain(asking(count), HOOKS)
    if starts:
        assert {one.field: one.value for one in found.values}["gres"] == "gpu:1"
    else:
        assert isinstance(found.obstacle, Wait)
        assert f"Insufficient {CLASS}" in found.obstacle.message
