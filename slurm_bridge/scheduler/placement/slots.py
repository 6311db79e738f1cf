"""What a running job holds, as places for the members of its workload."""

import dataclasses
from collections.abc import Iterable, Sequence

from slurm_bridge import errors
from slurm_bridge.model.job import Gres, JobView, NodeShare
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Reject
from slurm_bridge.model.workload import Workload
from slurm_bridge.scheduler import records
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.placement import place
from slurm_bridge.scheduler.placement.place import Member, Part
from slurm_bridge.scheduler.state import DesiredJob
from slurm_bridge.scheduler.workload_pods import WorkloadPods, job_id_of, slurm_node_of
from slurm_bridge.translate import shapes
from slurm_bridge.translate.shapes import Shape


def placed(desired: DesiredJob, read: Placeholder, context: SchedulerContext) -> dict[str, str] | Reject:
    """Slurm's node for each pod by uid, the bound ones included."""
    assert read.view is not None
    if desired.workload.gang is None:
        if read.view.nodes is None:
            raise errors.Unreadable(f"Slurm job {read.job_id} runs, and the text of its nodes cannot be read")
        return place.first_node(desired.workload.pods, read.view.nodes)
    shares = held(read.view, context)
    if isinstance(shares, Reject):
        return shares
    parts = _parts(desired, read.view, shares)
    return place.place(parts, per_node=1 if desired.translated.one_per_node else None)


def as_many_as_fit(workload: Workload, members: WorkloadPods, read: Placeholder) -> Workload:
    """The pods that have places in the job, and the first of the new ones for which there are more."""
    room = max(0, records.places_of(read.owner) - members.on(read.job_id))
    coming = {pod.uid for pod in [pod for pod in workload.pods if not pod.bound][:room]}
    there = (pod for pod in workload.pods if pod.uid in coming or job_id_of(pod) == read.job_id)
    return dataclasses.replace(workload, pods=tuple(there))


def those_who_came_first(workload: Workload, owner: Owner) -> Workload:
    """As many as the job was asked for; others came when it had started already, and are none of this start."""
    asked = records.places_of(owner)
    if workload.gang is None or not workload.gang.minimum <= asked < len(workload.pods):
        return workload
    by_age = sorted(workload.pods, key=lambda pod: pod.metadata.creation_timestamp or "")
    first = {pod.uid for pod in by_age[:asked]}
    return dataclasses.replace(workload, pods=tuple(pod for pod in workload.pods if pod.uid in first))


def held(view: JobView, context: SchedulerContext) -> list[tuple[NodeShare, ...]] | Reject:
    """What each component holds, one reading each."""
    ids = [view.job_id]
    if view.het_job_id is not None:
        ids = [one.job_id for one in context.slurm.components(view.job_id)]
    found = [context.slurm.allocation(job_id) for job_id in ids]
    if not found or any(one is None for one in found):
        text = f"Slurm says that job {view.job_id} runs, but not what it allocated"
        return Reject(reason="SlurmAllocationEmpty", message=text)
    return [
        tuple(dataclasses.replace(share, gres=_alike(share.gres)) for share in one.shares)
        for one in found
        if one is not None
    ]


def _alike(gres: Iterable[Gres]) -> tuple[Gres, ...]:
    """Users may write upper case where Slurm has lower, or the other way round."""
    return tuple(dataclasses.replace(one, name=one.name.lower(), type=one.type.lower()) for one in gres)


def _parts(desired: DesiredJob, view: JobView, shares: Sequence[tuple[NodeShare, ...]]) -> tuple[Part, ...]:
    """Component by component where there is one for each shape, else all members onto all that there is."""
    found = desired.translated.shapes
    if len(shares) > 1 and any(shape.part for shape in found):
        return _own(desired.workload, found, shares)
    # Once some are bound the others may come wherever there is room: components never share a node.
    fresh = not any(pod.bound for pod in desired.workload.pods)
    if fresh and len(shares) > 1 and len(shares) == len(found):
        return tuple(
            Part(members=_members(desired.workload, (shape,)), shares=held)
            for shape, held in zip(found, shares, strict=True)
        )
    everything = tuple(share for held in shares for share in held)
    slots = None
    if len(shares) == 1 and len(found) > 1 and (view.tasks or 1) > 1:
        # What one task of the job was given bounds them all.
        most = shapes.bound(shapes.kinds(found))
        slots = dataclasses.replace(most, gres=_alike(most.gres))
    return (Part(members=_members(desired.workload, found), shares=everything, slots=slots),)


def _own(workload: Workload, found: Sequence[Shape], shares: Sequence[tuple[NodeShare, ...]]) -> tuple[Part, ...]:
    """Each part onto its own components.

    Once some of its pods are bound these tell which ones: when a whole part is gone, components outnumber shapes.
    """
    homes = [_homes(shape.pods, shares) for shape in found]
    in_order = len(found) == len(shares) and all(home <= {place} for place, home in enumerate(homes))
    if in_order:
        pairs = zip(found, shares, strict=True)
        return tuple(Part(members=_members(workload, (shape,)), shares=held) for shape, held in pairs)
    of_part: dict[str, set[int]] = {}
    for shape, home in zip(found, homes, strict=True):
        of_part.setdefault(shape.part, set()).update(home)
    free = {*range(len(shares))}.difference(*of_part.values()) or {*range(len(shares))}
    together: dict[tuple[int, ...], list[Shape]] = {}
    for shape in found:
        together.setdefault(tuple(sorted(of_part[shape.part] or free)), []).append(shape)
    return tuple(
        Part(members=_members(workload, one), shares=tuple(share for place in held for share in shares[place]))
        for held, one in together.items()
    )


def _homes(pods: Iterable[Pod], shares: Sequence[tuple[NodeShare, ...]]) -> set[int]:
    """The components on whose nodes some of these pods are."""
    nodes = {slurm_node_of(pod) for pod in pods if pod.bound}
    return {place for place, held in enumerate(shares) if not nodes.isdisjoint(share.node for share in held)}


def _members(workload: Workload, found: Sequence[Shape]) -> tuple[Member, ...]:
    """In rank order, each with what its shape asks for."""
    shape_of = {pod.uid: shape for shape in found for pod in shape.pods}
    return tuple(
        Member(
            uid=pod.uid,
            name=pod.metadata.name,
            cpus=shape_of[pod.uid].cpus,
            memory_mib=shape_of[pod.uid].memory_mib,
            gres=_alike(shape_of[pod.uid].gres),
            node=slurm_node_of(pod) if pod.bound else None,
        )
        for pod in workload.pods
        if pod.uid in shape_of
    )
