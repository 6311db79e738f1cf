"""An observer beside the daemon: looks into both worlds after every call, and says at once which promise is broken.

    I1  at most one living job for each incarnation of a workload
    I2  a pod is bound only to a node that the running job of its workload holds, by a job of its own namespace
    I3  all pods that a job has put on a node get no more than it holds there, no node gets more than it has,
        and no pod of a gang is bound while fewer are there than the gang needs
    I4  no job of ours outlives its pods for long, or waits for a gang that may not run or is not complete
    I5  no job, pod, node or group that is not ours (a gated pod is not ours yet) is changed
    I6  once nothing goes wrong any more, every living pod gets its node: all of a gang, or none
    I7  no pod is deleted while its job lives, or before it ever had one; but with a gang that is to start anew when one
        of its pods is lost, or that could not be bound as a whole in time, or by an eviction (I10: `eviction_rules`)

What is seen while a daemon's call returns is that daemon's deed; everything else is the world's.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from slurm_bridge.model import marks, names
from slurm_bridge.sim.kube.resources import NODES, PODS
from slurm_bridge.sim.kube.store import Event
from slurm_bridge.sim.kube.world import PocketKube
from slurm_bridge.sim.slurm import state
from slurm_bridge.sim.slurm.pocket import PocketSlurm
from tests.simulation import eviction_rules, groups, job_runs, observed, racks
from tests.simulation.broken_promise import Broken

__all__ = ["CLUSTER_ID", "Broken", "Observer"]

WORLD = ""
CLUSTER_ID = "sim"

#: A daemon acts on what it read a moment ago: so old may what it acts on be.
STALE = 10.0
#: Where nothing but care keeps two jobs of one workload apart (no chosen ids, or a slurmctld that forgot what it had
#: acknowledged), there may be two for so long: until the next sweep of a daemon, which may have to rise first.
MENDING = 300.0


class Observer:
    """Looks; raises Broken."""

    def __init__(
        self, kube: PocketKube, slurm: PocketSlurm, slurm_names: Mapping[str, str], *, fenced: bool = True
    ) -> None:
        self._kube, self._slurm = kube, slurm
        self._slurm_names = slurm_names
        self._version = 0
        self._last: list[state.SlurmJob] = []
        self._owners: dict[str, marks.Owner | None] = {}
        self._foreign: dict[int, state.SlurmJob] = {}
        self._runs = job_runs.Runs(slurm_names)
        self._nodes_left: dict[str, float] = {}
        self._had_job: set[tuple[str, int]] = set()
        self._ended: set[tuple[str, int]] = set()
        self._idle: set[str] = set()
        self._twice_since: dict[str, float] = {}
        self._lenient_until = 0.0 if fenced else float("inf")
        #: slurmctld has lost something at some time.
        self.slurm_forgot = False
        self.groups = groups.Groups(kube.store)
        self.evicted = eviction_rules.Evicted(self.groups, kube.clock.now)
        self.racks = racks.Racks()
        self.pods: dict[str, observed.Pod] = {}
        self.looks = 0

    # -- looking -----------------------------------------------------------------------------------------------------

    def look(self, by: str = WORLD) -> None:
        """See what has changed; `by` is the daemon that did it."""
        self.looks += 1
        store = self._kube.store
        changed = store.version != self._version
        if changed:
            since, self._version = self._version, store.version
            self.groups.learn(by, self._now)
            for event in store.events(PODS, since) if since else self._beginning():
                self._look_at_pod(event, by)
            for event in store.events(NODES, since) if since else ():
                self._look_at_node(event, by)
        jobs = list(self._slurm.world.jobs.values())
        if jobs != self._last or self._twice_since:
            self._last = jobs
            self._look_at_jobs(jobs, by)

    def _look_at_node(self, event: Event, by: str) -> None:
        if by:
            raise Broken(f"I5: {by} changed node {event.new.name}")
        if event.gone:
            self._nodes_left[event.new.name] = self._now

    def forgetful(self) -> None:
        """slurmctld has lost the last seconds."""
        self.look()
        self.slurm_forgot = True
        self._lenient_until = max(self._lenient_until, self._now + MENDING)

    def skip(self) -> None:
        """What is no longer known of Kubernetes' history was seen already."""
        self.groups.learn(WORLD, self._now)
        self._version = self._kube.store.version

    def _beginning(self) -> list[Event]:
        return [Event(version=item.version, new=item, old=None) for item in self._kube.store.all(PODS)]

    @property
    def _now(self) -> float:
        return self._kube.clock.now()

    # -- jobs --------------------------------------------------------------------------------------------------------

    def owner(self, job: state.SlurmJob) -> marks.Owner | None:
        """Whose placeholder it is, None when it is not one of ours; a component is the leader's."""
        text = job.ask.text("admin_comment")
        leader = self._slurm.world.jobs.get(job.leader)
        if not text and leader is not None:
            text = leader.ask.text("admin_comment")
        if text not in self._owners:
            found = marks.read(text)
            self._owners[text] = found if found is not None and found.cluster == CLUSTER_ID else None
        return self._owners[text]

    def living(self, uid: str) -> list[state.SlurmJob]:
        """The jobs of a workload that are not over, all their components."""
        found = [(job, self.owner(job)) for job in self._slurm.world.jobs.values() if not job.over]
        return [job for job, owner in found if owner is not None and owner.uid == uid]

    def _look_at_jobs(self, jobs: list[state.SlurmJob], by: str) -> None:
        foreign = {job.job_id: job for job in jobs if self.owner(job) is None}
        self._check_foreign(foreign, by)
        self._foreign = foreign
        alive: dict[str, set[int]] = {}
        for job in jobs:
            owner = self.owner(job)
            if owner is not None:
                self._had_job.add((owner.uid, job_runs.family(job)))
                if not job.over:
                    self._check_right(owner.uid, job, by)
                    alive.setdefault(owner.uid, set()).add(job_runs.family(job))
        self._ended |= self._had_job - {(uid, job_id) for uid, ids in alive.items() for job_id in ids}
        self._idle |= {uid for uid, _ in self._had_job} - alive.keys()
        owned = ((owner.uid, job) for job in jobs if (owner := self.owner(job)) is not None)
        self._runs.follow(owned, self._now)
        self._check_twice({uid: sorted(ids) for uid, ids in alive.items() if len(ids) > 1}, by)

    def _check_twice(self, twice: Mapping[str, list[int]], by: str) -> None:
        self._twice_since = {uid: self._twice_since.get(uid, self._now) for uid in twice}
        for uid, ids in twice.items():
            if self._now >= self._lenient_until or self._now - self._twice_since[uid] > MENDING:
                raise Broken(f"I1: {ids} are living jobs of the same workload {uid} (after {by or 'the world'})")

    def _check_right(self, uid: str, job: state.SlurmJob, by: str) -> None:
        """A job of a pod is for a pod that is in no group, and not held back."""
        pod = self.pods.get(uid)
        if pod is None or not by:
            return
        if pod.gated:
            raise Broken(f"I5: {by} has job {job.job_id} for {pod.key}, which is held back")
        if pod.group != uid:
            raise Broken(f"I1: {by} has job {job.job_id} for {pod.key} alone, which is a member of {pod.group}")

    def _check_foreign(self, now: Mapping[int, state.SlurmJob], by: str) -> None:
        if not by:
            return
        for job_id, before in self._foreign.items():
            after = now.get(job_id)
            if after is None or (after.ask, after.user, after.held, after.over) != (
                before.ask,
                before.user,
                before.held,
                before.over,
            ):
                raise Broken(f"I5: {by} changed foreign job {job_id}: {before} -> {after}")

    # -- pods --------------------------------------------------------------------------------------------------------

    def _look_at_pod(self, event: Event, by: str) -> None:
        manifest = event.new.manifest()
        pod = self.pods.get(event.new.uid)
        if pod is None:
            pod = self.pods[event.new.uid] = observed.pod(manifest, born=self._now)
        self.groups.sort_in(pod)
        if by and (not pod.ours or pod.gated):
            raise Broken(f"I5: {by} changed foreign pod {pod.key}")
        node = manifest["spec"].get("nodeName", "")
        leaving = event.gone or "deletionTimestamp" in manifest["metadata"]
        if node and not pod.node:
            pod.node = node
            pod.job_id = int((manifest["metadata"].get("labels") or {}).get(names.LABEL_JOB_ID, "0"))
            pod.strange = pod.ours and not by
            if by:
                self._check_binding(pod, by)
        if leaving and not pod.leaving and by:
            self._check_deletion(pod, manifest, by)
        pod.leaving, pod.gone = leaving, event.gone
        pod.phase = manifest["status"].get("phase", "Pending")
        pod.parked = names.ANNOTATION_PARKED in (manifest["metadata"].get("annotations") or {})
        pod.gated = bool(manifest["spec"].get("schedulingGates"))
        if pod.left is None and (pod.leaving or pod.over):
            pod.left = self._now
        eviction_rules.learn(pod, manifest, self._now, by)

    def _check_binding(self, pod: observed.Pod, by: str) -> None:
        job = self._slurm.world.jobs.get(pod.job_id)
        owner = self.owner(job) if job is not None else None
        if owner is not None and owner.namespace != pod.key[0]:
            raise Broken(f"I2: {by} bound {pod.key} by job {pod.job_id}, which is for {owner.namespace}/{owner.name}")
        there = [run for run in self._runs.of(pod.group) if pod.node in run.shares]
        fresh = [run for run in there if run.left is None or self._now - run.left <= STALE]
        if not fresh:
            found = "; ".join(map(str, self._runs.of(pod.group)))
            raise Broken(f"I2: {by} bound {pod.key} to {pod.node}, which no running job of it holds: {found}")
        living = {job_runs.family(job) for job in self.living(pod.group)}
        if len(living) > 1 and self._now >= self._lenient_until:
            raise Broken(f"I1: {by} bound {pod.key} while {sorted(living)} live")
        pod.run = next((run for run in fresh if run.job_id == pod.job_id), fresh[0])
        self._check_share(pod, pod.run)
        self._check_beginning(pod, pod.run, by)
        self._check_node(pod.node, by)
        self.racks.check(pod, self.groups.members(pod.group), by)

    def _check_share(self, pod: observed.Pod, run: observed.Run) -> None:
        """What the job has put on this node is no more than it holds there."""
        there = [one for one in self.groups.members(pod.group) if one.on(run, pod.node)]
        if not observed.total(one.needs for one in there).within(run.shares[pod.node]):
            raise Broken(f"I3: {[one.key for one in there]} ask for more than {run} holds on {pod.node}")

    def _check_beginning(self, pod: observed.Pod, run: observed.Run, by: str) -> None:
        """The first pod that a job of a gang binds: all must be there that the gang needs."""
        first, run.begun = run.begun is None, self._now if run.begun is None else run.begun
        if first and pod.group != pod.uid and not self.groups.changed_since(pod, self._now - groups.DEAF):
            wanted = self.groups.rules(pod).minimum
            there = [
                one for one in self.groups.members(pod.group) if one.left is None or self._now - one.left <= groups.DEAF
            ]
            if len(there) < wanted:
                keys = [one.key for one in there]
                raise Broken(f"I3: {by} starts a gang of {wanted} although only {keys} are there")

    def _check_node(self, name: str, by: str) -> None:
        node = self._kube.store.get(NODES, "", name)
        if node is None:
            if self._now - self._nodes_left.get(name, 0.0) > groups.DEAF:
                raise Broken(f"I2: {by} bound a pod to node {name}, which is not there")
            return
        room = observed.amounts(node.manifest()["status"]["allocatable"])
        there = [pod for pod in self.pods.values() if pod.node == name and not (pod.over or pod.strange)]
        asked = observed.total(pod.needs for pod in there)
        if not asked.within(room):
            raise Broken(f"I3: {by} put {asked} on {name} ({room}): {[pod.key for pod in there]}")

    def _check_deletion(self, pod: observed.Pod, manifest: Mapping[str, Any], by: str) -> None:
        if not pod.node:
            raise Broken(f"I7: {by} deleted {pod.key}, which had no node yet")
        ended = self._job_ended(pod) or self._moved(pod) or self.groups.may_end(pod, self._now)
        every = {one.uid: one.manifest() for one in self._kube.store.all(PODS)} | {pod.uid: manifest}
        if not (ended or self.evicted.properly(pod, every, self.pods, by)):
            raise Broken(f"I7: {by} deleted {pod.key}, whose job never ended: {self.living(pod.group)}")

    def _job_ended(self, pod: observed.Pod) -> bool:
        """The job that the pod names (of a pod alone: any of its jobs) is over, or gone, or has never been its own."""
        if (pod.group, pod.job_id) in self._ended or pod.uid in self._idle:
            return True
        named = self._slurm.world.jobs.get(pod.job_id)
        owner = self.owner(named) if named is not None else None
        return named is None or named.over or owner is None or owner.uid != pod.group

    def _moved(self, pod: observed.Pod) -> bool:
        """The job runs elsewhere: a slurmctld that forgot where it ran has started it anew."""
        living = self.living(pod.group)
        grants = [job.grant for job in living if job.running and job.grant is not None]
        held = {self._slurm_names.get(node, node) for grant in grants for node in grant.nodes}
        return len(grants) == len(living) and pod.node not in held

    # -- at the end --------------------------------------------------------------------------------------------------

    def complaints(self) -> list[str]:
        """What I1, I4 and I6 would say if this were the end."""
        self.look()
        doubled = [f"I1: workload {uid} still has several living jobs" for uid in self._twice_since]
        return [*doubled, *self._leaked(), *self._stuck(), *self.evicted.left(self.pods)]

    def _leaked(self) -> Iterator[str]:
        for job in self._slurm.world.jobs.values():
            owner = self.owner(job)
            if owner is not None and not job.over:
                why = self.groups.needless(owner.uid)
                if why:
                    yield f"I4: job {job.job_id} ({job.state}) {why} {owner.kind} {owner.namespace}/{owner.name}"

    def _stuck(self) -> Iterator[str]:
        holds = eviction_rules.holds(
            (owner.uid, job) for job in self._slurm.world.jobs.values() if (owner := self.owner(job))
        )
        for pod in self.pods.values():
            if not pod.ours or pod.over or pod.gated:
                continue
            living = self.living(pod.group)
            if pod.node:
                if not (pod.leaving or pod.strange or living):
                    yield f"I6: {pod.key} sits on {pod.node} without a job"
            elif not (pod.leaving or self._excused(pod, living) or self.evicted.excuses(pod, self.pods, holds)):
                yield f"I6: {pod.key} of {pod.group} {'is parked' if pod.parked else 'has no node'}: {living}"

    def _excused(self, pod: observed.Pod, living: Sequence[state.SlurmJob]) -> bool:
        return self.groups.excused(pod, [run for run in self._runs.of(pod.group) if run.left is None], living)
