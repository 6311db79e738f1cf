"""Draws the objects and pods that controllers would make from a manifest, as far as they can be known beforehand.

    Pod, Job, ReplicaSet, StatefulSet, DaemonSet     pods
    CronJob      one Job        Deployment       one ReplicaSet
    JobSet       its Jobs       LeaderWorkerSet  for each group the leader, and its workers
    PodGroups, Workloads        nothing: pods name them

The random end of a name is written `xxxxx`, or `xxxx` with a number if there are several.
"""

from collections.abc import Callable, Mapping
from typing import Any

from slurm_bridge.explain.sketch import Sketch, marked
from slurm_bridge.model import kinds, names
from slurm_bridge.model.groups import JobSet
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Manifest, Object

#: Draws what one object becomes.
Maker = Callable[[Sketch, Manifest], None]

Above = tuple[Kind[Any], Object]

_JOBSET = "jobset.sigs.k8s.io/"
_RANDOM = "xxxxx"

#: The origin of a pod without a controller begins with this.
BARE = "Pod #"


def draw(sketch: Sketch, manifest: Manifest) -> bool:
    """Draw what this object becomes; False for a kind that has no part in any workload."""
    group = str(manifest.get("apiVersion", "")).rpartition("/")[0]
    maker = MAKERS.get((group, str(manifest.get("kind"))))
    if maker is None:
        return False
    maker(sketch, manifest)
    return True


def _pod(sketch: Sketch, manifest: Manifest) -> None:
    """A pod without a controller; it has an origin of its own."""
    sketch.pod(manifest, None, f"{BARE}{len(sketch.pods)}")


def _job(sketch: Sketch, manifest: Manifest, above: Above | None = None, origin: str = "") -> None:
    job = sketch.add(kinds.JOBS, manifest, above)
    spec, count = manifest.get("spec") or {}, job.spec.pods
    indexed = job.spec.completion_mode == "Indexed"
    for number in range(count):
        index = {names.ANNOTATION_COMPLETION_INDEX: str(number)} if indexed else {}
        name = f"{job.metadata.name}-{number}-{_RANDOM}" if indexed else f"{job.metadata.name}-{_end(number, count)}"
        marks = {"batch.kubernetes.io/job-name": job.metadata.name, **index}
        _member(
            sketch, spec.get("template"), name, (kinds.JOBS, job), (marks, index), origin or _title(kinds.JOBS, job)
        )


def _cronjob(sketch: Sketch, manifest: Manifest) -> None:
    cron = sketch.add(kinds.CRONJOBS, manifest)
    made = (manifest.get("spec") or {}).get("jobTemplate") or {}
    _job(
        sketch,
        _child(cron, made, f"{cron.metadata.name}-{_RANDOM}", {}),
        (kinds.CRONJOBS, cron),
        _title(kinds.CRONJOBS, cron),
    )


def _deployment(sketch: Sketch, manifest: Manifest) -> None:
    found = sketch.add(kinds.DEPLOYMENTS, manifest)
    made = _child(found, {"spec": manifest.get("spec") or {}}, f"{found.metadata.name}-{_RANDOM}", {})
    _replicas(sketch, made, kinds.REPLICASETS, (kinds.DEPLOYMENTS, found))


def _replicaset(sketch: Sketch, manifest: Manifest) -> None:
    _replicas(sketch, manifest, kinds.REPLICASETS)


def _replicas(sketch: Sketch, manifest: Manifest, kind: Kind[Any], above: Above | None = None) -> None:
    found, spec = sketch.add(kind, manifest, above), manifest.get("spec") or {}
    count, origin = int(spec.get("replicas", 1)), _title(*(above or (kind, found)))
    for number in range(count):
        name = f"{found.metadata.name}-{_end(number, count)}"
        _member(sketch, spec.get("template"), name, (kind, found), ({}, {}), origin)


def _statefulset(sketch: Sketch, manifest: Manifest) -> None:
    found, spec = sketch.add(kinds.STATEFULSETS, manifest), manifest.get("spec") or {}
    for number in range(int(spec.get("replicas", 1))):
        name = f"{found.metadata.name}-{number}"
        _member(
            sketch, spec.get("template"), name, (kinds.STATEFULSETS, found), ({}, {}), _title(kinds.STATEFULSETS, found)
        )


def _daemonset(sketch: Sketch, manifest: Manifest) -> None:
    """One pod stands for all: they differ only in their node."""
    found, spec = sketch.add(kinds.DAEMONSETS, manifest), manifest.get("spec") or {}
    above: Above = (kinds.DAEMONSETS, found)
    _member(sketch, spec.get("template"), f"{found.metadata.name}-{_RANDOM}", above, ({}, {}), _title(*above))


