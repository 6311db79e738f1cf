"""Which daemon updates a pending job, and why: scores move with every pod that comes or goes, which must cost nothing.

    I8  an update takes a job to a later attempt of the same course; or something other than a pod's place changed:
        a node, a partition, a reservation, the workload itself, the configuration, the daemon, or an answer was lost
    I9  of one course the attempt in a job's record is never an earlier one than before, while the hooks are the same
        and note the same of it

Where no fence keeps an old leader from writing, both have their own idea of one job (candidates are drawn, and a failed
node is remembered by the daemon that saw it): what the other has overwritten may be written again.

What is held against a daemon is more generous than what it does: a reason counts for all jobs, and stays one.
"""

import collections
import re
from collections.abc import Mapping
from typing import Any

from slurm_bridge.hooks.attempts import PlanState
from slurm_bridge.model import marks
from slurm_bridge.sim import wire
from slurm_bridge.sim.kube import resources
from slurm_bridge.sim.kube.followers import Tail
from slurm_bridge.sim.kube.store import Event, ObjectStore
from slurm_bridge.sim.slurm import state
from slurm_bridge.sim.slurm.pocket import PocketSlurm
from tests.simulation.broken_promise import Broken
from tests.simulation.observer import Observer

_JOB = re.compile(r"/slurm/v[0-9.]+/job/([0-9]+)")
_KEPT = re.compile(r"/slurm/v[0-9.]+/reservation(/.*)?")

#: What a denied node costs the workloads that keep away from it: they hear of it, and later it is forgotten.
DENIED = 2

#: So many updates of one job need no reason that this observer can see.
FREE = 2

OK = 200


