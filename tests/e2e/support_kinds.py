"""Manifests of every kind of owner, and what a user does to such objects: create, change, suspend, delete."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.e2e import support_servers, support_world
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

#: Kind -> API version and name in a path. The two PodGroups differ in their group alone.
_RESOURCES = {
    "Job": ("batch/v1", "jobs"),
    "CronJob": ("batch/v1", "cronjobs"),
    "Deployment": ("apps/v1", "deployments"),
    "ReplicaSet": ("apps/v1", "replicasets"),
    "StatefulSet": ("apps/v1", "statefulsets"),
    "JobSet": ("jobset.x-k8s.io/v1alpha2", "jobsets"),
    "LeaderWorkerSet": ("leaderworkerset.x-k8s.io/v1", "leaderworkersets"),
    "Workload": ("scheduling.k8s.io/v1alpha2", "workloads"),
    "PodGroup": ("scheduling.k8s.io/v1alpha2", "podgroups"),
    "CoschedulingPodGroup": ("scheduling.x-k8s.io/v1alpha1", "podgroups"),
}

#: Deletions take seconds, as they do everywhere, but not half a minute.
_GRACE_SECONDS = 2


class Objects:
    """The objects of one namespace, by kind and name."""

    def __init__(self, world: World) -> None:
        self._kube, self._namespace = world.kube, world.namespace

    def path(self, kind: str, name: str = "") -> str:
        """Where they are."""
        version, resource = _RESOURCES[kind]
        return f"/apis/{version}/namespaces/{self._namespace}/{resource}{name and '/' + name}"

    def create(
        self, kind: str, name: str, spec: Mapping[str, Any], annotations: Mapping[str, str] | None = None
    ) -> Json:
        """What `kubectl create` does."""
        head = {"apiVersion": _RESOURCES[kind][0], "kind": kind.removeprefix("Coscheduling")}
        body = {**head, "metadata": {"name": name, "annotations": dict(annotations or {})}, "spec": spec}
        return self._kube.create(self.path(kind), body)

    def get(self, kind: str, name: str) -> Json:
        return self._kube.get(self.path(kind, name))

    def change(self, kind: str, name: str, **spec: Any) -> None:
        """A merge patch of its spec."""
        self._kube.merge(self.path(kind, name), {"spec": spec})

    def delete(self, kind: str, name: str) -> None:
        """With all that it owns."""
        self._kube.delete(f"{self.path(kind, name)}?propagationPolicy=Background")


def containers(cpu: str = "1", memory: str = "64Mi", gpus: int = 0) -> list[Json]:
    """What a member asks for."""
    amounts = {"cpu": cpu, "memory": memory, **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    return [{"name": "c", "image": "busybox", "resources": {"requests": amounts, "limits": amounts}}]


def template(world: World, marks: Mapping[str, str] = support_world.FOREVER, **spec: Any) -> Json:
    """A pod without a name; `restartPolicy` is Never unless said."""
    usual = {"terminationGracePeriodSeconds": _GRACE_SECONDS, "containers": containers()}
    made = support_world.pod("unnamed", world.daemon.scheduler, annotations=marks, **{**usual, **spec})
    return {"metadata": {"annotations": made["metadata"]["annotations"]}, "spec": made["spec"]}


def served(world: World, **spec: Any) -> Json:
    """A pod of something that serves: it runs until it is deleted and is restarted for ever."""
    return template(world, restartPolicy="Always", **spec)


def job_spec(pods: Json, count: int, **spec: Any) -> Json:
    """So many pods at once, each with an index."""
    return {"parallelism": count, "completions": count, "completionMode": "Indexed", "template": pods, **spec}


def job_set_spec(parts: Mapping[str, Json], **spec: Any) -> Json:
    """One child Job of each of these specs."""
    jobs = [{"name": name, "replicas": 1, "template": {"spec": part}} for name, part in parts.items()]
    return {"replicatedJobs": jobs, **spec}


def leader_worker_spec(worker: Json, size: int, *, leader: Json | None = None, **spec: Any) -> Json:
    """One group of this size."""
    groups = {"size": size, "workerTemplate": worker, **({"leaderTemplate": leader} if leader else {})}
    return {"replicas": 1, "leaderWorkerTemplate": {**groups, **spec}}


def replicas_spec(name: str, pods: Json, count: int, **spec: Any) -> Json:
    """Of a Deployment, a ReplicaSet or a StatefulSet."""
    labels = {"app": name}
    labelled = {**pods, "metadata": {**pods["metadata"], "labels": labels}}
    return {"replicas": count, "selector": {"matchLabels": labels}, "template": labelled, **spec}


def members(world: World, prefix: str) -> list[Json]:
    """Pods of one object that are not on their way out, by the names that controllers make from its own."""
    found = (one for one in world.pods() if one["metadata"]["name"].startswith(prefix))
    return [one for one in found if "deletionTimestamp" not in one["metadata"] and not support_world.is_over(one)]


def fail(world: World, one: Json) -> None:
    """The container of this pod ends with an error now."""
    world.annotate(one["metadata"]["name"], {support_world.OUTCOME: "fail", "kwok.local/seconds": "0"})


def crash(world: World, one: Json) -> None:
    """The container of this pod ends and is restarted in its place."""
    world.annotate(one["metadata"]["name"], {support_world.OUTCOME: "crash-loop"})


def uids(pods: Sequence[Json]) -> set[str]:
    """Of pods."""
    return {str(one["metadata"]["uid"]) for one in pods}


def names(pods: Sequence[Json]) -> set[str]:
    """Of pods."""
    return {str(one["metadata"]["name"]) for one in pods}


def grouped(world: World, name: str, size: int, *, marks: Mapping[str, str], labels: Mapping[str, str]) -> list[Json]:
    """Bare pods that say to which group they belong."""
    made = []
    for number in range(size):
        one = support_world.pod(f"{name}-{number}", world.daemon.scheduler, annotations=marks)
        one["metadata"]["labels"] = dict(labels)
        made.append(one)
    return support_servers.each(made, lambda body: world.kube.create(world.path, body))
