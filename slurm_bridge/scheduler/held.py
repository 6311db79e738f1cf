"""Which workloads keep something at this moment, as hooks have to know it that count: those with a job, or on nodes.

A job keeps all its nodes until it is over: of a group that runs those count who are done, and of one that is done all.
Of the others only those are told of that something is kept for: others left for them, or are about to.

Pods and placeholders are all that it is taken from: whoever starts anew comes to the same.
"""

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence

from slurm_bridge import errors
from slurm_bridge.hooks import chain
from slurm_bridge.hooks.base import Ask
from slurm_bridge.hooks.held import Held
from slurm_bridge.model import kinds
from slurm_bridge.model.job import JobRequest, Memory
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Root, Source, Workload
from slurm_bridge.scheduler import records
from slurm_bridge.scheduler.census import Census
from slurm_bridge.scheduler.eviction import notes
from slurm_bridge.scheduler.members import ENDED, PLACED, Crew, Standing, job_id_of
from slurm_bridge.scheduler.tools import Tools
from slurm_bridge.translate import translator
from slurm_bridge.translate.translator import Translated


def held(tools: Tools, census: Census) -> tuple[Held, ...]:
    """All of them."""
    return tuple(_held(tools, census))


def keeps(tools: Tools, crew: Crew | None, uid: WorkloadKey) -> bool:
    """It has a job, or may have one, or pods on nodes."""
    return bool(crew and crew.count(*PLACED)) or tools.may_have_job(uid)


def _by_uid(census: Census) -> Mapping[str, WorkloadKey]:
    """Of all workloads: notes of earlier versions name others by their uids."""
    crews = ((key, census.crew(key)) for key in census.roots())
    return {crew.root.uid: key for key, crew in crews if crew is not None}


def _held(tools: Tools, census: Census) -> Iterator[Held]:
    earlier = _by_uid(census)
    for uid in census.roots():
        found = tools.guard.always("counting", uid, functools.partial(_one, tools, census, uid, earlier))
        if found is not None:
            yield found


def _one(tools: Tools, census: Census, uid: WorkloadKey, earlier: Mapping[str, WorkloadKey]) -> Held | None:
    crew = census.crew(uid)
    if crew is None:
        return None
    kept = keeps(tools, crew, uid)
    made_by = {} if kept else notes.room_made_by(crew.pods(Standing.WANTING))
    if not (kept or made_by):
        return None
    done = _done(tools, crew)
    ask = _ask(_placed(tools, crew, _workload(tools, crew, done), done), tools)
    if not ask.workload.pods:
        return None
    if not kept:
        victims = {earlier.get(one, WorkloadKey(one)): name for one, name in made_by.items()}
        known = {one: name for one, name in victims.items() if _was_there(tools, census, one)}
        return Held(ask=ask, started=False, waits=True, room_made_by=known)
    makes_room_for = notes.makes_room_for((*crew.pods(*PLACED, Standing.WANTING), *done))
    placed = {pod.uid for pod in (*crew.pods(*PLACED), *done)}
    return Held(
        ask=ask,
        started={pod.uid for pod in ask.workload.pods} <= placed,
        makes_room_for=earlier.get(makes_room_for or "", WorkloadKey(makes_room_for or "")),
        leaves=_leaves(crew, marked=makes_room_for is not None),
    )


def _was_there(tools: Tools, census: Census, uid: WorkloadKey) -> bool:
    """It has pods, or Slurm remembers a job of it. Of others only the note tells, which users can write."""
    return census.crew(uid) is not None or bool(tools.table.of(uid))


def _done(tools: Tools, crew: Crew) -> tuple[Pod, ...]:
    """Those who are over, and whose job is not."""
    living = {one.job_id for one in tools.table.of(crew.root.key) if one.alive}
    return tuple(pod for pod in crew.pods(*ENDED) if job_id_of(pod) in living) if living else ()


def _leaves(crew: Crew, *, marked: bool) -> bool:
    """All are on their way out; of those that make room for others it is enough that one is, or has gone."""
    going, staying = crew.count(Standing.LEAVING), crew.count(Standing.BOUND, Standing.WANTING)
    if marked:
        return going > 0 or not staying
    return going > 0 and not staying


def _workload(tools: Tools, crew: Crew, done: Sequence[Pod]) -> Workload:
    """As gathered; where nobody can say now who belongs to it, its pods as they are."""
    stands = (Standing.WANTING, *PLACED, *(ENDED if done else ()))
    try:
        gathered = tools.guard.always("gathering", crew.root.uid, lambda: tools.gather(crew, *stands))
    except errors.BridgeError:
        gathered = None
    if isinstance(gathered, Workload):
        return gathered
    pods = crew.pods(*stands)
    says = tuple(
        Source(kind=kinds.PODS.kind, name=pod.metadata.name, annotations=pod.metadata.annotations) for pod in pods[:1]
    )
    return Workload(root=crew.root, pods=pods, sources=says, job_name=crew.root.name)


def _placed(tools: Tools, crew: Crew, workload: Workload, done: Sequence[Pod]) -> Workload:
    """Of a group that runs those for whom its job has places: who came later waits for one of them to leave.

    Who came for one that is done has taken its place.
    """
    job = next((one for one in tools.table.of(workload.root.key) if one.alive and one.started), None)
    placed = {pod.uid for pod in crew.pods(*PLACED)}
    over = {pod.uid for pod in crew.pods(*ENDED)}
    others = [pod.uid for pod in workload.pods if pod.uid not in placed | over] + [pod.uid for pod in done]
    places = len(others) if job is None else max(0, records.places_of(job.owner) - len(placed))
    there = placed.union(others[:places])
    return dataclasses.replace(workload, pods=tuple(pod for pod in workload.pods if pod.uid in there))


def _ask(workload: Workload, tools: Tools) -> Ask:
    """What it asked for; of what cannot be translated any more the pods are known, and what they say to hooks."""
    uid, rules = workload.root.uid, tools.config.rules
    translated = None
    if workload.pods:
        translated = tools.guard.always("translation", uid, lambda: translator.translate(workload, rules))
    if isinstance(translated, Translated):
        return chain.asked(workload, translated)
    hints = tools.guard.always("annotations", uid, lambda: translator.hints(workload))
    return Ask(workload=workload, request=_bare(workload.root), hints=hints or {})


def _bare(root: Root) -> JobRequest:
    owner = Owner(cluster="", kind=root.kind, namespace=root.namespace, name=root.name, uid=root.uid)
    return JobRequest(name=root.name, owner=owner, memory=Memory(mib=0))
