"""The row of one workload, from its pods, its placeholder, and what it was told."""

import dataclasses
import datetime as dt
import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction

from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.mirror import table
from slurm_bridge.mirror.table import Table
from slurm_bridge.model import quantity, texts
from slurm_bridge.model.job import JobView, Phase
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.scheduler import words
from slurm_bridge.scheduler.pod_index import PodIndex
from slurm_bridge.scheduler.workload_pods import ENDED, PLACED, PodState, WorkloadPods, job_id_of
from slurm_bridge.status import conditions
from slurm_bridge.translate import resources
from slurm_bridge.view import rows
from slurm_bridge.view.rows import LiveWorkload

#: The requests of so many pods are added up; a larger workload is taken to go on like that.
MOST_ADDED = 64
#: Longer names are cut off; Kubernetes allows none that is longer, but owner records and groups by name are texts.
_MOST_NAME = 253

#: The reason of a job that Slurm has not given one yet.
PENDING = "SlurmJobPending"

#: The reason and the message that the pods of a workload were told last; None: nothing since the view began.
Told = Callable[[WorkloadKey], tuple[str, str] | None]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ViewRecords:
    """The records of the daemon that rows are made of. `devices`: extended resources that are counted as GPUs."""

    pod_index: PodIndex
    table: Table
    snapshot: ClusterSnapshot
    told: Told
    devices: Collection[str]


def row(records: ViewRecords, key: WorkloadKey, number: int) -> LiveWorkload | None:
    """The row of this workload as it is now; None if it has no pods."""
    members = records.pod_index.workload(key)
    lead = members.any if members is not None else None
    if members is None or lead is None:
        return None
    job = table.current(records.table.of(key))
    stage = stage_of(members, job)
    reason, message = reason_of(records, key, members, job, stage)
    if stage == rows.QUEUED:
        # The sentence names the job, its reason and its start, which are in the row already.
        message = words.REASONS.get(reason, "Slurm has not said why yet" if reason == PENDING else "")
    nodes = nodes_of(records, members, job)
    view, root = job.view if job is not None else None, members.root
    cpus, memory, devices = amounts(members, records.devices)
    return LiveWorkload(
        number=number,
        kind=texts.bounded(root.kind, _MOST_NAME),
        namespace=root.namespace,
        name=texts.bounded(root.name, _MOST_NAME),
        uid=texts.bounded(root.uid, _MOST_NAME),
        stage=stage,
        pods=members.count(*PodState),
        bound=members.count(*PLACED),
        job=job.job_id if job is not None else 0,
        reason=texts.bounded(reason, _MOST_NAME),
        message=texts.bounded(message, rows.MOST_TEXT),
        partition=texts.bounded(view.partition, _MOST_NAME) if view is not None else "",
        account=texts.bounded(view.account, _MOST_NAME) if view is not None else "",
        cpus=cpus,
        memory=memory,
        gpus=devices,
        nodes=tuple(texts.bounded(name, _MOST_NAME) for name in nodes[: rows.MOST_NODES]),
        node_count=len(nodes),
        priority=lead.spec.priority or 0,
        created=seconds(lead.metadata.creation_timestamp),
        submitted=view.submit_time if view is not None else 0,
        starts=view.start_time if view is not None else 0,
        lead=lead.metadata.name,
    )


def stage_of(members: WorkloadPods, job: Placeholder | None) -> str:
    """How far a workload has come; what its living pods want counts more than what others of it have reached."""
    waits, placed = members.count(PodState.WANTING, PodState.GATED), members.count(PodState.BOUND)
    if waits and not placed:
        if job is None or not job.alive:
            return rows.HELD
        return rows.QUEUED if job.phase in (Phase.PENDING, Phase.UNKNOWN) else rows.STARTING
    if placed or members.count(PodState.STRANGE):
        return rows.RUNNING
    if members.count(PodState.LEAVING):
        return rows.LEAVING
    return rows.FAILED if members.count(PodState.OVER) else rows.DONE


