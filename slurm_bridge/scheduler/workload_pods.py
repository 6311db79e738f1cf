"""How each pod stands, and the pods of one workload together: its crew."""

import dataclasses
import enum
from collections.abc import Collection, Sequence
from typing import Any, Final

from slurm_bridge.model import names
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Root


class PodState(enum.Enum):
    """What a pod wants, or has; those first that most depends on."""

    WANTING = "alive, ours, and without a node"
    GATED = "held back by others, not ours yet"
    BOUND = "on the node that its placeholder gave it"
    LEAVING = "bound, and its deletion was asked for; it may run for long yet"
    DONE = "it has succeeded"
    OVER = "it has failed, or was deleted before it had a node"
    STRANGE = "bound by another scheduler"


def standing(pod: Pod) -> PodState:
    """How this pod stands."""
    if pod.terminal:
        return PodState.DONE if pod.status.phase == "Succeeded" else PodState.OVER
    if pod.bound:
        if names.LABEL_JOB_ID not in pod.metadata.labels:
            return PodState.STRANGE
        return PodState.LEAVING if pod.terminating else PodState.BOUND
    if pod.terminating:
        return PodState.OVER
    return PodState.GATED if pod.gated else PodState.WANTING


#: Of a number of 32 bits.
_DIGITS = 10


def job_id_of(pod: Pod) -> names.JobId | None:
    """The job that a pod names because it was bound by it."""
    text = pod.metadata.labels.get(names.LABEL_JOB_ID, "") if pod.bound else ""
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else 0
    return names.JobId(number) if number else None


def slurm_node_of(pod: Pod) -> str:
    """Slurm's name of the node that a bound pod is on."""
    return pod.metadata.annotations.get(names.ANNOTATION_SLURM_NODE, pod.spec.node_name)


def _add(counts: dict[Any, int], key: object, step: int) -> None:
    """What has come to nothing is not kept."""
    counts[key] = counts.get(key, 0) + step
    if not counts[key]:
        del counts[key]


#: They are on nodes that their placeholder gave them.
PLACED = (PodState.BOUND, PodState.LEAVING)
#: So many jobs of a workload are remembered, beside those that its members are on.
MOST_JOBS = 64
#: They want nothing any more.
ENDED = (PodState.DONE, PodState.OVER)


_STATES: Final = tuple(PodState)


@dataclasses.dataclass(slots=True)
class JobMembers:
    """What is known of the members of a workload that were bound by one job; those that have gone count, too.

    `seats` says how many bound members there are on each of Slurm's nodes. `lost`: we have seen a member fail, or go
    before it was done; `losses` counts those that were bound.
    """

    placed: int = 0
    ever: int = 0
    losses: int = 0
    lost: bool = False
    seats: dict[str, int] = dataclasses.field(default_factory=dict)


#: Of a workload that has had no job; there are tens of thousands.
_NO_JOBS: Final[dict[names.JobId, JobMembers]] = {}
_NO_MEMBERS: Final = JobMembers()


