"""To which group a pod belongs, read from the objects themselves: the observer trusts no reading of the daemon.

What a placeholder's owner record calls the group (so that a job and its pods can be compared):

    Pod                    the pod's uid
    Job                    the Job's uid, when it asks for a gang
    JobSet                 uid:attempt; uid:attempt:part where its parts come one after the other
    MPIJob                 the MPIJob's uid; uid:worker and uid:launcher where the launcher comes after the workers
    LeaderWorkerSet        uid:group; uid:group:leader and uid:group:workers where workers come after the leader runs
    PodGroup (either)      the object's uid, and nothing before the object is there
    group label            Group:namespace/name
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from slurm_bridge.model import kinds, names
from slurm_bridge.sim.kube import resources
from slurm_bridge.sim.kube.followers import Tail
from slurm_bridge.sim.kube.store import Event, ObjectStore
from slurm_bridge.workloads.kinds import kai_podgroup, mpijob

Manifest = Mapping[str, Any]

_GROUPS = (kinds.PODGROUPS, kinds.COSCHEDULING_PODGROUPS, kai_podgroup.PODGROUPS)
_KINDS = (kinds.JOBS, kinds.JOBSETS, kinds.LEADERWORKERSETS, mpijob.MPIJOBS, *_GROUPS)
_LWS, _JOBSET = "leaderworkerset.sigs.k8s.io/", "jobset.sigs.k8s.io/"

#: What follows when a member is lost.
KEEP, FOLLOW, RESTART = "keep", "follow", "restart-group"

#: A pod whose group is not known yet.
NOWHERE = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a group demands: from how many members on it starts, whether it may, what a loss means."""

    minimum: int
    suspended: bool = False
    lost: str = KEEP


ALONE = Rules(minimum=1)


class Objects:
    """Every object that ever grouped pods, as it was last seen."""

    def __init__(self, store: ObjectStore) -> None:
        self._tails = {kind.plural + kind.group: Tail(store, resources.of(kind)) for kind in _KINDS}
        self._by_uid: dict[str, Manifest] = {}
        self._by_name: dict[tuple[str, str, str], str] = {}
        self._gone: set[str] = set()

    def learn(self) -> Iterator[tuple[str, Event]]:
        """Look at what has changed; each change once, with the name of its resource."""
        for key, tail in self._tails.items():
            for event in tail.news():
                self._by_uid[event.new.uid] = event.new.manifest()
                self._by_name[key, event.new.namespace, event.new.name] = event.new.uid
                if event.gone:
                    self._gone.add(event.new.uid)
                yield key, event

    def named(self, kind: kinds.Kind[Any], namespace: str, name: str) -> Manifest | None:
        """The last one of that name."""
        uid = self._by_name.get((kind.plural + kind.group, namespace, name))
        return None if uid is None else self._by_uid[uid]

    def known(self, uid: str) -> Manifest | None:
        """The object of that uid, even if it has gone."""
        return self._by_uid.get(uid)

    def children(self, uid: str) -> Iterator[Manifest]:
        """The Jobs of a JobSet that are there."""
        for child, manifest in self._by_uid.items():
            made = "spec" in manifest and _maker(manifest, "jobset.x-k8s.io/v1alpha2", "JobSet") == uid
            if made and child not in self._gone:
                yield manifest


def labels(manifest: Manifest) -> Mapping[str, str]:
    """Its labels."""
    return manifest["metadata"].get("labels") or {}


def annotations(manifest: Manifest) -> Mapping[str, str]:
    """Its annotations."""
    return manifest["metadata"].get("annotations") or {}


