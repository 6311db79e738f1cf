"""Creates and deletes objects, with whatever status the manifest has: no controller runs that would write one."""

import json
from collections.abc import Iterable

from localcluster.api import ApiError, Client
from scheduleroracle import pods, storage
from scheduleroracle.clusters import Cluster
from scheduleroracle.draws import Json

_PATHS = {
    "Namespace": "/api/v1/namespaces",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "RuntimeClass": "/apis/node.k8s.io/v1/runtimeclasses",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Node": "/api/v1/nodes",
    "CSINode": "/apis/storage.k8s.io/v1/csinodes",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims",
    "Service": "/api/v1/namespaces/{}/services",
    "ReplicaSet": "/apis/apps/v1/namespaces/{}/replicasets",
    "StatefulSet": "/apis/apps/v1/namespaces/{}/statefulsets",
    "Pod": "/api/v1/namespaces/{}/pods",
}
#: What belongs to one cluster; pods first, because all else is there for them.
_OF_A_CLUSTER = ("Pod", "ReplicaSet", "StatefulSet", "PersistentVolumeClaim", "PersistentVolume", "CSINode", "Node")
#: A created object of these has not the status of its manifest.
_WITH_STATUS = ("Pod", "PersistentVolume", "PersistentVolumeClaim")
_MERGE = "application/merge-patch+json"
_AT_ONCE = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}


class Objects:
    """Writes to one API server."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def create(self, manifest: Json) -> Json:
        """The object as the API server has it; ApiError when it refuses it."""
        path = path_of(manifest)
        made: Json = self._client.create(path, manifest)
        if manifest["kind"] in _WITH_STATUS and "status" in manifest:
            body = json.dumps({"status": manifest["status"]}).encode()
            made = self._client.call("PATCH", f"{path}/{made['metadata']['name']}/status", body, _MERGE)
        return made

    def prepare(self) -> None:
        """What all clusters have in common."""
        for manifest in _common():
            self.create(manifest)

    def build(self, cluster: Cluster) -> list[Json]:
        """All of it, as the API server has it."""
        made = [self.create(manifest) for manifest in cluster.objects]
        for namespace, name in cluster.ending:
            self._client.delete(f"{_PATHS['Pod'].format(namespace)}/{name}")
        return made

    def remove(self, manifest: Json) -> None:
        """At once."""
        path = f"{path_of(manifest)}/{manifest['metadata']['name']}"
        self._client.call("DELETE", path, json.dumps(_AT_ONCE).encode())

    def clear(self) -> None:
        """Everything that belongs to one cluster."""
        for kind in _OF_A_CLUSTER:
            for path in _collections(kind):
                self._client.call("DELETE", path, json.dumps(_AT_ONCE).encode())
        for path in _collections("Service"):
            for one in self._client.get(path)["items"]:
                self._client.delete(f"{path}/{one['metadata']['name']}")


def path_of(manifest: Json) -> str:
    """Where objects of its kind are."""
    return _PATHS[manifest["kind"]].format(manifest["metadata"].get("namespace", ""))


def refused(error: ApiError) -> bool:
    """The API server finds the object invalid."""
    return error.status in (400, 403, 422)


def _collections(kind: str) -> Iterable[str]:
    path = _PATHS[kind]
    return [path.format(one) for one in pods.NAMESPACES] if "{}" in path else [path]


def _common() -> Iterable[Json]:
    for name in pods.NAMESPACES:
        labels = {"kind": "work"} if name != pods.NAMESPACES[0] else {}
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    for name, value in pods.CLASSES.items():
        yield {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
    yield {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": pods.RUNTIME},
        "handler": pods.RUNTIME,
        "overhead": {"podFixed": {"cpu": "150m", "memory": "100Mi"}},
    }
    yield from storage.CLASSES
