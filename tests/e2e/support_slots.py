"""Whose pods a job holds, and how much of which node, compared with what stands on the pods: pure."""

import collections
import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from slurm_bridge.model import names
from tests.e2e.support_servers import Json, SlurmJob

_JOBSET = "jobset.sigs.k8s.io/"
_LWS = "leaderworkerset.sigs.k8s.io/"
_MPI = "training.kubeflow.org/job-name"
_COSCHEDULING = "scheduling.x-k8s.io/pod-group"

Jobs = Mapping[int, SlurmJob]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a member requests, or what a job got."""

    cpus: float = 0
    memory_mib: float = 0
    gpus: int = 0

    def __add__(self, other: "Needs") -> "Needs":
        return Needs(
            cpus=self.cpus + other.cpus, memory_mib=self.memory_mib + other.memory_mib, gpus=self.gpus + other.gpus
        )


def needs(pod: Json) -> Needs:
    """The sum over its containers."""
    total = Needs()
    for container in pod["spec"].get("containers", ()):
        asked = container.get("resources", {}).get("requests", {})
        total += Needs(
            cpus=_cpus(asked.get("cpu", "0")),
            memory_mib=_mebibytes(asked.get("memory", "0Mi")),
            gpus=int(asked.get("nvidia.com/gpu", 0)),
        )
    return total


def _cpus(quantity: str) -> float:
    return float(quantity[:-1]) / 1000 if quantity.endswith("m") else float(quantity)


def _mebibytes(quantity: str) -> float:
    units = {"Ki": 1 / 1024, "Mi": 1, "Gi": 1024}
    return float(quantity[:-2]) * units[quantity[-2:]]


def bound_by(pods: Iterable[Json]) -> dict[int, list[Json]]:
    """Job -> the pods that say that it bound them."""
    found: dict[int, list[Json]] = collections.defaultdict(list)
    for one in pods:
        job_id = one["metadata"].get("labels", {}).get(names.LABEL_JOB_ID)
        if one["spec"].get("nodeName") and job_id:
            found[int(job_id)].append(one)
    return found


def where(pod: Json) -> str:
    """Slurm's name of the node that it is bound to."""
    return str(pod["metadata"]["annotations"][names.ANNOTATION_SLURM_NODE])


def parts(job_id: int, jobs: Jobs) -> list[SlurmJob]:
    """The job, with all its components where it has some."""
    return [one for one in jobs.values() if one.part_of == job_id]


def belongs(owner: Mapping[str, object], pod: Json) -> bool:
    """The owner record names this pod, or the incarnation of the group that this pod is a member of."""
    judge = _JUDGES.get(str(owner.get("kind")))
    return judge is not None and judge(str(owner["uid"]), str(owner["name"]), pod)


def _of_job(uid: str, _: str, pod: Json) -> bool:
    owners = pod["metadata"].get("ownerReferences", ())
    return any(one["kind"] == "Job" and one["uid"] == uid for one in owners)


def _of_job_set(uid: str, _: str, pod: Json) -> bool:
    labels = pod["metadata"].get("labels", {})
    whole, attempt, *part = uid.split(":")
    named = [labels.get(_JOBSET + "replicatedjob-name")] if part else []
    return [labels.get(_JOBSET + "jobset-uid"), labels.get(_JOBSET + "restart-attempt")] == [
        whole,
        attempt,
    ] and part == named


def _of_mpi_job(_: str, name: str, pod: Json) -> bool:
    return bool(pod["metadata"].get("labels", {}).get(_MPI) == name)


def _of_leader_worker_set(uid: str, name: str, pod: Json) -> bool:
    labels = pod["metadata"].get("labels", {})
    return [labels.get(_LWS + "name"), labels.get(_LWS + "group-index")] == [name, uid.split(":")[1]]


def _of_pod_group(_: str, name: str, pod: Json) -> bool:
    built_in = pod["spec"].get("schedulingGroup", {}).get("podGroupName")
    kai = pod["metadata"].get("annotations", {}).get("pod-group-name")
    return name in {built_in, kai, pod["metadata"].get("labels", {}).get(_COSCHEDULING)}


