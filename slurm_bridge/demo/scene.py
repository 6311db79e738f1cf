"""One look at both sides: how far every pod has come, how full the nodes are, what is called and told.

pod                job            stage
not bound          none           pending     nobody has asked Slurm yet
not bound          waits          queued      Slurm has it in its queue
not bound          holds nodes    allocated   Slurm has chosen, the binding is on its way
bound              any            bound
succeeded, failed  any            done, failed
gone before that   any            gone        deleted: Slurm has taken the node back, or a user the pod

The members of a gang share one job: it stands in the row of each, with how many they are.
"""

import collections
import dataclasses
import enum
from collections.abc import Iterable, Mapping, Sequence


class Stage(enum.Enum):
    """How far a pod has come, in the order of its life."""

    PENDING = "pending"
    QUEUED = "queued"
    ALLOCATED = "allocated"
    BOUND = "bound"
    DONE = "done"
    FAILED = "failed"
    GONE = "gone"


#: What every pod passes that ends well.
WAY = (Stage.PENDING, Stage.QUEUED, Stage.ALLOCATED, Stage.BOUND, Stage.DONE)

#: Nodes of one job; which of them a member comes to, its binding tells.
_SEVERAL = 2

OVER = frozenset({Stage.DONE, Stage.FAILED, Stage.GONE})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PodSeen:
    """A pod as Kubernetes shows it.

    `owners` are those whose job may be this pod's, `job_id` the one that it was bound by, 0 before.
    """

    uid: str
    namespace: str
    name: str
    phase: str
    node: str = ""
    job_id: int = 0
    owners: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JobSeen:
    """A placeholder as Slurm shows it: whose it is, and which cpus it holds on which nodes."""

    job_id: int
    owner: str
    cpus: Mapping[str, int]
    over: bool
    why: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One pod and its placeholder; `members` is how many pods have had this placeholder."""

    uid: str
    name: str
    stage: Stage
    job_id: int = 0
    members: int = 1
    node: str = ""
    why: str = ""
    since: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """How many cpus of a node our jobs hold."""

    node: str
    used: int
    cpus: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """Calls of the daemon so far, and so many a second of late, to Kubernetes and to Slurm."""

    kube: int = 0
    slurm: int = 0
    kube_rate: float = 0.0
    slurm_rate: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Everything at one moment, `seconds` after the daemon was started. Rows are in order of their creation.

    `forgotten` counts pods that are gone for so long that nobody remembers them one by one.
    """

    seconds: float
    rows: tuple[Row, ...] = ()
    bars: tuple[Bar, ...] = ()
    calls: Calls = Calls()
    news: tuple[str, ...] = ()
    left: int = 0
    forgotten: Mapping[Stage, int] = dataclasses.field(default_factory=dict)

    def count(self, stage: Stage) -> int:
        """How many pods are at this stage, or have come no further."""
        return sum(row.stage is stage for row in self.rows) + self.forgotten.get(stage, 0)

    @property
    def pods(self) -> int:
        """How many there have been."""
        return len(self.rows) + sum(self.forgotten.values())


def job_of(row: Row) -> str:
    """Its placeholder in words."""
    return f"job {row.job_id}" + (f" of {row.members} pods" if row.members > 1 else "")


def stage(pod: PodSeen, job: JobSeen | None) -> Stage:
    """From the table above."""
    if pod.phase in ("Succeeded", "Failed"):
        return Stage.DONE if pod.phase == "Succeeded" else Stage.FAILED
    if pod.node:
        return Stage.BOUND
    if job is None or job.over:
        return Stage.PENDING
    return Stage.ALLOCATED if job.cpus else Stage.QUEUED


def rows(
    before: Mapping[str, Row], pods: Iterable[PodSeen], jobs: Mapping[str, JobSeen], now: float
) -> tuple[Row, ...]:
    """All pods that are, and those that were: what is gone keeps its last node and job."""
    found = {pod.uid: _row(pod, _job(pod, jobs), before.get(pod.uid), now) for pod in pods}
    gone = {uid: _gone(row, now) for uid, row in before.items() if uid not in found}
    everybody = {**{uid: found.get(uid) or gone[uid] for uid in before}, **found}.values()
    sharing = collections.Counter(row.job_id for row in everybody)
    return tuple(
        dataclasses.replace(row, members=max(row.members, sharing[row.job_id])) if row.job_id else row
        for row in everybody
    )


def _job(pod: PodSeen, jobs: Mapping[str, JobSeen]) -> JobSeen | None:
    return next((jobs[owner] for owner in pod.owners if owner in jobs), None)


def _row(pod: PodSeen, job: JobSeen | None, before: Row | None, now: float) -> Row:
    reached = stage(pod, job)
    node = pod.node or (_places(job) if job else "")
    job_id = pod.job_id or (job.job_id if job else 0) or (before.job_id if before else 0)
    return Row(
        uid=pod.uid,
        name=pod.name,
        stage=reached,
        job_id=job_id,
        members=before.members if before and before.job_id == job_id else 1,
        node=node,
        why=job.why if job and reached is Stage.QUEUED else "",
        since=before.since if before and before.stage is reached else now,
    )


def _places(job: JobSeen) -> str:
    """Where a pod may come that is not bound yet."""
    return next(iter(job.cpus), "") if len(job.cpus) < _SEVERAL else f"{len(job.cpus)} nodes"


def _gone(row: Row, now: float) -> Row:
    """A pod that ended well may be cleared away afterwards; that changes nothing."""
    return row if row.stage in OVER else dataclasses.replace(row, stage=Stage.GONE, since=now)


def bars(nodes: Mapping[str, int], jobs: Iterable[JobSeen]) -> tuple[Bar, ...]:
    """Each node with its cpus, and what running placeholders hold of them."""
    used = dict.fromkeys(nodes, 0)
    for job in jobs:
        for node, cpus in job.cpus.items() if not job.over else ():
            used[node] = used.get(node, 0) + cpus
    return tuple(Bar(node=name, used=used[name], cpus=nodes[name]) for name in sorted(nodes))


def newest(jobs: Iterable[JobSeen]) -> Mapping[str, JobSeen]:
    """The placeholder of each owner: the one that lives, else the last one."""
    ordered = sorted(jobs, key=lambda job: not job.over)
    return {job.owner: job for job in ordered}


def steps(before: Frame | None, after: Frame) -> Sequence[tuple[Row, Stage]]:
    """What happened between two looks; a stage that was passed in between counts too."""
    known = {row.uid: row.stage for row in before.rows} if before else {}
    return [(row, passed) for row in after.rows for passed in _passed(known.get(row.uid), row)]


def _passed(last: Stage | None, row: Row) -> Sequence[Stage]:
    if row.stage is last:
        return ()
    if row.stage not in WAY or (last is not None and last not in WAY):
        return (row.stage,)
    start = WAY.index(last) + 1 if last is not None else 0
    return WAY[start : WAY.index(row.stage) + 1] or (row.stage,)