def _jobset(sketch: Sketch, manifest: Manifest) -> None:
    found, all_jobs = sketch.add(kinds.JOBSETS, manifest), 0
    above: Above = (kinds.JOBSETS, found)
    described = (manifest.get("spec") or {}).get("replicatedJobs") or ()
    for part, raw in zip(found.spec.replicated_jobs, described, strict=True):
        for number in range(part.replicas):
            marks = {
                names.LABEL_JOBSET_NAME: found.metadata.name,
                names.LABEL_JOBSET_UID: found.uid,
                names.LABEL_JOBSET_PART: part.name,
                names.LABEL_JOBSET_ATTEMPT: "0",
                names.LABEL_JOBSET_GLOBAL_INDEX: str(all_jobs),
                f"{_JOBSET}job-index": str(number),
            }
            name = f"{found.metadata.name}-{part.name}-{number}"
            made = _job_of(found, raw.get("template") or {}, name, marks)
            _job(sketch, made, above, f"{part.name} of {_title(*above)}")
            all_jobs += 1


def _job_of(found: JobSet, template: Manifest, name: str, marks: Mapping[str, str]) -> Manifest:
    """A Job of a JobSet; its pods get the same labels and annotations."""
    made, spec = _child(found, template, name, marks), template.get("spec") or {}
    pods = marked(spec.get("template") or {}, "", marks, marks)
    return {**made, "spec": {"completionMode": "Indexed", **spec, "template": pods}}


def _leaderworkerset(sketch: Sketch, manifest: Manifest) -> None:
    found = sketch.add(kinds.LEADERWORKERSETS, manifest)
    made = (manifest.get("spec") or {}).get("leaderWorkerTemplate") or {}
    workers = made.get("workerTemplate")
    leaders = sketch.add(
        kinds.STATEFULSETS, _child(found, {}, found.metadata.name, {}), (kinds.LEADERWORKERSETS, found)
    )
    for group in range(1 if found.spec.replicas is None else found.spec.replicas):
        labels = {names.LABEL_LWS_NAME: found.metadata.name, names.LABEL_LWS_GROUP: str(group)}
        size = {names.ANNOTATION_LWS_SIZE: str(found.spec.leader_worker_template.size)}
        name = f"{found.metadata.name}-{group}"
        above: Above = (kinds.STATEFULSETS, leaders)
        for number in range(found.spec.leader_worker_template.size):
            template = (made.get("leaderTemplate") or workers) if number == 0 else workers
            pod = name if number == 0 else f"{name}-{number}"
            origin = f"{'leader' if number == 0 else 'worker'} of {_title(kinds.LEADERWORKERSETS, found)}"
            _member(sketch, template, pod, above, ({**labels, names.LABEL_LWS_WORKER: str(number)}, size), origin)
            if number == 0:
                leader: Above = (kinds.PODS, sketch.pods[-1])
                above = (kinds.STATEFULSETS, sketch.add(kinds.STATEFULSETS, _child(found, {}, name, {}), leader))


def _member(
    sketch: Sketch,
    template: Manifest | None,
    name: str,
    above: Above,
    marks: tuple[Mapping[str, str], Mapping[str, str]],
    origin: str,
) -> None:
    """A pod of a template; `marks` are the labels and annotations that its controller adds."""
    given = template or {}
    made = marked({"metadata": given.get("metadata"), "spec": given.get("spec") or {}}, name, *marks)
    made["metadata"]["namespace"] = above[1].metadata.namespace
    sketch.pod(made, above, origin)


def _title(kind: Kind[Any], found: Object) -> str:
    return f"{kind.kind} {'/'.join(found.key)}"


def _child(parent: Object, template: Manifest, name: str, marks: Mapping[str, str]) -> Manifest:
    """An object that another object creates."""
    made = marked(template, name, marks, marks)
    return {**made, "metadata": {**made["metadata"], "namespace": parent.metadata.namespace}}


def _end(number: int, count: int) -> str:
    """The random end of a name."""
    return _RANDOM if count == 1 else f"{number:x>{len(_RANDOM)}}"


def _only(kind: Kind[Any]) -> Maker:
    def add(sketch: Sketch, manifest: Manifest) -> None:
        sketch.add(kind, manifest)

    return add


_ROWS: tuple[tuple[Kind[Any], Maker], ...] = (
    (kinds.PODS, _pod),
    (kinds.JOBS, _job),
    (kinds.CRONJOBS, _cronjob),
    (kinds.DEPLOYMENTS, _deployment),
    (kinds.REPLICASETS, _replicaset),
    (kinds.STATEFULSETS, _statefulset),
    (kinds.DAEMONSETS, _daemonset),
    (kinds.JOBSETS, _jobset),
    (kinds.LEADERWORKERSETS, _leaderworkerset),
)
_SILENT = (kinds.PODGROUPS, kinds.COSCHEDULING_PODGROUPS, kinds.WORKLOADS)

#: By group and kind.
MAKERS: Mapping[tuple[str, str], Maker] = {
    (kind.group, kind.kind): maker for kind, maker in (*_ROWS, *((kind, _only(kind)) for kind in _SILENT))
}

#: For messages.
NAMES: tuple[str, ...] = tuple(kind.kind for kind, _ in _ROWS)
