"""The way back: from this bridge to the other one. Pure, as the way forward.

    job of this bridge
        its pods have nodes         our marks leave the pods, then the job gets the other bridge's record; the pods stay
        none has a node             cancelled after a note; the other bridge submits its pods anew
    pod without a job               our marks leave it

Marks go before the record: our daemon ends a pod that says that we have bound it, and names a job of another bridge.
"""

from collections.abc import Sequence

from slurm_bridge.model import kinds, names
from slurm_bridge.model.job import JobView, Phase
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.names import JobId, WorkloadKey
from slurm_bridge.model.pod import Pod
from slurm_bridge.scheduler import pod_index, records
from slurm_bridge.scheduler.workload_pods import job_id_of
from slurm_bridge.takeover import record, steps
from slurm_bridge.takeover.steps import (
    HOLDING,
    CancelJob,
    HandoverPlan,
    HandoverStep,
    LeftAlone,
    OurNames,
    ReturnJob,
    Scenery,
)
from slurm_bridge.workloads import kind_table

UNMARK = "remove the marks of this bridge from a running pod"
FORGET = "remove the marks of this bridge from a waiting pod"

#: Written into a job before it is cancelled, so that this bridge would submit it again and not park its pods.
WITHDRAWN = "withdrawn: handed over to another bridge"

#: What the other bridge does not know.
_MARKS: dict[str, str | None] = {
    names.ANNOTATION_BOUND_BY: None,
    names.ANNOTATION_COUNTED: None,
    names.ANNOTATION_PARKED: None,
    names.ANNOTATION_MAKES_ROOM: None,
    names.ANNOTATION_ROOM: None,
}


def plan(scenery: Scenery, ours: OurNames) -> HandoverPlan:
    """What has to be done, and what is left alone."""
    return _Planner(scenery, ours).plan()


class _Planner:
    """One plan in the making."""

    def __init__(self, scenery: Scenery, ours: OurNames) -> None:
        self._scenery, self._ours = scenery, ours
        self._groups: list[tuple[HandoverStep, ...]] = []
        self._left: list[LeftAlone] = []
        self._settled: set[str] = set()
        self._by_workload: dict[WorkloadKey, list[Pod]] | None = None
        #: Bound pods of this scheduler that are not over, by the job that they name.
        self._named: dict[JobId, list[Pod]] = {}
        for pod in scenery.pods:
            job_id = job_id_of(pod)
            if job_id is not None and not pod.terminal and pod.spec.scheduler_name in ours.scheduler_names:
                self._named.setdefault(job_id, []).append(pod)

    def plan(self) -> HandoverPlan:
        """Jobs first: what becomes of a pod follows from its job."""
        for job in self._scenery.jobs:
            if job.owner is not None and job.owner.cluster == self._ours.cluster_id:
                self._job(job, job.owner)
        for pod in self._scenery.pods:
            if pod.spec.scheduler_name in self._ours.scheduler_names and pod.uid not in self._settled:
                self._pod(pod)
        return HandoverPlan(groups=tuple(self._groups), left=tuple(self._left))

    def _job(self, job: JobView, owner: Owner) -> None:
        if job.state.phase is Phase.ENDED:
            return
        pods = [pod for pod in self._named.get(job.job_id, ()) if self._stands_for(owner, pod)]
        self._settled |= {pod.uid for pod in pods}
        problem = self._unfit(job, owner, pods)
        members = [] if problem or pods else self._members(owner)
        problem = problem or next((f"pod {'/'.join(one.key)} has a node" for one in members if one.bound), "")
        if problem:
            self._left.append(LeftAlone(subject=f"job {job.job_id}", reason=problem))
        elif not pods:
            noted = records.with_note(owner, WITHDRAWN)
            self._groups.append((CancelJob(job=job, pods=tuple(members), owner=noted),))
        else:
            marks = [self._unmark(pod) for pod in pods]
            text = record.write("/".join(pod.key) for pod in pods)
            self._groups.append((*(one for one in marks if one is not None), ReturnJob(job=job, text=text)))

    def _unfit(self, job: JobView, owner: Owner, pods: Sequence[Pod]) -> str:
        if owner.kind not in kind_table.NAMES:
            return f"its record is of the kind {owner.kind!r}, which this version does not know"
        if self._scenery.unreadable:
            space, name = min(self._scenery.unreadable)
            return f"pod {space}/{name} cannot be read, and may be one of its pods"
        if pods and job.het_job_id is not None:
            return "it is heterogeneous, which the other bridge does not know: let its pods end"
        if pods and job.state.phase not in HOLDING:
            return f"its state is {'+'.join(sorted(job.state.words))}, and pod {'/'.join(pods[0].key)} has a node"
        return "" if pods or job.state.phase is not Phase.UNKNOWN else "its state is not known"

    def _stands_for(self, owner: Owner, pod: Pod) -> bool:
        """Users may write any label: a job of one pod is that pod's alone, and all are of one namespace."""
        if owner.kind == kinds.PODS.kind:
            return owner.key == pod_index.alone(pod).key
        if owner.namespace != pod.metadata.namespace:
            return False
        says = pod.metadata.annotations.get(names.ANNOTATION_BOUND_BY)
        return says == self._ours.cluster_id if says is not None else owner.key == self._ours.claim(pod).key

    def _members(self, owner: Owner) -> list[Pod]:
        """The pods of a workload that are not over, whatever they say of themselves."""
        if self._by_workload is None:
            self._by_workload = {}
            for pod in self._scenery.pods:
                if not pod.terminal and pod.spec.scheduler_name in self._ours.scheduler_names:
                    for key in {pod_index.alone(pod).key, self._ours.claim(pod).key}:
                        self._by_workload.setdefault(key, []).append(pod)
        return self._by_workload.get(owner.key, [])

    def _unmark(self, pod: Pod) -> steps.ChangePod | None:
        """The other bridge writes Kubernetes' name of the node there."""
        return steps.changed(pod, UNMARK, annotations={**_MARKS, names.ANNOTATION_SLURM_NODE: pod.spec.node_name})

    def _pod(self, pod: Pod) -> None:
        name, says = "/".join(pod.key), pod.metadata.annotations.get(names.ANNOTATION_BOUND_BY)
        if pod.terminal:
            return
        if not pod.bound:
            step = steps.changed(pod, FORGET, annotations=_MARKS)
            self._groups.extend([(step,)] if step is not None else [])
        elif says == self._ours.cluster_id:
            label = pod.metadata.labels.get(names.LABEL_JOB_ID, "")
            reason = f"no running job of this bridge stands for it (it names job {label[:20]!r}): delete the pod"
            self._left.append(LeftAlone(subject=f"pod {name}", reason=reason))
