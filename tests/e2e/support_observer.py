"""An observer beside the daemon watches both servers all the time, and writes down whatever must never be.

    I1  a pod or a group of pods has more than one living placeholder at once
    I2  a pod is bound to a node that its job was not allocated, or by a job that is not its own
    I3  more is bound to a node than the node has, or than the job got there
    I7  a pod that no user deleted goes although its job lives, unless it was evicted for one of ours that waits

Reads fail while servers are being killed; then nothing is concluded.
"""

import collections
import contextlib
import dataclasses
import http.client
import threading
from collections.abc import Iterator, Sequence

from tests.e2e import support_evicted, support_servers, support_slots, support_world
from tests.e2e.support_servers import Json, SlurmJob

#: A full list of hundreds of jobs costs slurmctld a third of a second: often enough to see every job that ever lived
#: (ended ones stay in the list for half a minute), seldom enough not to be the load.
PERIOD = 1.0


@dataclasses.dataclass(kw_only=True)
class Seen:
    """What was seen so far. `wrong` is empty in the end."""

    wrong: set[str] = dataclasses.field(default_factory=set)
    jobs: dict[int, SlurmJob] = dataclasses.field(default_factory=dict)
    pods: dict[str, Json] = dataclasses.field(default_factory=dict)
    gone: dict[str, Json] = dataclasses.field(default_factory=dict)
    looks: int = 0
    misses: int = 0


class Observer:
    """Looks at one world from a thread of its own until it is told to end."""

    def __init__(self, world: support_world.World) -> None:
        self._world = world
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="observer")
        self.seen = Seen()

    def _run(self) -> None:
        while not self._stop.wait(PERIOD):
            self.look()

    def look(self) -> None:
        """Once: pods before jobs, so that a job that a pod speaks of is in the list."""
        try:
            pods = self._world.pods()
            jobs = self._world.slurm.parts_of(self._world.daemon.cluster_id)
        except (OSError, ValueError, http.client.HTTPException, support_servers.Refused):
            self.seen.misses += 1
            return
        judge(self.seen, pods, jobs)
        self.seen.looks += 1

    def expect(self, gone: Json) -> None:
        """This pod goes because a user wants it to, which is no mistake of the daemon."""
        self.seen.gone[gone["metadata"]["uid"]] = gone

    def start(self) -> None:
        self._thread.start()

    def end(self) -> Seen:
        """One last look at the end of everything."""
        self._stop.set()
        self._thread.join()
        self.look()
        return self.seen


def judge(seen: Seen, pods: Sequence[Json], jobs: Sequence[SlurmJob]) -> None:
    """Compare one look with what was seen before."""
    known = {one.job_id: one for one in jobs}
    seen.wrong.update(_twins(jobs))
    seen.wrong.update(f"I2: {what}" for what in support_slots.misplaced(pods, known))
    seen.wrong.update(f"I3: {what}" for what in support_slots.overfull(pods, known))
    seen.wrong.update(_crowded(pods))
    seen.wrong.update(_lost(seen, pods, jobs))
    seen.jobs.update({one.job_id: one for one in jobs})
    seen.pods.update({one["metadata"]["uid"]: one for one in pods})


def _twins(jobs: Sequence[SlurmJob]) -> Iterator[str]:
    alive: dict[str, set[int]] = collections.defaultdict(set)
    for one in jobs:
        if one.owner and one.alive:
            alive[str(one.owner["uid"])].add(one.part_of)
    for uid, wholes in alive.items():
        if len(wholes) > 1:
            twins = [(one.job_id, sorted(one.states)) for one in jobs if one.owner and one.owner["uid"] == uid]
            yield f"I1: {uid} has {len(wholes)} living jobs: {twins}"


#: Of every machine of the local cluster.
CPUS = 64


def _crowded(pods: Sequence[Json]) -> Iterator[str]:
    busy = [one for one in pods if support_world.is_bound(one) and not support_world.is_over(one)]
    for node, count in collections.Counter(one["spec"]["nodeName"] for one in busy).items():
        if count > CPUS:
            yield f"I3: {count} pods of one CPU on {node}"


def _lost(seen: Seen, pods: Sequence[Json], jobs: Sequence[SlurmJob]) -> Iterator[str]:
    """Pods that went since the last look; while their job lives they were deleted without a reason."""
    now = {one["metadata"]["uid"]: one for one in pods}
    stay = {uid for uid, one in now.items() if "deletionTimestamp" not in one["metadata"]}
    alive = {str(one.owner["uid"]): one.job_id for one in jobs if one.owner and one.alive}
    for uid, pod in seen.pods.items():
        if uid in stay or uid in seen.gone:
            continue
        seen.gone[uid] = pod
        job_id = alive.get(uid) or next(iter(support_slots.bound_by([pod]).keys() & alive.values()), None)
        if job_id and not _evicted(now.get(uid, pod), pods, next(one for one in jobs if one.job_id == job_id)):
            yield f"I7: {support_world.told(pod)} was deleted, and its job {job_id} lives"


def _evicted(pod: Json, pods: Sequence[Json], job: SlurmJob) -> bool:
    """By the API server's word, and for one that waits and says that this workload goes for it."""
    group = {support_slots.where(one) for one in support_slots.bound_by(pods).get(job.job_id, ())}
    waiting = [one for one in pods if not support_world.is_bound(one)]
    return support_evicted.properly(pod, str(job.owner["uid"]), group, waiting)


@contextlib.contextmanager
def observing(world: support_world.World) -> Iterator[Observer]:
    """While this lasts, everything is looked at."""
    observer = Observer(world)
    observer.start()
    try:
        yield observer
    finally:
        observer.end()
