"""From the other bridge to this one. Pure: jobs, pods and nodes go in, a plan comes out.

    job of the other bridge, record and pods agree
        all its pods have nodes     our record, then our marks on each pod; the pods stay
        none has a node             cancelled, then its marks leave the pods; our daemon submits them anew
        some have nodes             left alone
        all its pods are over       cancelled, then its finalizer leaves the pods
    pod without such a job          its finalizer and label leave where nothing runs, else left alone
    node                            its taint leaves

The record of a job can only be written by an operator, and the label of a pod by its user: a job is taken over if both
name each other, the node of each pod is one of the job's, and the pod has a schedulerName of this bridge.
"""

from collections.abc import Sequence

from slurm_bridge.model import kinds, names
from slurm_bridge.model.job import JobView, Phase
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.node import Node
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Root
from slurm_bridge.scheduler import pod_index, records, resizes
from slurm_bridge.scheduler.workload_pods import job_id_of
from slurm_bridge.takeover import record, steps
from slurm_bridge.takeover.steps import (
    HOLDING,
    AdoptJob,
    CancelJob,
    ChangeNode,
    ChangePod,
    HandoverPlan,
    HandoverStep,
    LeftAlone,
    OurNames,
    Scenery,
)

MARK = "write the marks of this bridge on a running pod, and remove the finalizer"
RELEASE = "remove label, annotation and finalizer from a waiting pod"
FREE = "remove the finalizer from a pod that is over"


def plan(scenery: Scenery, ours: OurNames) -> HandoverPlan:
    """What has to be done, and what is left alone."""
    return _Planner(scenery, ours).plan()