class WorkloadPods:
    """All pods of one workload as last heard, sorted by how they stand. Changed by the census only, under its lock."""

    __slots__ = ("_by", "_jobs", "joined", "root")

    def __init__(self, root: Root) -> None:
        self.root = root
        #: Without empty ones.
        self._by: dict[PodState, dict[str, Pod]] = {}
        #: Those that members were bound by. Replaced rather than changed.
        self._jobs = _NO_JOBS
        #: When the last one that wants a node came.
        self.joined = float("-inf")

    def put(self, pod: Pod, now: float, *, disowned: bool = False) -> None:
        """A member came or changed. Others read meanwhile: they may find it twice, but never nowhere."""
        before, stands = self.standing(pod.uid), PodState.STRANGE if disowned else standing(pod)
        old = self._by[before][pod.uid] if before is not None else None
        self._file(stands, pod)
        was_on = job_id_of(old) if old is not None else None
        job_id = job_id_of(pod) if stands is not PodState.STRANGE else None
        if job_id is not None:
            self._remember(job_id).ever += job_id != was_on
            self._count(stands, pod, job_id, +1)
        if before is not None and old is not None:
            if before is not stands:
                self._take(before, pod.uid)
            self._rise(before, old, now=stands)
        if stands is PodState.WANTING and before is not PodState.WANTING:
            self.joined = now

    def remove(self, uid: str) -> None:
        """A member went."""
        stands = self.standing(uid)
        if stands is not None:
            self._rise(stands, self._take(stands, uid), now=None)

    def disown(self, uid: str) -> None:
        """The job that this member names never was the workload's: nothing follows from it, and no member is lost."""
        stands = self.standing(uid)
        assert stands is not None
        pod = self._by[stands][uid]
        job_id = job_id_of(pod)
        if stands is not PodState.STRANGE:
            self._file(PodState.STRANGE, pod)
            self._take(stands, uid)
            if job_id is not None and job_id in self._jobs:
                self._count(stands, pod, job_id, -1)
                self._jobs[job_id].ever -= 1
                if not self._jobs[job_id].ever:
                    self._jobs = {one: members for one, members in self._jobs.items() if one != job_id}

    def _file(self, stands: PodState, pod: Pod) -> None:
        self._by.setdefault(stands, {})[pod.uid] = pod

    def _take(self, stands: PodState, uid: str) -> Pod:
        pods = self._by[stands]
        pod = pods.pop(uid)
        if not pods:
            del self._by[stands]
        return pod

    def _remember(self, job_id: names.JobId) -> JobMembers:
        """Its job. Users can write any id: beyond what a group ever has, only jobs count that members name."""
        known = self._jobs.get(job_id)
        if known is None:
            known = JobMembers()
            full = len(self._jobs) >= MOST_JOBS
            kept = {one: members for one, members in self._jobs.items() if members.placed or not full}
            self._jobs = {**kept, job_id: known}
        return known

    def _rise(self, before: PodState, old: Pod, *, now: PodState | None) -> None:
        """Its state changed, or it went: a member that ran and is not known to have succeeded is lost."""
        job_id = job_id_of(old)
        if job_id is not None and before in PLACED:
            self._count(before, old, job_id, -1)
            if now not in (PodState.BOUND, PodState.DONE):
                known = self._jobs[job_id]
                known.lost = True
                known.losses += before is PodState.BOUND

    def _count(self, stands: PodState, pod: Pod, job_id: names.JobId, step: int) -> None:
        known = self._jobs[job_id]
        known.placed += step * (stands in PLACED)
        if stands is PodState.BOUND:
            _add(known.seats, slurm_node_of(pod), step)

    def __bool__(self) -> bool:
        return bool(self._by)

    def standing(self, uid: str) -> PodState | None:
        """How this member stands, None where it is no member."""
        return next((one for one in _STATES if uid in self._by.get(one, ())), None)

    @property
    def served(self) -> Collection[names.JobId]:
        """The jobs that members were bound by, those of members included that have gone."""
        return self._jobs.keys()

    @property
    def named(self) -> frozenset[names.JobId]:
        """The jobs that members with a node are on."""
        return frozenset(job_id for job_id, known in self._jobs.items() if known.placed)

    def on(self, job_id: names.JobId) -> int:
        """How many members with a node are on this job."""
        return self.of_job(job_id).placed

    def of_job(self, job_id: names.JobId) -> JobMembers:
        """What is known of the members of this job."""
        return self._jobs.get(job_id, _NO_MEMBERS)

    def nodes(self, job_id: names.JobId) -> tuple[str, ...]:
        """Slurm's names of the nodes that bound members of this job are on."""
        return tuple(self.of_job(job_id).seats)

    def count(self, *stands: PodState) -> int:
        """How many stand like this; costs the same for any number of members."""
        found = 0
        for one in stands:
            found += len(self._by.get(one, ()))
        return found

    def pods(self, *stands: PodState) -> tuple[Pod, ...]:
        """Those that stand like this; copied, because the crew goes on changing."""
        if len(stands) == 1:
            return tuple(self._by.get(stands[0], {}).values())
        return tuple(pod for one in stands for pod in tuple(self._by.get(one, {}).values()))

    def first(self, *stands: PodState) -> Pod | None:
        """Any of those that stand like this."""
        return next((pod for one in stands for pod in tuple(self._by.get(one, {}).values())[:1]), None)

    @property
    def any(self) -> Pod | None:
        """Any member, rather one that lives."""
        return self.first(*PodState)


class PickedPods:
    """Members of a crew in the same state, for gathering: read one by one only when they are needed."""

    def __init__(self, members: WorkloadPods, *stands: PodState) -> None:
        self._crew, self._stands = members, stands

    def __len__(self) -> int:
        return self._crew.count(*self._stands)

    def any(self) -> Pod:
        """One of them; LookupError when there is none."""
        found = self._crew.first(*self._stands)
        if found is None:
            raise LookupError(f"no member of {self._crew.root} is {self._stands}")
        return found

    def all(self) -> Sequence[Pod]:
        """Every one of them."""
        return self._crew.pods(*self._stands)


class AnyPod(PickedPods):
    """Any one of them, for questions whose answer is the same for all: the cost does not grow with their number."""

    def __len__(self) -> int:
        return min(1, super().__len__())

    def all(self) -> Sequence[Pod]:
        """That one."""
        return (self.any(),)
