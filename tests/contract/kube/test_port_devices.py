"""ResourceClaims as the scheduler writes them: which changes are refused, and what happens when their pods are over."""

import secrets
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from slurm_bridge import errors
from slurm_bridge.kube import client
from slurm_bridge.model import kinds
from slurm_bridge.model.devices import FINALIZER, ResourceClaim
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Object
from slurm_bridge.model.pod import Pod
from tests import wait

DRIVER = "gpu.contract.example.com"
TEMPLATES: Kind[Object] = Kind(
    group="resource.k8s.io",
    versions=("v1",),
    plural="resourceclaimtemplates",
    kind="ResourceClaimTemplate",
    record=Object,
)
SPEC = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": DRIVER, "count": 2}}]}}


@pytest.fixture(scope="module")
def cluster(cluster_port: client.KubeClient) -> client.KubeClient:
    """Our adapter, as an administrator."""
    return cluster_port


@pytest.fixture(scope="module")
def namespace(cluster: client.KubeClient) -> Iterator[str]:
    """A namespace in which pods can be made."""
    made = cluster.create(kinds.NAMESPACES, "", {"metadata": {"name": f"claims-{secrets.token_hex(3)}"}})
    _eventually(lambda: cluster.create(kinds.PODS, made.metadata.name, _pod("first")))
    yield made.metadata.name
    for claim in cluster.list(kinds.RESOURCECLAIMS).items:
        if claim.metadata.namespace == made.metadata.name:
            cluster.delete(kinds.RESOURCECLAIMS, claim)
    cluster.delete(kinds.NAMESPACES, made)


@pytest.fixture
def pod(cluster: client.KubeClient, claim: ResourceClaim) -> Pod:
    """A pod that uses the claim: pods that do not name it are of no interest to the controller of claims."""
    entries = [{"name": "gpus", "resourceClaimName": claim.metadata.name}]
    return cluster.create(
        kinds.PODS, claim.metadata.namespace, _pod(f"pod-{secrets.token_hex(4)}", resourceClaims=entries)
    )


@pytest.fixture
def claim(cluster: client.KubeClient, namespace: str) -> ResourceClaim:
    """A claim of this case alone."""
    manifest = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "spec": SPEC}
    return cluster.create(
        kinds.RESOURCECLAIMS, namespace, {**manifest, "metadata": {"name": f"claim-{secrets.token_hex(4)}"}}
    )


