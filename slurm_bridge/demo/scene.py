"""The state of both servers at one moment: the stage of every pod, the load of the nodes, calls and events.

pod                job            stage
not bound          none           pending     not submitted to Slurm yet
not bound          pending        queued      in Slurm's queue
not bound          holds nodes    allocated   Slurm has allocated nodes, the pod is being bound
bound              any            bound
succeeded, failed  any            done, failed
gone before that   any            gone        deleted: Slurm took the node back, or a user deleted the pod

The members of a gang share one job: it is in the row of each member, with their number.
"""

import collections
import dataclasses
import enum
from collections.abc import Iterable, Mapping, Sequence


class PodStage(enum.Enum):
    """How far a pod has come, in the order of its life."""

    PENDING = "pending"
    QUEUED = "queued"
    ALLOCATED = "allocated"
    BOUND = "bound"
    DONE = "done"
    FAILED = "failed"
    GONE = "gone"


#: The stages of a pod that ends well.
WAY = (PodStage.PENDING, PodStage.QUEUED, PodStage.ALLOCATED, PodStage.BOUND, PodStage.DONE)

#: With this many nodes, only the binding tells the node of a member.
_SEVERAL = 2

OVER = frozenset({PodStage.DONE, PodStage.FAILED, PodStage.GONE})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PodSeen:
    """A pod as Kubernetes shows it.

    `owners` may own the placeholder of this pod; `job_id` is the job it was bound by, 0 before. `why` is what its
    condition says while it waits.
    """

    uid: str
    namespace: str
    name: str
    phase: str
    node: str = ""
    job_id: int = 0
    owners: tuple[str, ...] = ()
    why: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JobSeen:
    """A placeholder as Slurm shows it: its owner, and the cpus it holds on each node."""

    job_id: int
    owner: str
    cpus: Mapping[str, int]
    over: bool
    why: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PodRow:
    """One pod and its placeholder; `members` is the number of pods that have had this placeholder."""

    uid: str
    name: str
    stage: PodStage
    job_id: int = 0
    members: int = 1
    node: str = ""
    why: str = ""
    since: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """The cpus of a node that our jobs hold."""

    node: str
    used: int
    cpus: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """The calls of the daemon so far, and its current rates, to Kubernetes and to Slurm."""

    kube: int = 0
    slurm: int = 0
    kube_rate: float = 0.0
    slurm_rate: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Everything at one moment, `seconds` after the start of the daemon. Rows are in the order of their creation.

    `forgotten` counts the pods whose rows were dropped long after their end.
    """

    seconds: float
    rows: tuple[PodRow, ...] = ()
    bars: tuple[Bar, ...] = ()
    calls: Calls = Calls()
    news: tuple[str, ...] = ()
    left: int = 0
    forgotten: Mapping[PodStage, int] = dataclasses.field(default_factory=dict)

    def count(self, stage: PodStage) -> int:
        """The number of pods at this stage."""
        return sum(row.stage is stage for row in self.rows) + self.forgotten.get(stage, 0)

    @property
    def pods(self) -> int:
        """The number of all pods so far."""
        return len(self.rows) + sum(self.forgotten.values())


def job_of(row: PodRow) -> str:
    """Its placeholder as text."""
    return f"job {row.job_id}" + (f" of {row.members} pods" if row.members > 1 else "")


def stage(pod: PodSeen, job: JobSeen | None) -> PodStage:
    """The stage by the table above."""
    if pod.phase in ("Succeeded", "Failed"):
        return PodStage.DONE if pod.phase == "Succeeded" else PodStage.FAILED
    if pod.node:
        return PodStage.BOUND
    if job is None or job.over:
        return PodStage.PENDING
    return PodStage.ALLOCATED if job.cpus else PodStage.QUEUED


def rows(
    before: Mapping[str, PodRow], pods: Iterable[PodSeen], jobs: Mapping[str, JobSeen], now: float
) -> tuple[PodRow, ...]:
    """Rows of all pods, past ones included; a deleted pod keeps its last node and job."""
    found = {pod.uid: _row(pod, jobs, before.get(pod.uid), now) for pod in pods}
    gone = {uid: row for uid, row in before.items() if uid not in found}
    for uid, row in gone.items():
        if row.stage not in OVER:  # a pod that is deleted after it has ended keeps its stage
            gone[uid] = dataclasses.replace(row, stage=PodStage.GONE, since=now)
    every_row = {**{uid: found.get(uid) or gone[uid] for uid in before}, **found}.values()
    sharing = collections.Counter(row.job_id for row in every_row)
    return tuple(
        dataclasses.replace(row, members=max(row.members, sharing[row.job_id])) if row.job_id else row
        for row in every_row
    )


def _row(pod: PodSeen, jobs: Mapping[str, JobSeen], before: PodRow | None, now: float) -> PodRow:
    job = next((jobs[owner] for owner in pod.owners if owner in jobs), None)
    reached, node = stage(pod, job), pod.node
    if job and not node:
        node = next(iter(job.cpus), "") if len(job.cpus) < _SEVERAL else f"{len(job.cpus)} nodes"
    job_id = pod.job_id or (job.job_id if job else 0) or (before.job_id if before else 0)
    return PodRow(
        uid=pod.uid,
        name=pod.name,
        stage=reached,
        job_id=job_id,
        members=before.members if before and before.job_id == job_id else 1,
        node=node,
        why=job.why if job and reached is PodStage.QUEUED else pod.why if reached is PodStage.PENDING else "",
        since=before.since if before and before.stage is reached else now,
    )


def obstacles(frame: Frame) -> Sequence[tuple[str, int]]:
    """What pods that are not submitted wait for, and how many do; the reason of most pods first."""
    return collections.Counter(row.why for row in frame.rows if row.stage is PodStage.PENDING and row.why).most_common()


def bars(nodes: Mapping[str, int], jobs: Iterable[JobSeen]) -> tuple[Bar, ...]:
    """Each node with its cpus, and how many of them running placeholders hold."""
    used = dict.fromkeys(nodes, 0)
    for job in jobs:
        for node, cpus in job.cpus.items() if not job.over else ():
            used[node] = used.get(node, 0) + cpus
    return tuple(Bar(node=name, used=used[name], cpus=nodes[name]) for name in sorted(nodes))


def newest(jobs: Iterable[JobSeen]) -> Mapping[str, JobSeen]:
    """The placeholder of each owner: the one that is alive, else the last one."""
    ordered = sorted(jobs, key=lambda job: not job.over)
    return {job.owner: job for job in ordered}


def steps(before: Frame | None, after: Frame) -> Sequence[tuple[PodRow, PodStage]]:
    """The stages reached between two frames, including stages passed in between."""
    known = {row.uid: row.stage for row in before.rows} if before else {}
    return [(row, passed) for row in after.rows for passed in _passed(known.get(row.uid), row)]


def _passed(last: PodStage | None, row: PodRow) -> Sequence[PodStage]:
    if row.stage is last:
        return ()
    if row.stage not in WAY or (last is not None and last not in WAY):
        return (row.stage,)
    start = WAY.index(last) + 1 if last is not None else 0
    return WAY[start : WAY.index(row.stage) + 1] or (row.stage,)
