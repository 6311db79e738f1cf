"""The jobs that bound pods name, where they are not known: read, believed, or found to belong to another owner now.

A pod may have been bound as part of another workload: by another configuration, or before its controller said more.
Then it belongs to that one. And after a crash slurmctld may have given the id to another job: a stranger's, or ours for
other pods. Then the pod's own job is gone.

Pods of another bridge look the same: they name jobs that exist and are not ours. What tells them apart is evidence that
the pod was bound by us: its own binding says so, or the job was known as this workload's. Without it the pod is left
alone, whatever becomes of the job.

                                     another job has the id, or none        Slurm knows no such job
    bound by us                      gone: the pod is ended in time         gone: likewise
    nothing says by which bridge     left alone                             gone: an earlier version may have bound it
    kept by another bridge           left alone                             left alone
"""

import heapq

from loguru import logger

from slurm_bridge.model import kinds, names
from slurm_bridge.model.job import JobState
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.placeholder import Certainty, NotOurs, Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Root
from slurm_bridge.scheduler import records
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.queue import AT_ONCE, WOKEN, Filed
from slurm_bridge.scheduler.workload_pods import PLACED, PodState, WorkloadPods, job_id_of, slurm_node_of

#: So many jobs are read before the workload is looked at anew.
AT_A_TIME = 8


def disbelieve(ctx: SchedulerContext, placeholder: Placeholder) -> None:
    """Nothing makes this job the workload's any more: its pods are looked at anew."""
    owner = placeholder.owner
    ctx.states.of(owner.key).robbed = None
    known = ctx.table.get(placeholder.job_id)
    if known is not None and known.owner.same_workload(owner):
        ctx.table.drop(placeholder.job_id)


def look(ctx: SchedulerContext, members: WorkloadPods) -> Filed:
    """Read the placeholders that bound pods name; that Slurm does not know one is worth remembering too.

    A few at a time, those first of which nothing is known: pods can name any number of jobs.
    """
    known = {job_id: _known(ctx, members, job_id) for job_id in members.named}
    unsure = [job_id for job_id, certainty in known.items() if certainty is not Certainty.SEEN]
    for job_id in heapq.nsmallest(AT_A_TIME, unsure, key=lambda one: known[one] is not None):
        _look(ctx, members, job_id)
    return AT_ONCE if members.named or not members.count(*PLACED) else WOKEN


def _known(ctx: SchedulerContext, members: WorkloadPods, job_id: names.JobId) -> Certainty | None:
    """How certain it is that this job is the workload's, None where nothing says that it is."""
    job = ctx.table.get(job_id)
    return job.certainty if job is not None and job.owner.key == members.root.key else None


def _look(ctx: SchedulerContext, members: WorkloadPods, job_id: names.JobId) -> None:
    owner = records.owner_of(members.root, ctx.config.rules.cluster_id)
    found = ctx.mirror.look_whose(job_id, owner)
    if isinstance(found, Placeholder) and found.owner.same_workload(owner):
        return
    pods = [pod for pod in members.pods(*PodState) if job_id_of(pod) == job_id]
    if isinstance(found, Placeholder) and all(may_be_by(ctx, pod, found) for pod in pods):
        for pod in pods:
            ctx.pod_index.move(pod.uid, root_of(found.owner))
        ctx.table.put(found)
        return
    ours = {pod.uid for pod in pods if _was_ours(ctx, pod, job_id, owner, exists=found is not None)}
    for pod in pods:
        if pod.uid not in ours:
            _disown(ctx, pod, job_id, found)
    if any(pod.uid in ours for pod in members.pods(*PLACED)):
        _gone(ctx, job_id, owner)


def _was_ours(ctx: SchedulerContext, pod: Pod, job_id: names.JobId, owner: Owner, *, exists: bool) -> bool:
    """The table above."""
    known = ctx.table.get(job_id)
    if pod.metadata.annotations.get(names.ANNOTATION_BOUND_BY) == owner.cluster:
        return True
    if known is not None and known.owner.same_workload(owner):
        return True
    return not exists and names.FINALIZER_OF_ANOTHER not in pod.metadata.finalizers


def _disown(ctx: SchedulerContext, pod: Pod, job_id: names.JobId, found: Placeholder | NotOurs | None) -> None:
    """Said on the pod once: an event, because nothing of the pod itself is ours to change."""
    if not ctx.pod_index.disown(pod.uid, job_id):
        return
    whose = found.whose if isinstance(found, NotOurs) else "it stands for another workload"
    text = f"Slurm job {job_id} is not of this bridge ({whose})"
    if found is None:
        text = f"Slurm does not know job {job_id}, and the pod was bound by another bridge"
    text += "; this bridge leaves the pod alone. If the bridge that bound it is not in use any more, delete the pod"
    ctx.status.event(pod, "SlurmJobNotOurs", text, warning=True)
    logger.bind(workload="/".join(pod.key)).warning(text)


def _gone(ctx: SchedulerContext, job_id: names.JobId, owner: Owner) -> None:
    known = ctx.table.get(job_id)
    ours = known is None or known.owner.same_workload(owner)
    gone = Placeholder(
        job_id=job_id,
        owner=owner,
        state=JobState(frozenset()),
        certainty=Certainty.GONE,
        since=ctx.clock.now(),
        started=True,
        seen=ours and known is not None and known.seen,
    )
    if ours:
        ctx.table.put(gone, tell=False)
    else:
        state = ctx.states.of(owner.key)
        if state.robbed is None or state.robbed.job_id != job_id:
            state.robbed = gone


def may_be_by(ctx: SchedulerContext, pod: Pod, job: Placeholder) -> bool:
    """That this pod, which names this job, was bound by it. An id that Slurm has counted is no evidence by itself."""
    owner, view, counted = job.owner, job.view, ctx.limits.ids is None
    if owner.namespace != pod.metadata.namespace or (owner.kind == kinds.PODS.kind and owner.uid != pod.uid):
        return False
    if counted and owner.kind != kinds.PODS.kind and owner.name not in ctx.pod_index.handles(pod):
        return False
    known = view.nodes if view is not None and view.het_job_id is None else None
    return job.started and (not known or slurm_node_of(pod) in known)


def root_of(owner: Owner) -> Root:
    """The workload that an owner record speaks of."""
    return Root(kind=owner.kind, namespace=owner.namespace, name=owner.name, uid=owner.uid)
