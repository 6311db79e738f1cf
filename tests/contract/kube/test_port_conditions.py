"""Conditions of a pod as our adapter writes them: one by one, on exactly the pod that was seen."""

import secrets
import threading
from collections.abc import Iterator

import pytest

from slurm_bridge import errors, ports
from slurm_bridge.kube import client
from slurm_bridge.model import kinds
from slurm_bridge.model.meta import Manifest
from slurm_bridge.model.pod import Pod

GATE = {"type": "example.com/gate", "status": "True", "reason": "Theirs"}
WAITS = {"type": "PodScheduled", "status": "False", "reason": "SlurmJobPending", "message": "no room"}


@pytest.fixture(scope="module")
def namespace(cluster_port: client.KubeClient) -> Iterator[str]:
    """A namespace of our own."""
    made = cluster_port.create(kinds.NAMESPACES, "", {"metadata": {"name": f"conditions-{secrets.token_hex(3)}"}})
    yield made.metadata.name
    cluster_port.delete(kinds.NAMESPACES, made)


@pytest.fixture
def pod(cluster_port: client.KubeClient, namespace: str) -> Pod:
    """A pod that nobody schedules, with a condition of somebody else."""
    spec = {"schedulerName": "nobody", "containers": [{"name": "main", "image": "none"}]}
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p-{secrets.token_hex(4)}"}, "spec": spec}
    return patched(cluster_port, _created(cluster_port, namespace, manifest), GATE)


def _created(cluster: client.KubeClient, namespace: str, manifest: Manifest) -> Pod:
    """The pod, once the namespace has the service account that pods need."""
    pause = threading.Event()
    for _ in range(100):
        try:
            return cluster.create(kinds.PODS, namespace, manifest)
        except errors.NotAuthorized:
            pause.wait(0.1)
    return cluster.create(kinds.PODS, namespace, manifest)


def patched(cluster: client.KubeClient, pod: Pod, condition: Manifest, **metadata: str) -> Pod:
    """The pod after this condition was written."""
    changes: Manifest = {"metadata": metadata, "status": {"conditions": [condition]}}
    return cluster.patch(kinds.PODS, pod, changes, "status")


def shown(pod: Pod) -> dict[str, tuple[str, str | None]]:
    """Status and reason by type."""
    return {line.type: (line.status, line.reason) for line in pod.status.conditions}


def test_one_condition_is_merged_among_the_others(cluster_port: client.KubeClient, pod: Pod) -> None:
    """The conditions of others stay, also one that was written after we read the pod."""
    patched(cluster_port, pod, {"type": "example.com/late", "status": "False"})
    assert shown(patched(cluster_port, pod, WAITS)) == {
        "PodScheduled": ("False", "SlurmJobPending"),
        "example.com/gate": ("True", "Theirs"),
        "example.com/late": ("False", None),
    }


def test_a_condition_on_a_pod_that_has_changed_is_refused(cluster_port: client.KubeClient, pod: Pod) -> None:
    """With the resource version that was seen, "it waits" cannot land on a pod that was bound meanwhile."""
    node = cluster_port.list(kinds.NODES).items[0]
    binding = ports.Binding(namespace=pod.key[0], pod=pod.key[1], uid=pod.uid, node=node.metadata.name)
    cluster_port.bind(binding)
    with pytest.raises(errors.Conflict):
        patched(cluster_port, pod, WAITS, resourceVersion=pod.metadata.resource_version)
    found = cluster_port.get(kinds.PODS, *pod.key)
    assert found is not None
    assert shown(found)["PodScheduled"] == ("True", None)
    cluster_port.delete(kinds.PODS, found, 0)