def reason_of(
    records: ViewRecords, key: WorkloadKey, members: WorkloadPods, job: Placeholder | None, stage: str
) -> tuple[str, str]:
    """The dominant reason: Slurm's while a job is pending, else what the pods were told."""
    if stage == rows.QUEUED and job is not None:
        said = job.view.reason if job.view is not None and words.refused(job) else ""
        return said or PENDING, words.waiting(job)
    if stage == rows.STARTING:
        return "", "Slurm has allocated nodes; the pods are being bound"
    if stage == rows.FAILED and job is not None and not job.alive:
        return "SlurmJobEnded", words.ended(job)
    if stage != rows.HELD:
        return "", ""
    lines_up = "", "it lines up to be submitted"
    gated = "SchedulingGated", "a scheduling gate holds the pod"
    return records.told(key) or condition(members) or (lines_up if members.count(PodState.WANTING) else gated)


def condition(members: WorkloadPods) -> tuple[str, str] | None:
    """The reason and the message that a waiting pod shows."""
    pod = members.first(PodState.WANTING, PodState.GATED)
    found = conditions.find(pod, conditions.SCHEDULED) if pod is not None else None
    if found is None or found.status != "False" or not found.reason:
        return None
    return found.reason, found.message or ""


def nodes_of(records: ViewRecords, members: WorkloadPods, job: Placeholder | None) -> Sequence[str]:
    """Kubernetes' names of the nodes that it is on, or that its running job holds; an annotation may say anything."""
    pod = members.first(*PLACED)
    if pod is not None and members.count(*PLACED) == 1:
        return (pod.spec.node_name,)
    by_slurm = records.snapshot.by_slurm
    job_id = job_id_of(pod) if pod is not None else None
    if job_id is not None:
        names: Sequence[str] = members.nodes(job_id)
    elif job is not None and job.alive and job.phase is not Phase.PENDING and members.count(*ENDED) == 0:
        names = _view_nodes(job.view)
    else:
        names = ()
    return tuple(by_slurm.get(name, name) for name in names)


def _view_nodes(view: JobView | None) -> Sequence[str]:
    return (view.nodes or ()) if view is not None else ()


def amounts(members: WorkloadPods, devices: Collection[str]) -> tuple[int, int, int]:
    """Cpus, MiB and devices that its pods ask for; those that have ended count as long as no other does."""
    alive = [state for state in PodState if state not in ENDED]
    number = members.count(*alive)
    states = alive if number else list(PodState)
    number = number or members.count(*states)
    pods = members.pods(*states) if number <= MOST_ADDED else _some(members, states)
    total: dict[str, Fraction] = {}
    for pod in pods:
        for name, amount in requests(pod).items():
            total[name] = total.get(name, Fraction()) + amount
    scale = Fraction(number, len(pods)) if len(pods) < number and pods else Fraction(1)
    held = sum((amount for name, amount in total.items() if name in devices), Fraction())
    return (
        quantity.whole(total.get("cpu", Fraction()) * scale),
        quantity.mebibytes(total.get("memory", Fraction()) * scale),
        quantity.whole(held * scale),
    )


def _some(members: WorkloadPods, states: Sequence[PodState]) -> tuple[Pod, ...]:
    return tuple(itertools.islice((pod for state in states for pod in members.pods(state)), MOST_ADDED))


def requests(pod: Pod) -> Mapping[str, Fraction]:
    """What the pod asks for; nothing if that cannot be read, as a user has written it."""
    try:
        return resources.requests_of(pod)
    except (ValueError, ArithmeticError):
        return {}


def seconds(written: str | None) -> int:
    """A time of Kubernetes in Unix seconds; 0 if it cannot be read."""
    try:
        return int(dt.datetime.fromisoformat(written or "").timestamp())
    except (ValueError, OverflowError):
        return 0