class _Planner:
    """One plan in the making."""

    def __init__(self, scenery: Scenery, ours: OurNames) -> None:
        self._scenery, self._ours = scenery, ours
        self._pods = {"/".join(pod.key): pod for pod in scenery.pods}
        self._unreadable = {"/".join(key) for key in scenery.unreadable}
        self._nodes = {node.metadata.name: node for node in scenery.nodes}
        self._jobs = {str(job.job_id): job for job in scenery.jobs}
        self._groups: list[tuple[HandoverStep, ...]] = []
        self._left: list[LeftAlone] = []
        #: Pods about whose job a decision was made.
        self._settled: set[str] = set()
        #: The workloads that have a job of this bridge.
        self._taken = {
            job.owner.key
            for job in scenery.jobs
            if job.owner is not None and job.owner.cluster == ours.cluster_id and job.state.phase is not Phase.ENDED
        }

    def plan(self) -> HandoverPlan:
        """Jobs first: what becomes of a pod follows from its job."""
        for job in self._scenery.jobs:
            if job.state.phase is not Phase.ENDED:
                self._job(job)
        for pod in self._scenery.pods:
            if pod.uid not in self._settled:
                self._pod(pod)
        for node in self._scenery.nodes:
            self._node(node)
        return HandoverPlan(groups=tuple(self._groups), left=tuple(self._left))

    # -- jobs

    def _job(self, job: JobView) -> None:
        name = f"job {job.job_id}"
        if not job.readable:
            self._leave(name, "what Slurm says of it cannot be read")
            return
        listed = record.read(job.admin_comment)
        if listed is None:
            if job.owner is None and record.resembles(job.admin_comment):
                self._leave(name, "its admin_comment is not exactly a record of the other bridge")
            return
        pods = [self._pods[key] for key in listed if key in self._pods]
        self._settled |= {pod.uid for pod in pods if pod.metadata.labels.get(names.LABEL_JOB_ID) == str(job.job_id)}
        problem = self._disagreement(job, listed, pods)
        if problem:
            self._leave(name, problem)
            return
        self._settled |= {pod.uid for pod in pods}
        self._of_job(name, job, pods, gang=len(listed) > 1)

    def _disagreement(self, job: JobView, listed: Sequence[str], pods: Sequence[Pod]) -> str:
        """Why record and pods do not name each other, "" where they do."""
        unread = next((key for key in listed if key in self._unreadable), None)
        if unread:
            return f"pod {unread} of its record cannot be read"
        if not pods:
            return f"pod {listed[0]} of its record is not in this cluster"
        for pod in pods:
            name, says = "/".join(pod.key), pod.metadata.labels.get(names.LABEL_JOB_ID, "")
            if pod.spec.scheduler_name not in self._ours.scheduler_names:
                return f"pod {name} has the schedulerName {pod.spec.scheduler_name!r}, which is not in scheduler_names"
            if says != str(job.job_id):
                return f"pod {name} of its record has the label {names.LABEL_JOB_ID}={says[:20]!r}"
        return ""

    def _of_job(self, name: str, job: JobView, pods: Sequence[Pod], *, gang: bool) -> None:
        living = [pod for pod in pods if not pod.terminal]
        bound = [pod for pod in living if pod.bound]
        if not bound:
            if job.state.phase is Phase.UNKNOWN:
                self._leave(name, f"its state {'+'.join(sorted(job.state.words))} is not known")
                return
            after = [self._free(pod) if pod.terminal else self._release(pod) for pod in pods]
            cancelled = CancelJob(job=job, pods=tuple(pods))
            self._groups.append((cancelled, *(step for step in after if step is not None)))
            return
        problem = self._unfit(job, living, bound)
        root = problem or self._root(bound, gang=gang)
        if isinstance(root, str):
            self._leave(name, root)
            return
        owner = records.owner_of(root, self._ours.cluster_id)
        if root.kind != kinds.PODS.kind:
            owner = records.for_attempt(owner, 0, request="", plan="", members=records.members_of(bound))
        self._taken.add(root.key)
        after = [self._mark(pod) if pod.uid in {one.uid for one in bound} else self._free(pod) for pod in pods]
        self._groups.append((AdoptJob(job=job, owner=owner), *(step for step in after if step is not None)))

    def _unfit(self, job: JobView, living: Sequence[Pod], bound: Sequence[Pod]) -> str:
        """Why a job with pods on nodes cannot be taken over as it is."""
        if job.het_job_id is not None:
            return "it is heterogeneous, which the other bridge never asks for"
        if job.state.phase not in HOLDING:
            return f"its state is {'+'.join(sorted(job.state.words))}, and pod {'/'.join(bound[0].key)} has a node"
        if len(bound) < len(living):
            return (
                f"only {len(bound)} of its {len(living)} pods have nodes: let the other bridge bind the others, or "
                "delete the pods"
            )
        for pod in bound:
            node = self._nodes.get(pod.spec.node_name)
            if node is None or job.nodes is None or node.slurm_name not in job.nodes:
                return f"pod {'/'.join(pod.key)} is on node {pod.spec.node_name}, which is none of the job's nodes"
        return ""

    def _root(self, bound: Sequence[Pod], *, gang: bool) -> Root | str:
        """The workload that the job stands for from now on, or why there is none.

        A job of one pod stands for that pod, however this bridge would group it.
        """
        roots = {root.key: root for root in map(self._ours.claim if gang else pod_index.alone, bound)}
        if len(roots) > 1:
            return f"its {len(bound)} pods are {len(roots)} workloads of this bridge, and one job stands for one"
        root = next(iter(roots.values()))
        return f"another job stands for {root} already" if root.key in self._taken else root

    # -- pods

    def _pod(self, pod: Pod) -> None:
        """One of which no job of the other bridge decides."""
        name, marked = f"pod {'/'.join(pod.key)}", names.FINALIZER_OF_ANOTHER in pod.metadata.finalizers
        if pod.spec.scheduler_name not in self._ours.scheduler_names:
            if marked:
                self._leave(name, f"its schedulerName {pod.spec.scheduler_name!r} is not in scheduler_names")
            return
        if pod.terminal or (marked and pod.terminating):
            self._alone(self._free(pod))
        elif not pod.bound:
            self._alone(self._release(pod))
        elif marked:
            self._running(name, pod)

    def _running(self, name: str, pod: Pod) -> None:
        """On a node, with the finalizer of the other bridge."""
        label = pod.metadata.labels.get(names.LABEL_JOB_ID, "")
        job = self._jobs.get(label)
        owner = job.owner if job is not None else None
        if owner is not None and owner.cluster == self._ours.cluster_id and job_id_of(pod) is not None:
            if self._stands_for(owner, pod):
                self._alone(self._mark(pod))
            else:
                self._leave(name, f"Slurm job {label} stands for {owner.kind} {owner.namespace}/{owner.name}")
        elif job is None or job.state.phase is Phase.ENDED:
            self._leave(name, f"Slurm job {label[:20]!r} is over, and the pod runs: delete the pod")
        else:
            self._leave(name, f"Slurm job {label[:20]} does not name it in its record")

    def _stands_for(self, owner: Owner, pod: Pod) -> bool:
        if owner.kind == kinds.PODS.kind:
            return owner.key == pod_index.alone(pod).key
        return owner.namespace == pod.metadata.namespace and owner.key == self._ours.claim(pod).key

    def _mark(self, pod: Pod) -> ChangePod | None:
        node = self._nodes.get(pod.spec.node_name)
        wanted: dict[str, str | None] = {
            names.ANNOTATION_SLURM_NODE: node.slurm_name if node is not None else pod.spec.node_name,
            names.ANNOTATION_BOUND_BY: self._ours.cluster_id,
            names.ANNOTATION_COUNTED: resizes.written(pod) or None,
        }
        return steps.changed(pod, MARK, annotations=wanted)

    def _release(self, pod: Pod) -> ChangePod | None:
        return steps.changed(
            pod, RELEASE, labels={names.LABEL_JOB_ID: None}, annotations={names.ANNOTATION_SLURM_NODE: None}
        )

    def _free(self, pod: Pod) -> ChangePod | None:
        return steps.changed(pod, FREE)

    # -- nodes

    def _node(self, node: Node) -> None:
        if names.ANNOTATION_MANAGED_TAINT in node.metadata.annotations:
            # The node controller of this bridge, or of another one like it, wrote the taint.
            return
        theirs = [one for one in node.spec.taints if one.key == names.TAINT_OF_ANOTHER]
        ours = [one for one in theirs if one.value in self._ours.scheduler_names]
        for one in theirs:
            if one not in ours:
                self._leave(f"node {node.metadata.name}", f"its taint is of the scheduler {one.value!r}")
        if ours:
            left = tuple(one for one in node.spec.taints if one not in ours)
            self._groups.append((ChangeNode(node=node, taints=left),))

    # --

    def _alone(self, step: ChangePod | None) -> None:
        if step is not None:
            self._groups.append((step,))

    def _leave(self, subject: str, reason: str) -> None:
        self._left.append(LeftAlone(subject=subject, reason=reason))
