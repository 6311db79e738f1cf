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


def gang(
    name: str = "crew", count: int = 3, annotations: dict[str, Any] | None = None, **changes: Any
) -> dict[str, Any]:
    """A Job whose pods start together."""
    said = {"gang": "true", **(annotations or {})}
    return job(name, said, completions=count, parallelism=count, completionMode="Indexed", **changes)


def gpus(cpus: int, count: int) -> dict[str, Any]:
    """The template of a pod with GPUs."""
    amounts = {"cpu": str(cpus), "memory": "64Mi", "nvidia.com/gpu": str(count)}
    container = {"name": "main", "image": "busybox", "resources": {"requests": amounts, "limits": amounts}}
    return {"spec": {**spec(), "containers": [container]}}


def leaderworkerset(size: int, leader: dict[str, Any], worker: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """One group on the partition for GPUs; changes are of its spec."""
    template = {"size": size, "leaderTemplate": leader, "workerTemplate": worker}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "serve", "namespace": "default", "annotations": {PREFIX + "partition": "gpu"}},
        "spec": {"replicas": 1, "leaderWorkerTemplate": template, **changes},
    }


def jobset(*parts: tuple[str, int, int], **changes: Any) -> dict[str, Any]:
    """Parts by name, number of Jobs and pods of each; changes are of its spec."""
    described = [
        {
            "name": name,
            "replicas": jobs,
            "template": {"spec": {"completions": pods, "parallelism": pods, "template": {"spec": spec()}}},
        }
        for name, jobs, pods in parts
    ]
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "sim", "namespace": "default"},
        "spec": {"replicatedJobs": described, **changes},
    }


def podgroup(minimum: int, *, coscheduling: bool = False) -> dict[str, Any]:
    """Of Kubernetes itself, or of the plugin."""
    group = "scheduling.x-k8s.io/v1alpha1" if coscheduling else "scheduling.k8s.io/v1alpha2"
    spec_ = {"minMember": minimum} if coscheduling else {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    metadata = {"name": "together", "namespace": "default"}
    return {"apiVersion": group, "kind": "PodGroup", "metadata": metadata, "spec": spec_}
