"""What is wrong with two real servers at rest: all that there is, judged by the rules of the simulation's observer."""

import collections
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from slurm_bridge.model import kinds, names
from slurm_bridge.sim.kube import resources
from slurm_bridge.sim.kube.store import Store
from tests.simulation import groups, membership, observed

Manifest = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A living placeholder with all its components: whose it is, and what it holds of which Kubernetes node."""

    job_id: int
    uid: str
    shares: Mapping[str, observed.Amounts]


class Picture:
    """Everything that there is at one moment."""

    def __init__(
        self,
        scheduler: str,
        objects: Mapping[kinds.Kind[Any], Sequence[Manifest]],
        pods: Sequence[Manifest],
        jobs: Sequence[Placed],
    ) -> None:
        store = Store()
        for kind, manifests in objects.items():
            for manifest in manifests:
                store.write(resources.of(kind), dict(manifest))
        self._groups = groups.Groups(store)
        self._groups.learn("", 0.0)
        self._jobs: dict[str, list[Placed]] = collections.defaultdict(list)
        for job in jobs:
            self._jobs[job.uid].append(job)
        self._runs = {job.job_id: observed.Run(job_id=job.job_id, uid=job.uid, shares=job.shares) for job in jobs}
        self._pods = [self._pod(pod, scheduler) for pod in pods]

    def _pod(self, manifest: Manifest, scheduler: str) -> observed.Pod:
        pod = observed.pod(manifest, scheduler)
        pod.node, pod.phase = manifest["spec"].get("nodeName", ""), manifest["status"].get("phase", "Pending")
        pod.leaving = "deletionTimestamp" in manifest["metadata"]
        pod.job_id = int(membership.labels(manifest).get(names.LABEL_JOB_ID, "0"))
        pod.run = self._runs.get(pod.job_id)
        self._groups.sort_in(pod)
        return pod

    def complaints(self) -> list[str]:
        """What the observer would say if this were the end."""
        return [*self._doubled(), *self._leaked(), *self._stuck()]

    def _doubled(self) -> Iterator[str]:
        for uid, jobs in self._jobs.items():
            if len(jobs) > 1:
                yield f"I1: {[job.job_id for job in jobs]} are living jobs of the same workload {uid}"

    def _leaked(self) -> Iterator[str]:
        for uid, jobs in self._jobs.items():
            why = self._groups.needless(uid)
            if why:
                yield f"I4: job {jobs[0].job_id} {why} {uid}"

    def _stuck(self) -> Iterator[str]:
        for pod in self._pods:
            if not pod.ours or pod.over or pod.leaving:
                continue
            jobs = self._jobs[pod.group]
            if pod.node and not jobs:
                yield f"I6: {pod.key} sits on {pod.node} without a job"
            elif not pod.node and not self._groups.excused(pod, [self._runs[job.job_id] for job in jobs], jobs):
                yield f"I6: {pod.key} of {pod.group} has no node: {[job.job_id for job in jobs]}"
