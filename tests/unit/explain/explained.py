"""Manifests to explain."""

from typing import Any

from slurm_bridge.model import names
from slurm_bridge.model.workload import Root

PREFIX, PARKED = names.JOB_PREFIX, names.ANNOTATION_PARKED


def spec(**changes: Any) -> dict[str, Any]:
    """Of a pod for us, of one cpu."""
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1", "memory": "64Mi"}}}
    return {"schedulerName": names.SCHEDULER_NAME, "containers": [container], **changes}


def pod(name: str = "a", annotations: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """A pod; annotations without their prefix."""
    said = {PREFIX + key: value for key, value in (annotations or {}).items()}
    metadata = {"name": name, "namespace": "default", "annotations": said}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec(**changes)}


def job(name: str = "train", annotations: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """A Job with one such pod; changes are of its spec."""
    said = {PREFIX + key: value for key, value in (annotations or {}).items()}
    metadata = {"name": name, "namespace": "default", "annotations": said}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {"template": {"spec": spec()}, **changes},
    }


def root(name: str, uid: str) -> Root:
    """The workload that a pod of this name is."""
    return Root(kind="Pod", namespace="default", name=name, uid=uid)
