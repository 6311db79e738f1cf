"""Which workloads keep something at this moment, as hooks have to know it that count: those with a job, or on nodes.

A job keeps all its nodes until it is over. So the pods of a running group count when they are done, a group that is
done counts as a whole, and places of members that were deleted count until new members take them. Of workloads that
wait, hooks see only those for which something is kept.

The answer depends on pods and placeholders only, so a restarted daemon comes to the same one.
"""

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence

from slurm_bridge import errors
from slurm_bridge.hooks import chain
from slurm_bridge.hooks.base import Ask
from slurm_bridge.hooks.lifecycle import ActiveUsage
from slurm_bridge.model import kinds
from slurm_bridge.model.job import JobRequest, Memory
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Source, Workload
from slurm_bridge.scheduler import records
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.eviction import notes
from slurm_bridge.scheduler.pod_index import PodIndex
from slurm_bridge.scheduler.workload_pods import ENDED, PLACED, PodState, WorkloadPods, job_id_of
from slurm_bridge.translate import translator
from slurm_bridge.translate.translator import Translated


def held(context: SchedulerContext, pod_index: PodIndex) -> tuple[ActiveUsage, ...]:
    """All of them."""
    return tuple(_held(context, pod_index))


def keeps(context: SchedulerContext, members: WorkloadPods | None, key: WorkloadKey) -> bool:
    """It has a job, or may have one, or pods on nodes."""
    return bool(members and members.count(*PLACED)) or context.may_have_job(key)


def _held(context: SchedulerContext, pod_index: PodIndex) -> Iterator[ActiveUsage]:
    workloads = ((key, pod_index.workload(key)) for key in pod_index.roots())
    earlier = {members.root.uid: key for key, members in workloads if members is not None}
    for uid in pod_index.roots():
        found = context.guard.always("counting", uid, functools.partial(_one, context, pod_index, uid, earlier))
        if found is not None:
            yield found


def _one(
    context: SchedulerContext, pod_index: PodIndex, key: WorkloadKey, earlier: Mapping[str, WorkloadKey]
) -> ActiveUsage | None:
    members = pod_index.workload(key)
    if members is None:
        return None
    kept = keeps(context, members, key)
    made_by = {} if kept else notes.room_made_by(members.pods(PodState.WANTING))
    if not (kept or made_by):
        return None
    done = _done(context, members)
    ask = _ask(_placed(context, members, _workload(context, members, done), done), context)
    if not ask.workload.pods:
        return None
    if not kept:
        victims = {earlier.get(one, WorkloadKey(one)): name for one, name in made_by.items()}
        known = {one: name for one, name in victims.items() if _was_there(context, pod_index, one)}
        return ActiveUsage(ask=ask, started=False, waits=True, room_made_by=known)
    makes_room_for = notes.makes_room_for((*members.pods(*PLACED, PodState.WANTING), *done))
    placed = {pod.uid for pod in (*members.pods(*PLACED), *done)}
    return ActiveUsage(
        ask=ask,
        started={pod.uid for pod in ask.workload.pods} <= placed,
        makes_room_for=earlier.get(makes_room_for or "", WorkloadKey(makes_room_for or "")),
        leaves=_leaves(members, marked=makes_room_for is not None),
        missing=_missing(context, ask.workload),
    )


def _missing(context: SchedulerContext, workload: Workload) -> int:
    """For so many members more than these its job was asked for."""
    asked = (records.places_of(one.owner) for one in context.table.of(workload.root.key) if one.alive)
    return max(0, max(asked, default=0) - len(workload.pods))


def _was_there(context: SchedulerContext, pod_index: PodIndex, key: WorkloadKey) -> bool:
    """It has pods, or Slurm remembers a job of it. Of others only the note tells, which users can write."""
    return pod_index.workload(key) is not None or bool(context.table.of(key))


def _done(context: SchedulerContext, members: WorkloadPods) -> tuple[Pod, ...]:
    """Pods that are over while their job is not."""
    living = {one.job_id for one in context.table.of(members.root.key) if one.alive}
    return tuple(pod for pod in members.pods(*ENDED) if job_id_of(pod) in living) if living else ()


def _leaves(members: WorkloadPods, *, marked: bool) -> bool:
    """All are on their way out; of those that make room for others it is enough that one is, or has gone."""
    going, staying = members.count(PodState.LEAVING), members.count(PodState.BOUND, PodState.WANTING)
    if marked:
        return going > 0 or not staying
    return going > 0 and not staying


def _workload(context: SchedulerContext, members: WorkloadPods, done: Sequence[Pod]) -> Workload:
    """The workload as gathered; while its members cannot be found out, its pods as they are."""
    stands = (PodState.WANTING, *PLACED, *(ENDED if done else ()))
    try:
        gathered = context.guard.always("gathering", members.root.uid, lambda: context.gather(members, *stands))
    except errors.BridgeError:
        gathered = None
    if isinstance(gathered, Workload):
        return gathered
    pods = members.pods(*stands)
    says = tuple(
        Source(kind=kinds.PODS.kind, name=pod.metadata.name, annotations=pod.metadata.annotations) for pod in pods[:1]
    )
    return Workload(root=members.root, pods=pods, sources=says, job_name=members.root.name)


def _placed(context: SchedulerContext, members: WorkloadPods, workload: Workload, done: Sequence[Pod]) -> Workload:
    """The members of a running group for which its job has places: a later pod waits until one of them leaves.

    A pod that replaces a finished one has taken its place.
    """
    job = next((one for one in context.table.of(workload.root.key) if one.alive and one.started), None)
    placed = {pod.uid for pod in members.pods(*PLACED)}
    over = {pod.uid for pod in members.pods(*ENDED)}
    others = [pod.uid for pod in workload.pods if pod.uid not in placed | over] + [pod.uid for pod in done]
    places = len(others) if job is None else max(0, records.places_of(job.owner) - len(placed))
    there = placed.union(others[:places])
    return dataclasses.replace(workload, pods=tuple(pod for pod in workload.pods if pod.uid in there))


def _ask(workload: Workload, context: SchedulerContext) -> Ask:
    """What it asked for; of what cannot be translated any more the pods are known, and what they say to hooks."""
    uid, rules = workload.root.uid, context.config.rules
    translated = None
    if workload.pods:
        translated = context.guard.always("translation", uid, lambda: translator.translate(workload, rules))
    if isinstance(translated, Translated):
        return chain.asked(workload, translated)
    hints = context.guard.always("annotations", uid, lambda: translator.hints(workload))
    bare = JobRequest(name=workload.root.name, owner=records.owner_of(workload.root, ""), memory=Memory(mib=0))
    return Ask(workload=workload, request=bare, hints=hints or {})
