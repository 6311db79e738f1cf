"""LeaderWorkerSets, JobSets and their pods, with the marks that the real controllers put on them."""

from typing import Any

from slurm_bridge.model import kinds, names
from slurm_bridge.model.groups import JobSet
from slurm_bridge.model.meta import Object
from slurm_bridge.model.pod import Pod
from tests.unit.workloads.heard import Heard, indexed


def lws(world: Heard, size: int = 2, restart: str = "RecreateGroupOnPodRestart", **values: Any) -> Object:
    """A set; `startup` is its policy."""
    template = {"size": size, "restartPolicy": restart}
    spec = {"leaderWorkerTemplate": template, "startupPolicy": values.pop("startup", "LeaderCreated")}
    return world.put(kinds.LEADERWORKERSETS, "lws", spec=spec, **values)


def of_lws(world: Heard, group: int, worker: int, size: int = 2, **values: Any) -> Pod:
    """A pod as the two StatefulSets make it."""
    name = f"lws-{group}-{worker}" if worker else f"lws-{group}"
    made_by = world.made(kinds.STATEFULSETS, f"lws-{group}" if worker else "lws", uid=f"sts-{group}")
    labels = {
        names.LABEL_LWS_NAME: "lws",
        names.LABEL_LWS_GROUP: str(group),
        names.LABEL_LWS_WORKER: str(worker),
    }
    marks = {names.ANNOTATION_LWS_SIZE: str(size), **values.pop("annotations", {})}
    return world.pod(name, above=(kinds.STATEFULSETS, made_by), labels=labels, annotations=marks, **values)


def part(name: str, *, replicas: int = 1, pods: int = 1, **more: object) -> dict[str, object]:
    """A replicated job of so many Jobs with so many pods."""
    template = {"metadata": {}, "spec": {"parallelism": pods, "completions": pods, "completionMode": "Indexed"}}
    return {"name": name, "replicas": replicas, "groupName": "default", "template": template, **more}


def jobset(world: Heard, *parts: dict[str, object], **values: Any) -> JobSet:
    """A JobSet; by default a driver and two Jobs of two workers."""
    made = list(parts) or [part("driver"), part("work", replicas=2, pods=2)]
    order = {"startupPolicyOrder": values.pop("order", "AnyOrder")}
    spec = {"replicatedJobs": made, "startupPolicy": order, "suspend": values.pop("suspend", False)}
    return world.put(kinds.JOBSETS, "set", spec=spec, **values)


def of_jobset(world: Heard, found: JobSet, name: str, *, job: int = 0, index: int = 0, **values: Any) -> Pod:
    """A pod as the Job makes it; `known`: the Job has been heard of."""
    run, order = values.pop("run", "0"), {"driver": 0, "work": 1}.get(name, 0)
    labels = {
        names.LABEL_JOBSET_NAME: "set",
        names.LABEL_JOBSET_UID: found.uid,
        names.LABEL_JOBSET_ATTEMPT: run,
        names.LABEL_JOBSET_PART: name,
        names.LABEL_JOBSET_GLOBAL_INDEX: str(order + job),
    }
    make = world.put if values.pop("known", True) else world.made
    above: tuple[Any, Object] = (kinds.JOBSETS, found)
    uid = f"uid-{name}-{job}-{run}"
    made_by = make(kinds.JOBS, f"set-{name}-{job}", above=above, labels=labels, uid=uid, **values.pop("job_has", {}))
    marks = {**indexed(index), **values.pop("annotations", {})}
    pod_name = f"set-{name}-{job}-{index}-x"
    return world.pod(pod_name, above=(kinds.JOBS, made_by), labels=labels, annotations=marks, **values)


def all_of(world: Heard, found: JobSet, **values: Any) -> list[Pod]:
    """The five pods of the default JobSet, workers first."""
    workers = [of_jobset(world, found, "work", job=job, index=index, **values) for job in (1, 0) for index in (1, 0)]
    return [*workers, of_jobset(world, found, "driver", **values)]