def group_of(pod: Manifest, objects: Objects) -> str:
    """What a placeholder of this pod's group is called; NOWHERE while that cannot be said. Precedence as documented."""
    namespace, marks = pod["metadata"]["namespace"], labels(pod)
    built_in = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
    for kind, name in (
        (kinds.PODGROUPS, built_in),
        (kinds.COSCHEDULING_PODGROUPS, marks.get(names.LABEL_COSCHEDULING)),
        (kai_podgroup.PODGROUPS, annotations(pod).get(names.ANNOTATION_KAI_GROUP)),
    ):
        if name:
            found = objects.named(kind, namespace, name)
            return NOWHERE if found is None else str(found["metadata"]["uid"])
    group = marks.get(names.GROUP) or annotations(pod).get(names.GROUP)
    if group:
        return f"Group:{namespace}/{group}"
    made = _of_lws(pod, objects) or _of_jobset(pod, objects) or _of_mpi(pod, objects) or _of_job(pod, objects)
    return made or str(pod["metadata"]["uid"])


def _of_lws(pod: Manifest, objects: Objects) -> str:
    name, marks = labels(pod).get(_LWS + "name"), labels(pod)
    found = objects.named(kinds.LEADERWORKERSETS, pod["metadata"]["namespace"], name) if name else None
    if found is None:
        return ""
    uid = f"{found['metadata']['uid']}:{marks[_LWS + 'group-index']}"
    if found["spec"].get("startupPolicy") != "LeaderReady":
        return uid
    return f"{uid}:leader" if marks[_LWS + "worker-index"] == "0" else f"{uid}:workers"


def _of_jobset(pod: Manifest, objects: Objects) -> str:
    marks, namespace = labels(pod), pod["metadata"]["namespace"]
    found = objects.known(marks.get(_JOBSET + "jobset-uid", "")) if _maker(pod, "batch/v1", "Job") else None
    if found is None:
        return ""
    if found["metadata"]["namespace"] != namespace:
        # Every user can write any uid.
        return NOWHERE
    uid = f"{found['metadata']['uid']}:{marks[_JOBSET + 'restart-attempt']}"
    return f"{uid}:{marks[_JOBSET + 'replicatedjob-name']}" if _comes_in_parts(found) else uid


def _maker(manifest: Manifest, version: str, kind: str) -> str:
    """The uid of the controller that it names, where that is of this kind."""
    owners = manifest["metadata"].get("ownerReferences") or ()
    found = next((owner for owner in owners if owner.get("controller")), None)
    return str(found["uid"]) if found is not None and (found["apiVersion"], found["kind"]) == (version, kind) else ""


def _comes_in_parts(jobset: Manifest) -> bool:
    spec = jobset["spec"]
    in_order = (spec.get("startupPolicy") or {}).get("startupPolicyOrder") == "InOrder"
    return in_order or any(group.get("dependsOn") for group in spec["replicatedJobs"])


def _of_mpi(pod: Manifest, objects: Objects) -> str:
    job = objects.known(_maker(pod, "batch/v1", "Job"))
    uid = _maker(pod if job is None else job, "kubeflow.org/v2beta1", "MPIJob")
    found = objects.known(uid)
    if found is None:
        return ""
    if found["metadata"]["namespace"] != pod["metadata"]["namespace"]:
        return NOWHERE
    if found["spec"].get("launcherCreationPolicy") == "WaitForWorkersReady":
        return f"{uid}:{'worker' if job is None else 'launcher'}"
    return uid


def _of_job(pod: Manifest, objects: Objects) -> str:
    job = objects.known(_maker(pod, "batch/v1", "Job"))
    if job is not None and job["metadata"]["namespace"] != pod["metadata"]["namespace"]:
        return ""
    wants = job is not None and annotations(job).get(names.ANNOTATION_GANG) == "true"
    return str(job["metadata"]["uid"]) if job is not None and wants else ""


# -- what a group demands --------------------------------------------------------------------------------------------


