"""The Job controller: as many pods as a Job wants, until enough have succeeded or too many have failed.

Every pod has a finalizer until it is counted, so that no end is missed. A deleted pod counts as failed, unless the
Job's podFailurePolicy says otherwise about its conditions.
"""

import collections
from collections.abc import Mapping, Sequence
from typing import Any

from slurm_bridge.sim.kube import followers
from slurm_bridge.sim.kube.followers import Agenda, Tail
from slurm_bridge.sim.kube.objects import Deletion, Objects, ObjectTarget
from slurm_bridge.sim.kube.pods import set_condition
from slurm_bridge.sim.kube.resources import JOBS, NAMESPACES, PODS
from slurm_bridge.sim.kube.store import Key, Manifest, StoredObject

FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"

#: After each failure the next pod waits twice as long.
_FIRST_BACKOFF = 10.0
_MOST_BACKOFF = 360.0

#: A Job by its key and its uid.
Known = tuple[Key, str]


class JobController:
    """Reconciles each Job that changed, or whose pods changed."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._jobs = Tail(objects.store, JOBS)
        self._pods = Tail(objects.store, PODS)
        self._agenda = Agenda(objects.clock)
        self._members: dict[Key, set[Key]] = collections.defaultdict(set)
        self._paused: set[str] = set()

    def next_due(self) -> float | None:
        return self._agenda.next_due()

    def settle(self) -> bool:
        waiting = {(event.new.key, event.new.uid) for event in self._jobs.news()}
        for event in self._pods.news():
            waiting |= self._enrol(event.new)
        due = self._agenda.ready()
        self._paused.difference_update(uid for _, uid in due)
        return followers.each(self._objects.store, self._reconcile, sorted(waiting.union(due)))

    def _enrol(self, pod: StoredObject) -> set[Known]:
        uid, name = pod.labels.get("batch.kubernetes.io/controller-uid"), pod.labels.get("batch.kubernetes.io/job-name")
        if not uid or not name:
            return set()
        self._members[pod.namespace, uid].add(pod.key)
        return {((pod.namespace, name), uid)}

    def _reconcile(self, known: Known) -> bool:
        key, uid = known
        stored = self._objects.store.get(JOBS, *key)
        if stored is None or stored.uid != uid:
            # The Job is gone: its pods are released, and not counted.
            left = self._pods_of(key[0], uid)
            held = [pod for pod in left if FINALIZER in (pod["metadata"].get("finalizers") or ())]
            for pod in held:
                self._let_go(pod)
            return bool(held)
        job = stored.manifest()
        pods = self._pods_of(key[0], uid)
        counted = self._count(job, pods)
        active = [pod for pod in pods if not _over(pod)]
        _conclude(job, active, self._objects.now())
        self._staff(stored, job, active)
        target = ObjectTarget(resource=JOBS, namespace=stored.namespace, name=stored.name, subresource="status")
        after = self._objects.change(target, lambda old: {**old, "status": job["status"]})
        return counted or after.version != stored.version

    def _pods_of(self, namespace: str, uid: str) -> list[Manifest]:
        """Only pods of the Job's own namespace: any user may write its uid on a pod elsewhere."""
        found = (self._objects.store.get(PODS, *key) for key in sorted(self._members[namespace, uid]))
        return [pod.manifest() for pod in found if pod is not None and f'"{uid}"'.encode() in pod.body]

    def _count(self, job: Manifest, pods: Sequence[Manifest]) -> bool:
        """Count each ended pod once; removing the finalizer records that it was counted."""
        status = job.setdefault("status", {})
        status.setdefault("startTime", self._objects.now())
        over = [pod for pod in pods if _over(pod) and FINALIZER in (pod["metadata"].get("finalizers") or ())]
        for pod in over:
            self._tally(job, pod)
            self._let_go(pod)
        return bool(over)

    def _tally(self, job: Manifest, pod: Manifest) -> None:
        status = job["status"]
        if pod["status"]["phase"] == "Succeeded":
            status["succeeded"] = status.get("succeeded", 0) + 1
            return
        action = _policy(job, pod)
        if action == "Ignore":
            return
        status["failed"] = status.get("failed", 0) + 1
        if action == "FailJob":
            _finish(job, "Failed", "PodFailurePolicy", self._objects.now())
        uid, metadata = job["metadata"]["uid"], job["metadata"]
        seconds = min(_FIRST_BACKOFF * 2 ** (status["failed"] - 1), _MOST_BACKOFF)
        self._paused.add(uid)
        self._agenda.add(seconds, ((metadata["namespace"], metadata["name"]), uid))

    def _let_go(self, pod: Manifest) -> None:
        def change(old: Manifest) -> Manifest:
            old["metadata"]["finalizers"] = [
                name for name in old["metadata"].get("finalizers") or () if name != FINALIZER
            ]
            return old

        self._objects.change(_pod_target(pod), change)

    def _staff(self, stored: StoredObject, job: Manifest, active: list[Manifest]) -> None:
        """Add or remove pods."""
        missing = _wanted(job) - len(active)
        if missing > 0 and self._may_add(stored, job):
            # An index is taken by a pod that is alive, and by one that has succeeded.
            taken = {
                pod["metadata"].get("annotations", {}).get(INDEX)
                for pod in self._pods_of(stored.namespace, stored.uid)
                if not _over(pod) or pod["status"].get("phase") == "Succeeded"
            }
            free = (str(index) for index in range(len(taken) + missing) if str(index) not in taken)
            active += [self._add(stored, job, next(free)) for _ in range(missing)]
        for pod in active[_wanted(job) :] if missing < 0 else ():
            # A surplus pod does not count as failed, unless the whole Job has ended.
            if not _concluded(job):
                self._let_go(pod)
            self._objects.delete(_pod_target(pod), Deletion())
        job["status"]["active"] = min(len(active), _wanted(job))

    def _may_add(self, stored: StoredObject, job: Manifest) -> bool:
        room = self._objects.store.get(NAMESPACES, "", stored.namespace)
        closing = room is None or room.fields["status.phase"] == "Terminating"
        return not closing and "deletionTimestamp" not in job["metadata"] and stored.uid not in self._paused

    def _add(self, stored: StoredObject, job: Manifest, index: str) -> Manifest:
        template = job["spec"]["template"]
        indexed = job["spec"].get("completionMode") == "Indexed"
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": stored.name, "uid": stored.uid}
        metadata = {
            **template.get("metadata", {}),
            "generateName": f"{stored.name}-{index}-" if indexed else f"{stored.name}-",
            "finalizers": [FINALIZER],
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        }
        if indexed:
            metadata["annotations"] = {**metadata.get("annotations", {}), INDEX: index}
            metadata["labels"] = {**metadata["labels"], INDEX: index}
        made = self._objects.create(PODS, stored.namespace, {"metadata": metadata, "spec": template["spec"]})
        self._members[stored.namespace, stored.uid].add(made.key)
        return made.manifest()


