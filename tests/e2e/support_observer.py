"""Somebody who is not the daemon watches both servers all the time, and writes down whatever must never be.

    I1  a pod has more than one living placeholder at once
    I2  a pod is bound to a node that its job was not allocated
    I3  more is bound to a node than the node has
    I7  a pod that nobody deleted goes although its job lives

Reads fail while servers are being killed; then nothing is concluded.
"""

import collections
import contextlib
import dataclasses
import http.client
import threading
from collections.abc import Iterator, Mapping, Sequence

from slurm_bridge.model import names
from tests.e2e import support_servers, support_world
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
            jobs = self._world.slurm.jobs_of(self._world.daemon.cluster_id)
        except (OSError, ValueError, http.client.HTTPException, support_servers.Refused):
            self.seen.misses += 1
            return
        judge(self.seen, pods, jobs)
        self.seen.looks += 1

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
    seen.wrong.update(_twins(jobs))
    seen.wrong.update(_misplaced(pods, {one.job_id: one for one in jobs}))
    seen.wrong.update(_crowded(pods))
    seen.wrong.update(_lost(seen, pods, jobs))
    seen.jobs.update({one.job_id: one for one in jobs})
    seen.pods.update({one["metadata"]["uid"]: one for one in pods})


def _twins(jobs: Sequence[SlurmJob]) -> Iterator[str]:
    alive = collections.Counter(str(one.owner["uid"]) for one in jobs if one.alive)
    for uid, count in alive.items():
        if count > 1:
            twins = [(one.job_id, sorted(one.states)) for one in jobs if one.owner["uid"] == uid]
            yield f"I1: pod {uid} has {count} living jobs: {twins}"


def _misplaced(pods: Sequence[Json], jobs: Mapping[int, SlurmJob]) -> Iterator[str]:
    for one in filter(support_world.is_bound, pods):
        job = jobs.get(support_world.job_id(one))
        where = one["metadata"]["annotations"][names.ANNOTATION_SLURM_NODE]
        if job is None:
            continue  # slurmctld forgets ended jobs, and what it had not saved when it was killed
        if job.owner["uid"] != one["metadata"]["uid"]:
            yield f"I2: {one['metadata']['name']} is bound by job {job.job_id}, which is of {dict(job.owner)}"
        if (
            job.nodes and job.nodes != where
        ):  # one that slurmctld has forgotten and that is asked for again has none yet
            yield f"I2: {one['metadata']['name']} is bound to {where}, job {job.job_id} has {job.nodes!r}"


#: Of every machine of the local cluster.
CPUS = 64


def _crowded(pods: Sequence[Json]) -> Iterator[str]:
    busy = [one for one in pods if support_world.is_bound(one) and not support_world.is_over(one)]
    for node, count in collections.Counter(one["spec"]["nodeName"] for one in busy).items():
        if count > CPUS:
            yield f"I3: {count} pods of one CPU on {node}"


def _lost(seen: Seen, pods: Sequence[Json], jobs: Sequence[SlurmJob]) -> Iterator[str]:
    """Pods that went since the last look; with a living job of theirs somebody deleted them without a reason."""
    stay = {one["metadata"]["uid"] for one in pods if "deletionTimestamp" not in one["metadata"]}
    alive = {str(one.owner["uid"]): one for one in jobs if one.alive}
    for uid, pod in seen.pods.items():
        if uid in stay or uid in seen.gone:
            continue
        seen.gone[uid] = pod
        if uid in alive:
            yield f"I7: {support_world.told(pod)} was deleted, and its job {alive[uid].job_id} lives"


@contextlib.contextmanager
def observing(world: support_world.World) -> Iterator[Observer]:
    """While this lasts, everything is looked at."""
    observer = Observer(world)
    observer.start()
    try:
        yield observer
    finally:
        observer.end()