class Updates:
    """Counts; raises Broken."""

    def __init__(self, store: ObjectStore, slurm: PocketSlurm, observer: Observer) -> None:
        self._slurm, self._observer = slurm, observer
        self._nodes, self._pods = Tail(store, resources.NODES), Tail(store, resources.PODS)
        self._machines: object = None
        self._daemons: set[str] = set()
        self._newest = ""
        #: An old leader has gone on beside a new one: each has its own idea of how far a job has come.
        self._mixed = False
        #: The daemon that has written a job last.
        self._writers: dict[tuple[int, str], str] = {}
        #: What may have called for updates so far: of all jobs, and of those of one workload; and how much of it there
        #: was when a job was first seen.
        self.reasons = 0
        self._words: collections.Counter[str] = collections.Counter()
        self._first: dict[tuple[int, str], int] = {}
        #: The jobs whose records were written by the hooks of now.
        self._same: set[int] = set()
        #: Updates by job: those that went on to a later attempt, and all others.
        self.turns: collections.Counter[int] = collections.Counter()
        self.others: collections.Counter[int] = collections.Counter()

    def happened(self) -> None:
        """Something has happened that may call for updates."""
        self.reasons += 1

    def configured(self) -> None:
        """Other hooks: what they want has nothing to do with what those before wanted."""
        self.reasons += 1
        self._same.clear()

    def around(self, handler: wire.Handler, who: str) -> wire.Handler:
        """Slurm as this daemon reaches it."""

        def passed(request: wire.Request) -> wire.Response:
            self._learn(who)
            found = _JOB.fullmatch(request.path)
            job = self._slurm.world.jobs.get(int(found[1])) if found else None
            try:
                response = handler(request)
            except BaseException:
                self.reasons += 1
                raise
            if _KEPT.fullmatch(request.path) and request.method != "GET":
                # Others keep away from the nodes, or do so no more.
                self.reasons += 1
            if request.path.endswith("/job/submit"):
                self._learn(who)
            elif job is not None and request.method == "POST" and response.status == OK and job.state == state.PENDING:
                self._updated(job, who)
            elif job is not None and request.method == "DELETE":
                # It had nodes, and no pod came: they were denied.
                came = any(pod.job_id == job.job_id for pod in self._observer.pods.values())
                self.reasons += DENIED if job.grant is not None and not came else 0
            return response

        return passed

    def _updated(self, job: state.SlurmJob, who: str) -> None:
        before, after = self._observer.owner(job), self._now(job)
        if before is None or after is None:
            return
        overwritten = self._is_overwritten(job, who)
        if before.reserved != after.reserved:
            return
        old, new = PlanState.of_running(before.plan), PlanState.of_running(after.plan)
        if old.version == new.version and new.attempt > old.attempt:
            self._same.add(job.job_id)
            self.turns[job.job_id] += 1
            return
        change = f"{before.request} -> {after.request}, {before.plan} -> {after.plan}"
        known = job.job_id in self._same
        self._same.add(job.job_id)
        same = (old.version, old.memo) == (new.version, new.memo)
        if known and same and new.attempt < old.attempt and not self._mixed:
            raise Broken(f"I9: {who} took job {job.job_id} back: {change}")
        if overwritten:
            return
        self.others[job.job_id] += 1
        most = self._reasons(before) - self._first.get((job.job_id, job.sluid), 0) + FREE
        if self.others[job.job_id] > most:
            times = f"{self.others[job.job_id]} times (beside {self.turns[job.job_id]} turns)"
            raise Broken(f"I8: {who} has updated job {job.job_id} {times} for at most {most} reasons: {change}")

    def _is_overwritten(self, job: state.SlurmJob, who: str) -> bool:
        """Beside another leader: it does not say any more what this one wrote."""
        key = job.job_id, job.sluid
        before, self._writers[key] = self._writers.get(key, who), who
        return self._mixed and before != who

    def _now(self, job: state.SlurmJob) -> marks.Owner | None:
        there = self._slurm.world.jobs.get(job.job_id)
        return self._observer.owner(there) if there is not None and not there.over else None

    def _reasons(self, owner: marks.Owner) -> int:
        return self.reasons + self._words[owner.uid]

    def _learn(self, who: str) -> None:
        if who not in self._daemons:
            self._daemons.add(who)
            self._newest = who
            self.reasons += 1
        self._mixed = self._mixed or who != self._newest
        world = self._slurm.world
        machines = (frozenset(world.nodes), tuple((one.name, one.nodes) for one in world.partitions.values()))
        if machines != self._machines:
            self._machines = machines
            self.reasons += 1
        self.reasons += sum(_place(event.old) != _place(event.new, gone=event.gone) for event in self._nodes.news())
        for event in self._pods.news():
            self._hear(event)
        for job in world.jobs.values():
            owner = self._observer.owner(job)
            if owner is not None and (job.job_id, job.sluid) not in self._first:
                self._first[job.job_id, job.sluid] = self._reasons(owner)
                self._same.add(job.job_id)

    def _hear(self, event: Event) -> None:
        """A kubelet's refusal is a node that is avoided; words of users are about their own workload."""
        new, old = event.new.manifest(), event.old.manifest() if event.old is not None else None
        if new["status"].get("reason") and (old is None or old["status"] != new["status"]):
            self.reasons += DENIED
        pod = self._observer.pods.get(event.new.uid)
        if pod is not None and (old is None or event.gone or _said(old) != _said(new)):
            self._words[pod.group] += 1


def _place(item: Any, *, gone: bool = False) -> object:
    """What rules about placement look at."""
    if item is None or gone:
        return None
    manifest: Mapping[str, Any] = item.manifest()
    metadata, status = manifest["metadata"], manifest.get("status") or {}
    ready = [one["status"] for one in status.get("conditions", ()) if one["type"] == "Ready"]
    return metadata["uid"], metadata.get("labels"), manifest["spec"], status.get("allocatable"), ready


def _said(manifest: Mapping[str, Any]) -> object:
    metadata = manifest["metadata"]
    return metadata.get("annotations"), metadata.get("labels"), metadata.get("deletionTimestamp")
