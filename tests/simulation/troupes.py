"""What users make when several pods belong together: one record for a group of any kind, and its manifests.

The same manifests are taken by the pocket world and by the real cluster, whose kubelets obey the same annotations.
"""

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from typing import Any

from slurm_bridge.model import kinds, names

Manifest = dict[str, Any]
Made = tuple[kinds.Kind[Any], Manifest]

GPU = "nvidia.com/gpu"
KUBELET = "kwok.local/"


class Form(enum.Enum):
    """What makes the pods, and what holds them together."""

    JOB = "a Job that asks for a gang"
    JOBSET = "a JobSet: a driver and workers"
    PARTS = "a JobSet whose workers come after its driver runs"
    LWS = "a LeaderWorkerSet"
    PODGROUP = "pods that name a PodGroup of Kubernetes itself"
    COSCHEDULING = "pods that name a PodGroup of the coscheduling plugin"
    LABELS = "pods that say themselves that they belong together"


#: Of these the users make each pod by hand.
BARE = (Form.PODGROUP, Form.COSCHEDULING, Form.LABELS)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """What one pod asks for."""

    cpus: int = 1
    memory_mib: int = 200
    gpus: int = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Troupe:
    """A group: its leader (or driver, or first member), the others, and how it is to go on.

    `seconds` is how long its pods run, 0: until they are ended. `minimum` counts where users say it themselves.
    """

    form: Form
    name: str
    leader: Size
    worker: Size
    workers: int
    minimum: int = 0
    seconds: int = 0
    waves: int = 1
    suspended: bool = False
    slow_end: bool = False
    indexed: bool = True
    words: Mapping[str, str] = dataclasses.field(default_factory=dict)
    recreates: bool = True

    @property
    def size(self) -> int:
        """All members."""
        return self.workers + 1

    @property
    def sizes(self) -> Sequence[Size]:
        """What each member asks for, in order; the pods of a Job are all alike."""
        return (self.worker if self.form is Form.JOB else self.leader, *(self.worker,) * self.workers)

    @property
    def cpus(self) -> int:
        """All together."""
        return sum(size.cpus for size in self.sizes)


def manifests(troupe: Troupe, scheduler: str) -> list[Made]:
    """Everything that its users create, the group before its members."""
    if troupe.form in BARE:
        group = [group_object(troupe)] if troupe.form is not Form.LABELS else []
        return [*group, *(member(troupe, number, scheduler) for number in range(troupe.size))]
    return [_OWNERS[troupe.form](troupe, scheduler)]


def member(troupe: Troupe, number: int, scheduler: str) -> Made:
    """One pod that users make by hand."""
    metadata: Manifest = {"name": f"{troupe.name}-{number}", "annotations": _kubelet(troupe)}
    spec = _spec(troupe.sizes[min(number, troupe.workers)], scheduler)
    if troupe.form is Form.PODGROUP:
        spec["schedulingGroup"] = {"podGroupName": troupe.name}
    elif troupe.form is Form.COSCHEDULING:
        metadata["labels"] = {names.LABEL_COSCHEDULING: troupe.name}
    else:
        metadata["labels"] = {names.GROUP: troupe.name, names.GROUP_SIZE: str(troupe.minimum)}
        metadata["annotations"] |= dict(troupe.words)
    return kinds.PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def group_object(troupe: Troupe) -> Made:
    """What such pods name."""
    metadata = {"name": troupe.name, "annotations": dict(troupe.words)}
    if troupe.form is Form.COSCHEDULING:
        shown = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": metadata}
        return kinds.COSCHEDULING_PODGROUPS, {**shown, "spec": {"minMember": troupe.minimum}}
    shown = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": metadata}
    return kinds.PODGROUPS, {**shown, "spec": {"schedulingPolicy": {"gang": {"minCount": troupe.minimum}}}}


def _job(troupe: Troupe, scheduler: str) -> Made:
    words = {names.ANNOTATION_GANG: "true", **troupe.words}
    metadata = {"name": troupe.name, "annotations": words}
    spec = {**_job_spec(troupe, troupe.worker, troupe.size, scheduler), "suspend": troupe.suspended}
    mode = "Indexed" if troupe.indexed else "NonIndexed"
    spec |= {"completions": troupe.size * troupe.waves, "completionMode": mode, "backoffLimit": 20}
    return kinds.JOBS, {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _job_spec(troupe: Troupe, size: Size, pods: int, scheduler: str) -> Manifest:
    template = {"metadata": {"annotations": _kubelet(troupe)}, "spec": _spec(size, scheduler)}
    return {"parallelism": pods, "completions": pods, "template": template}


def _jobset(troupe: Troupe, scheduler: str) -> Made:
    driver = {"spec": {**_job_spec(troupe, troupe.leader, 1, scheduler), "backoffLimit": 0}}
    replicas = 2 if troupe.workers % 2 == 0 and troupe.workers else 1
    each = _job_spec(troupe, troupe.worker, max(1, troupe.workers // replicas), scheduler)
    workers: Manifest = {"name": "w", "replicas": replicas, "template": {"spec": {**each, "backoffLimit": 1}}}
    if troupe.form is Form.PARTS:
        workers["dependsOn"] = [{"name": "d", "status": "Ready"}]
    spec = {
        "replicatedJobs": [{"name": "d", "replicas": 1, "template": driver}, *([workers] if troupe.workers else [])],
        "failurePolicy": {"maxRestarts": 3},
        "suspend": troupe.suspended,
    }
    metadata = {"name": troupe.name, "annotations": dict(troupe.words)}
    shown = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata, "spec": spec}
    return kinds.JOBSETS, shown


def _lws(troupe: Troupe, scheduler: str) -> Made:
    template: Manifest = {
        "size": troupe.size,
        "restartPolicy": "RecreateGroupOnPodRestart" if troupe.recreates else "None",
        "workerTemplate": {
            "metadata": {"annotations": _kubelet(troupe)},
            "spec": _spec(troupe.worker, scheduler, "Always"),
        },
    }
    if troupe.leader != troupe.worker:
        leader = {"metadata": {"annotations": _kubelet(troupe)}, "spec": _spec(troupe.leader, scheduler, "Always")}
        template["leaderTemplate"] = leader
    startup = "LeaderReady" if troupe.waves > 1 else "LeaderCreated"
    spec = {"replicas": 1, "startupPolicy": startup, "leaderWorkerTemplate": template}
    metadata = {"name": troupe.name, "annotations": dict(troupe.words)}
    shown = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": metadata, "spec": spec}
    return kinds.LEADERWORKERSETS, shown


_OWNERS = {Form.JOB: _job, Form.JOBSET: _jobset, Form.PARTS: _jobset, Form.LWS: _lws}


def _kubelet(troupe: Troupe) -> dict[str, str]:
    """How the pods go on: what a kubelet of either world reads."""
    wishes = {"outcome": "succeed", "seconds": str(troupe.seconds)} if troupe.seconds else {"outcome": "run"}
    wishes |= {"terminating": "5s"} if troupe.slow_end else {}
    return {KUBELET + wish: value for wish, value in wishes.items()}


def _spec(size: Size, scheduler: str, restart: str = "Never") -> Manifest:
    amounts = {"cpu": str(size.cpus), "memory": f"{size.memory_mib}Mi"}
    gpus = {GPU: str(size.gpus)} if size.gpus else {}
    resources = {"requests": {**amounts, **gpus}, **({"limits": gpus} if gpus else {})}
    return {
        "schedulerName": scheduler,
        "restartPolicy": restart,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 3,
        "containers": [{"name": "main", "image": "none", "resources": resources}],
    }