def _of_group(_: str, name: str, pod: Json) -> bool:
    marks = {**pod["metadata"].get("annotations", {}), **pod["metadata"].get("labels", {})}
    return bool(marks.get(names.SCHEDULER_PREFIX + "group") == name)


_JUDGES: Mapping[str, Callable[[str, str, Json], bool]] = {
    "Pod": lambda uid, _, pod: bool(pod["metadata"]["uid"] == uid),
    "Job": _of_job,
    "JobSet": _of_job_set,
    "LeaderWorkerSet": _of_leader_worker_set,
    "MPIJob": _of_mpi_job,
    "PodGroup": _of_pod_group,
    "Group": _of_group,
}


def misplaced(pods: Sequence[Json], jobs: Jobs) -> Iterator[str]:
    """Pods on nodes that their job was not allocated, or bound by a job that is not theirs.

    A job that is not in the list says nothing: slurmctld forgets ended ones, and what it had not saved when it was
    killed. One that was forgotten and is asked for again has no nodes yet.
    """
    for job_id, bound in bound_by(pods).items():
        if job_id not in jobs:
            continue
        own = {name for one in parts(job_id, jobs) for name in one.node_names}
        for one in bound:
            if not belongs(jobs[job_id].owner, one):
                yield f"{one['metadata']['name']} is bound by job {job_id}, which is of {dict(jobs[job_id].owner)}"
            if own and where(one) not in own:
                yield f"{one['metadata']['name']} is bound to {where(one)}, job {job_id} has {sorted(own)}"


def overfull(pods: Sequence[Json], jobs: Jobs) -> Iterator[str]:
    """Jobs whose living members use more of a node than Slurm gave there."""
    living = [one for one in pods if one["status"].get("phase") not in {"Succeeded", "Failed"}]
    for job_id, bound in bound_by(living).items():
        given = shares(job_id, jobs)
        for node, used in _used(bound).items():
            share = given.get(node)
            if share is not None and _exceeds(used, share):
                members = sorted(one["metadata"]["name"] for one in bound if where(one) == node)
                yield f"job {job_id} got {share} of {node}, and its members {members} use {used}"


def shares(job_id: int, jobs: Jobs) -> dict[str, Needs]:
    """Node -> what this job got there; components never share a node."""
    found: dict[str, Needs] = {}
    for one in parts(job_id, jobs):
        held = (one.text.get("job_resources") or {}).get("nodes", {}).get("allocation", ())
        gpus = _gpus(one)
        for share in held if one.alive else ():
            found[share["name"]] = Needs(
                cpus=share["cpus"]["count"],
                memory_mib=share["memory"]["allocated"],
                gpus=gpus.get(share["name"], _UNKNOWN),
            )
    return found


#: What Slurm does not say is no limit.
_UNKNOWN = 10**6


def _gpus(one: SlurmJob) -> dict[str, int]:
    """Node -> GPUs, where Slurm says how many: `gpu(CNT:4)`, `gpu:v100:2(IDX:0-1)`."""
    found = {}
    for name, text in zip(one.node_names, one.text.get("gres_detail") or (), strict=False):
        counted = re.search(r"\(CNT:(\d+)\)|:(\d+)\(IDX:", text or "")
        if counted is not None:
            found[name] = int(counted[1] or counted[2])
    return found


def _used(bound: Sequence[Json]) -> dict[str, Needs]:
    used: dict[str, Needs] = collections.defaultdict(Needs)
    for one in bound:
        used[where(one)] += needs(one)
    return used


def _exceeds(used: Needs, share: Needs) -> bool:
    return used.cpus > share.cpus or used.memory_mib > share.memory_mib or used.gpus > share.gpus


def torn(pods: Sequence[Json], size: int, key: Callable[[Json], str]) -> list[str]:
    """Groups of this size that are bound in part."""
    counts: dict[str, list[bool]] = collections.defaultdict(list)
    for one in pods:
        counts[key(one)].append(bool(one["spec"].get("nodeName")))
    return [f"{name}: {sum(bound)} of {size} bound" for name, bound in counts.items() if 0 < sum(bound) < size]