def rules_of(pod: Manifest, objects: Objects) -> Rules:
    """The rules of the group that this pod is in, as they are now."""
    namespace, marks = pod["metadata"]["namespace"], labels(pod)
    built_in = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
    for kind, name, path in (
        (kinds.PODGROUPS, built_in, ("schedulingPolicy", "gang", "minCount")),
        (kinds.COSCHEDULING_PODGROUPS, marks.get(names.LABEL_COSCHEDULING), ("minMember",)),
        (kai_podgroup.PODGROUPS, annotations(pod).get(names.ANNOTATION_KAI_GROUP), ("subGroups",)),
    ):
        if name:
            return _of_object(objects.named(kind, namespace, name), *path)
    if marks.get(names.GROUP):
        return Rules(minimum=int(marks[names.GROUP_SIZE]), lost=_lost(pod))
    if _of_lws(pod, objects):
        return _rules_of_lws(pod, objects)
    if _of_jobset(pod, objects):
        return _rules_of_jobset(pod, objects)
    if uid := _of_mpi(pod, objects):
        return _rules_of_mpi(uid, objects)
    job = objects.known(_of_job(pod, objects))
    return ALONE if job is None else Rules(minimum=_remaining(job), suspended=_suspended(job), lost=_lost(job))


def _rules_of_mpi(uid: str, objects: Objects) -> Rules:
    whole, _, part = uid.partition(":")
    found = objects.known(whole)
    assert found is not None, uid
    roles = found["spec"]["mpiReplicaSpecs"]
    counts = {"launcher": 1, "worker": int(roles.get("Worker", {}).get("replicas", 0))}
    paused = bool((found["spec"].get("runPolicy") or {}).get("suspend"))
    return Rules(minimum=counts[part] if part else sum(counts.values()), suspended=paused, lost=_lost(found))


def _of_object(found: Manifest | None, *path: str) -> Rules:
    if found is None:
        return Rules(minimum=1, suspended=True)
    value: Any = found["spec"]
    for part in path:
        value = value[part]
    least = sum(one["minMember"] for one in value) if isinstance(value, list) else int(value)
    return Rules(minimum=least, lost=_lost(found))


def _lost(speaker: Manifest, usual: str = KEEP) -> str:
    return annotations(speaker).get(names.ANNOTATION_MEMBER_LOST, usual)


def _rules_of_lws(pod: Manifest, objects: Objects) -> Rules:
    found = objects.named(kinds.LEADERWORKERSETS, pod["metadata"]["namespace"], labels(pod)[_LWS + "name"])
    assert found is not None
    template = found["spec"]["leaderWorkerTemplate"]
    part = _of_lws(pod, objects).split(":")[2:]
    minimum = 1 if part == ["leader"] else template["size"] - len(part)
    return Rules(minimum=minimum, lost=_lost(found, KEEP if template.get("restartPolicy") == "None" else FOLLOW))


def _rules_of_jobset(pod: Manifest, objects: Objects) -> Rules:
    marks = labels(pod)
    found = objects.known(marks[_JOBSET + "jobset-uid"])
    assert found is not None
    mine = marks[_JOBSET + "replicatedjob-name"] if _comes_in_parts(found) else None
    attempt = marks[_JOBSET + "restart-attempt"]
    jobs = {
        job["metadata"]["name"]: job
        for job in objects.children(found["metadata"]["uid"])
        if labels(job)[_JOBSET + "restart-attempt"] == attempt
    }
    wanted = 0
    for group in found["spec"]["replicatedJobs"]:
        if mine in (None, group["name"]):
            for number in range(group.get("replicas", 1)):
                name = f"{found['metadata']['name']}-{group['name']}-{number}"
                wanted += _remaining(jobs.get(name, group["template"]))
    return Rules(minimum=wanted, suspended=_suspended(found), lost=_lost(found))


def _remaining(job: Manifest) -> int:
    """How many pods the Job runs at once, of those that it still needs."""
    spec, status = job["spec"], job.get("status") or {}
    if any(
        line["type"] in ("Complete", "Failed") and line["status"] == "True" for line in status.get("conditions") or ()
    ):
        return 0
    parallelism = int(spec.get("parallelism", 1))
    completions = spec.get("completions")
    return parallelism if completions is None else max(0, min(parallelism, completions - status.get("succeeded", 0)))


def _suspended(owner: Manifest) -> bool:
    return bool(owner["spec"].get("suspend"))