def _pod_target(pod: Manifest) -> ObjectTarget:
    return ObjectTarget(resource=PODS, namespace=pod["metadata"]["namespace"], name=pod["metadata"]["name"])


def _over(pod: Manifest) -> bool:
    return pod["status"].get("phase") in ("Succeeded", "Failed") or "deletionTimestamp" in pod["metadata"]


def _concluded(job: Manifest) -> bool:
    lines = job["status"].get("conditions") or ()
    return any(line["type"] in ("Complete", "Failed") and line["status"] == "True" for line in lines)


def _conclude(job: Manifest, active: Sequence[Manifest], now: str) -> None:
    """Set the Job's final condition: enough pods succeeded, or too many failed."""
    spec, status = job["spec"], job["status"]
    succeeded, completions = status.get("succeeded", 0), spec.get("completions")
    if _concluded(job):
        return
    if status.get("failed", 0) > spec["backoffLimit"]:
        _finish(job, "Failed", "BackoffLimitExceeded", now)
    elif succeeded >= completions if completions is not None else succeeded and not active:
        _finish(job, "Complete", "CompletionsReached", now)
        status["completionTime"] = now


def _finish(job: Manifest, condition: str, reason: str, now: str) -> None:
    set_condition(job, {"type": condition, "status": "True", "reason": reason, "lastTransitionTime": now})


def _wanted(job: Manifest) -> int:
    spec, succeeded = job["spec"], job["status"].get("succeeded", 0)
    if _concluded(job) or spec.get("suspend"):
        return 0
    if spec.get("completions") is None:
        return 0 if succeeded else int(spec["parallelism"])
    return int(max(0, min(spec["parallelism"], spec["completions"] - succeeded)))


def _policy(job: Manifest, pod: Manifest) -> str:
    """The action of the first policy rule that matches this failure; Count without one."""
    for rule in (job["spec"].get("podFailurePolicy") or {}).get("rules", ()):
        if _fits(rule, pod):
            return str(rule["action"])
    return "Count"


def _fits(rule: Mapping[str, Any], pod: Manifest) -> bool:
    lines = {(line["type"], line["status"]) for line in pod["status"].get("conditions") or ()}
    patterns = rule.get("onPodConditions") or ()
    if any((pattern["type"], pattern.get("status", "True")) in lines for pattern in patterns):
        return True
    states = [one.get("state", {}).get("terminated", {}) for one in pod["status"].get("containerStatuses") or ()]
    codes = [state["exitCode"] for state in states if state.get("exitCode")]
    wanted = rule.get("onExitCodes") or {}
    return any((code in wanted.get("values", ())) == (wanted.get("operator") == "In") for code in codes if wanted)
