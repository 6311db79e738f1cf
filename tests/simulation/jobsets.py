"""The JobSet controller for the pocket Kubernetes, which has none; the pods are the Job controller's work.

Child Jobs carry one attempt. When one fails the next attempt begins, in which each Job comes as soon as its forerunner
has gone with all its pods; in order, or after others, where the JobSet says so. Labels are those of JobSet 0.11.
"""

import copy
from collections.abc import Iterable, Mapping

from slurm_bridge.model import kinds
from slurm_bridge.sim.kube import resources
from slurm_bridge.sim.kube.objects import Objects
from slurm_bridge.sim.kube.store import Manifest
from slurm_bridge.sim.kube.world import PocketKube
from tests.simulation import controllers

JOBSETS = resources.of(kinds.JOBSETS)
JOBSET = "jobset.sigs.k8s.io/"


class JobSets(controllers.Follower):
    """Child Jobs, whose pods the Job controller makes."""

    def __init__(self, objects: Objects) -> None:
        super().__init__(objects, JOBSETS, resources.JOBS, resources.PODS)

    def reconcile(self, manifest: Manifest) -> None:
        """What an end of a child means comes first, then what is missing, then whether all may run."""
        status = manifest.setdefault("status", {})
        attempt = status.setdefault("restarts", 0)
        children = self.owned(resources.JOBS, manifest)
        current = [job for job in children if _attempt(job) == attempt]
        if status.get("terminalState"):
            self._delete_all(job for job in current if not _ended(job))
            return
        self._delete_all(job for job in children if _attempt(job) < attempt)
        if any(_ended(job) == "Failed" for job in current):
            self._fail(manifest)
        elif current and sum(_ended(job) == "Complete" for job in current) == len(list(_all_jobs(manifest))):
            self._finish(manifest, "Completed")
        else:
            self._staff(manifest, children, {job["metadata"]["name"]: job for job in current})

    def _delete_all(self, jobs: Iterable[Manifest]) -> None:
        for job in jobs:
            self.delete(resources.JOBS, job, "Foreground")

    def _fail(self, manifest: Manifest) -> None:
        status, policy = manifest["status"], manifest["spec"].get("failurePolicy") or {}
        if status["restarts"] >= policy.get("maxRestarts", 0):
            self._finish(manifest, "Failed")
        else:
            self._say(manifest, {**status, "restarts": status["restarts"] + 1})

    def _finish(self, manifest: Manifest, how: str) -> None:
        line = {"type": how, "status": "True", "lastTransitionTime": self._objects.now(), "reason": how, "message": ""}
        self._say(manifest, {**manifest["status"], "conditions": [line], "terminalState": how})

    def _say(self, manifest: Manifest, status: Manifest) -> None:
        self._objects.change(controllers.target(JOBSETS, manifest, "status"), lambda old: {**old, "status": status})

    def _staff(self, manifest: Manifest, children: list[Manifest], current: Mapping[str, Manifest]) -> None:
        taken = {job["metadata"]["name"] for job in children}
        suspended = bool(manifest["spec"].get("suspend"))
        for group, names in _by_group(manifest).items():
            if not suspended and not self._may_start(manifest, group, current):
                return
            for name in names:
                if name not in taken:
                    owner = ("jobset.x-k8s.io/v1alpha2", manifest)
                    self.create(resources.JOBS, owner, _child(manifest, group, name, suspended=suspended))
                elif name in current and not _ended(current[name]):
                    self._suspend(current[name], suspended=suspended)

    def _suspend(self, job: Manifest, *, suspended: bool) -> None:
        if bool(job["spec"].get("suspend")) != suspended:
            self._objects.change(
                controllers.target(resources.JOBS, job),
                lambda old: {**old, "spec": {**old["spec"], "suspend": suspended}},
            )

    def _may_start(self, manifest: Manifest, group: str, current: Mapping[str, Manifest]) -> bool:
        """All that has to come before is there: everything earlier in order, and what the group depends on."""
        groups = _by_group(manifest)
        before = list(groups)[: list(groups).index(group)]
        in_order = (manifest["spec"].get("startupPolicy") or {}).get("startupPolicyOrder") == "InOrder"
        waits = [(name, "Ready") for name in before] if in_order else []
        waits += [(each["name"], each["status"]) for each in _group(manifest, group).get("dependsOn") or ()]
        return all(self._reached(current.get(name), what) for other, what in waits for name in groups[other])

    def _reached(self, job: Manifest | None, what: str) -> bool:
        if job is None or _ended(job) == "Complete":
            return job is not None
        started = [
            pod
            for pod in self.owned(resources.PODS, job)
            if controllers.ready(pod) or pod["status"].get("phase") in controllers.OVER
        ]
        return what == "Ready" and len(started) >= int(job["spec"]["parallelism"])


def _by_group(manifest: Manifest) -> dict[str, list[str]]:
    """The names of the child Jobs of each replicatedJob, in order."""
    name = manifest["metadata"]["name"]
    return {
        group["name"]: [f"{name}-{group['name']}-{number}" for number in range(group.get("replicas", 1))]
        for group in manifest["spec"]["replicatedJobs"]
    }


def _all_jobs(manifest: Manifest) -> Iterable[str]:
    return (name for names in _by_group(manifest).values() for name in names)


def _group(manifest: Manifest, name: str) -> Manifest:
    return next(group for group in manifest["spec"]["replicatedJobs"] if group["name"] == name)


def _child(manifest: Manifest, group: str, name: str, *, suspended: bool) -> Manifest:
    described, metadata = _group(manifest, group), manifest["metadata"]
    marks = {
        JOBSET + "jobset-name": metadata["name"],
        JOBSET + "jobset-uid": metadata["uid"],
        JOBSET + "replicatedjob-name": group,
        JOBSET + "replicatedjob-replicas": str(described.get("replicas", 1)),
        JOBSET + "restart-attempt": str(manifest["status"]["restarts"]),
        JOBSET + "job-index": name.rpartition("-")[2],
        JOBSET + "job-global-index": str(list(_all_jobs(manifest)).index(name)),
    }
    job = copy.deepcopy(described["template"])
    controllers.mark(job, marks, marks)
    controllers.mark(job["spec"]["template"], marks, marks)
    job["metadata"]["name"] = name
    job["spec"] = {"completionMode": "Indexed", **job["spec"], "suspend": suspended}
    return {"metadata": job["metadata"], "spec": job["spec"]}


def _attempt(job: Manifest) -> int:
    return int(job["metadata"]["labels"][JOBSET + "restart-attempt"])


def _ended(job: Manifest) -> str:
    """Complete, Failed, or nothing."""
    lines = (job.get("status") or {}).get("conditions") or ()
    return next(
        (str(one["type"]) for one in lines if one["type"] in ("Complete", "Failed") and one["status"] == "True"), ""
    )


def employ(kube: PocketKube) -> None:
    """Let all controllers of groups work in this world."""
    objects = kube.objects
    kube.employ(controllers.LeaderWorkerSets(objects), JobSets(objects), controllers.StatefulSets(objects))