def _pod(name: str, **spec: Any) -> dict[str, Any]:
    wanted = {"schedulerName": "nobody", "containers": [{"name": "main", "image": "none"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": wanted}


def _eventually(call: Callable[[], object]) -> object:
    pause = threading.Event()
    for _ in range(100):
        try:
            return call()
        except (errors.NotAuthorized, errors.Conflict):
            pause.wait(0.1)
    return call()


def _protected(cluster: client.KubeClient, claim: ResourceClaim) -> ResourceClaim:
    metadata = {"resourceVersion": claim.metadata.resource_version, "finalizers": [FINALIZER]}
    return cluster.patch(kinds.RESOURCECLAIMS, claim, {"metadata": metadata})


def _status(claim: ResourceClaim, pod: Pod, *devices: str) -> dict[str, Any]:
    results = [{"request": "gpu", "driver": DRIVER, "pool": "n1", "device": one} for one in devices]
    fields = [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]
    allocation = {
        "devices": {"results": results},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": fields}]},
    }
    user = {"resource": "pods", "name": pod.metadata.name, "uid": pod.uid}
    status = {"allocation": allocation, "reservedFor": [user]}
    return {"metadata": {"resourceVersion": claim.metadata.resource_version}, "status": status}


def _allocated(cluster: client.KubeClient, claim: ResourceClaim, pod: Pod, *devices: str) -> ResourceClaim:
    return cluster.patch(kinds.RESOURCECLAIMS, claim, _status(claim, pod, *devices), "status")


def _back(claim: ResourceClaim) -> dict[str, Any]:
    status = {"allocation": None, "reservedFor": None}
    return {"metadata": {"resourceVersion": claim.metadata.resource_version}, "status": status}


def test_a_claim_gets_devices_and_a_user(cluster: client.KubeClient, claim: ResourceClaim, pod: Pod) -> None:
    """In two writes: the finalizer, and the status, which keeps it."""
    found = _allocated(cluster, _protected(cluster, claim), pod, "gpu-1", "gpu-3")
    assert [one.device for one in found.held] == ["gpu-1", "gpu-3"]
    assert [(one.resource, one.uid) for one in found.status.reserved_for] == [("pods", pod.uid)]
    assert FINALIZER in found.metadata.finalizers


def test_an_allocation_is_never_replaced(cluster: client.KubeClient, claim: ResourceClaim, pod: Pod) -> None:
    """It has to be taken back first."""
    found = _allocated(cluster, _protected(cluster, claim), pod, "gpu-1", "gpu-3")
    with pytest.raises(errors.BridgeError, match=r"status\.allocation"):
        _allocated(cluster, found, pod, "gpu-0", "gpu-2")
    found = cluster.patch(kinds.RESOURCECLAIMS, found, _back(found), "status")
    assert (found.held, found.status.reserved_for) == ((), ())
    assert _allocated(cluster, found, pod, "gpu-0", "gpu-2").held


def test_the_version_that_was_looked_at_is_a_precondition(
    cluster: client.KubeClient, claim: ResourceClaim, pod: Pod
) -> None:
    """Of two schedulers the second is refused, and the devices of the first stay."""
    seen = _protected(cluster, claim)
    _allocated(cluster, seen, pod, "gpu-1", "gpu-3")
    with pytest.raises(errors.Conflict):
        _allocated(cluster, seen, pod, "gpu-0", "gpu-2")
    now = cluster.get(kinds.RESOURCECLAIMS, *claim.key)
    assert now is not None
    assert [one.device for one in now.held] == ["gpu-1", "gpu-3"]


def test_a_claim_is_deleted_as_it_was_looked_at_only(cluster: client.KubeClient, claim: ResourceClaim) -> None:
    """A version is a precondition of its deletion, too."""
    now = _protected(cluster, claim)
    with pytest.raises(errors.Conflict):
        cluster.delete(kinds.RESOURCECLAIMS, claim, version=claim.metadata.resource_version)
    cluster.delete(kinds.RESOURCECLAIMS, now, version=now.metadata.resource_version)


def test_nothing_uses_a_claim_without_devices(cluster: client.KubeClient, claim: ResourceClaim, pod: Pod) -> None:
    """`reservedFor` alone is refused."""
    status = _status(claim, pod)
    del status["status"]["allocation"]
    with pytest.raises(errors.BridgeError, match="reservedFor"):
        cluster.patch(kinds.RESOURCECLAIMS, claim, status, "status")


def test_devices_are_given_back_when_the_pod_is_gone(
    cluster: client.KubeClient, claim: ResourceClaim, pod: Pod
) -> None:
    """By Kubernetes' own controller, which also takes the finalizer."""
    _allocated(cluster, _protected(cluster, claim), pod, "gpu-1", "gpu-3")
    cluster.delete(kinds.PODS, pod, grace_seconds=0)

    def free() -> bool:
        now = cluster.get(kinds.RESOURCECLAIMS, *claim.key)
        return now is not None and not now.held and FINALIZER not in now.metadata.finalizers

    wait.until(free, "the devices to be given back", 30)


def test_a_claim_with_devices_outlives_its_deletion(cluster: client.KubeClient, claim: ResourceClaim, pod: Pod) -> None:
    """Until its pod is gone."""
    _allocated(cluster, _protected(cluster, claim), pod, "gpu-1", "gpu-3")
    cluster.delete(kinds.RESOURCECLAIMS, claim)
    now = cluster.get(kinds.RESOURCECLAIMS, *claim.key)
    assert now is not None
    assert now.held
    cluster.delete(kinds.PODS, pod, grace_seconds=0)
    wait.until(lambda: cluster.get(kinds.RESOURCECLAIMS, *claim.key) is None, "the end of the claim", 30)


def test_a_template_makes_a_claim_of_the_pods_own(cluster: client.KubeClient, namespace: str) -> None:
    """Its name is in the pod's status, and the pod is its controller."""
    template = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "spec": {"spec": SPEC}}
    name = f"two-{secrets.token_hex(4)}"
    cluster.create(TEMPLATES, namespace, {**template, "metadata": {"name": name}})
    entries = [{"name": "gpus", "resourceClaimTemplateName": name}]
    cluster.create(kinds.PODS, namespace, _pod(name, resourceClaims=entries))

    def made() -> str:
        pod = cluster.get(kinds.PODS, namespace, name)
        statuses = pod.status.resource_claim_statuses if pod is not None else ()
        return next((one.resource_claim_name or "" for one in statuses if one.name == "gpus"), "")

    wait.until(made, "the claim", 30)
    claim, pod = cluster.get(kinds.RESOURCECLAIMS, namespace, made()), cluster.get(kinds.PODS, namespace, name)
    assert claim is not None
    assert pod is not None
    assert [(one.uid, one.controller) for one in claim.metadata.owner_references] == [(pod.uid, True)]
    assert claim.spec.devices.requests[0].exactly is not None
    assert claim.spec.devices.requests[0].exactly.count == 2
