"""Somebody who is not the daemon, looks into both worlds after every call, and says at once what promise was broken.

    I1  at most one living job for each incarnation of a pod
    I2  a pod is bound only to a node that its running job holds
    I3  a pod gets no more than its job holds there, and nobody puts more on a node than the node has
    I4  no job of ours outlives its pod for long
    I5  no job, pod or node that is not ours (a gated pod is not ours yet) is changed
    I6  once nothing goes wrong any more, every living pod gets its node
    I7  no pod is deleted while its job lives, or before it ever had one

What is seen while a daemon's call returns is that daemon's deed; everything else is the world's.
"""

from collections.abc import Iterator, Mapping

from slurm_bridge.model import marks, names
from slurm_bridge.sim.kube.resources import NODES, PODS
from slurm_bridge.sim.kube.store import Event
from slurm_bridge.sim.kube.world import PocketKube
from slurm_bridge.sim.slurm import state
from slurm_bridge.sim.slurm.pocket import PocketSlurm
from tests.simulation import seen

WORLD = ""
CLUSTER_ID = "sim"

#: A daemon acts on what it read a moment ago: so old may what it acts on be.
STALE = 10.0
#: So long may a watch be silent without anybody noticing.
DEAF = 45.0
#: Where nothing but care keeps two jobs of one pod apart (no chosen ids, or a slurmctld that forgot what it had
#: acknowledged), there may be two for so long: until the next sweep of a daemon, which may have to rise first.
MENDING = 300.0


class Broken(BaseException):
    """A promise was broken. No daemon may catch this: it would take the verdict for trouble of its own."""


class Observer:
    """Looks; raises Broken."""

    def __init__(
        self, kube: PocketKube, slurm: PocketSlurm, slurm_names: Mapping[str, str], *, fenced: bool = True
    ) -> None:
        self._kube, self._slurm = kube, slurm
        self._slurm_names = slurm_names
        self._version = 0
        self._last: list[state.Job] = []
        self._owners: dict[str, marks.Owner | None] = {}
        self._foreign: dict[int, state.Job] = {}
        self._runs: dict[tuple[int, str], seen.Run] = {}
        self._nodes_left: dict[str, float] = {}
        self._had_job: set[str] = set()
        self._ended: set[str] = set()
        self._twice_since: dict[str, float] = {}
        self._lenient_until = 0.0 if fenced else float("inf")
        self.pods: dict[str, seen.Pod] = {}
        self.looks = 0

    # -- looking -----------------------------------------------------------------------------------------------------

    def look(self, by: str = WORLD) -> None:
        """See what has changed; `by` is the daemon that did it."""
        self.looks += 1
        jobs = list(self._slurm.world.jobs.values())
        if jobs != self._last or self._twice_since:
            self._last = jobs
            self._look_at_jobs(jobs, by)
        store = self._kube.store
        if store.version != self._version:
            since, self._version = self._version, store.version
            for event in store.events(PODS, since) if since else self._beginning():
                self._look_at_pod(event, by)
            for event in store.events(NODES, since) if since else ():
                self._look_at_node(event, by)

    def _look_at_node(self, event: Event, by: str) -> None:
        if by:
            raise Broken(f"I5: {by} changed node {event.new.name}")
        if event.gone:
            self._nodes_left[event.new.name] = self._now

    def forgetful(self) -> None:
        """slurmctld has lost the last seconds."""
        self.look()
        self._lenient_until = max(self._lenient_until, self._now + MENDING)

    def skip(self) -> None:
        """What is no longer known of Kubernetes' history was seen already."""
        self._version = self._kube.store.version

    def _beginning(self) -> list[Event]:
        return [Event(version=item.version, new=item, old=None) for item in self._kube.store.all(PODS)]

    @property
    def _now(self) -> float:
        return self._kube.clock.now()

    # -- jobs --------------------------------------------------------------------------------------------------------

    def owner(self, job: state.Job) -> marks.Owner | None:
        """Whose placeholder it is, None when it is not one of ours."""
        text = job.ask.text("admin_comment")
        if text not in self._owners:
            found = marks.read(text)
            self._owners[text] = found if found is not None and found.cluster == CLUSTER_ID else None
        return self._owners[text]

    def living(self, uid: str) -> list[state.Job]:
        """The jobs of a pod that are not over."""
        found = [(job, self.owner(job)) for job in self._slurm.world.jobs.values() if not job.over]
        return [job for job, owner in found if owner is not None and owner.uid == uid]

    def _look_at_jobs(self, jobs: list[state.Job], by: str) -> None:
        foreign = {job.job_id: job for job in jobs if self.owner(job) is None}
        self._check_foreign(foreign, by)
        self._foreign = foreign
        alive: dict[str, list[int]] = {}
        for job in jobs:
            owner = self.owner(job)
            if owner is not None:
                self._had_job.add(owner.uid)
                self._check_gate(owner.uid, job, by)
                if not job.over:
                    alive.setdefault(owner.uid, []).append(job.job_id)
        self._ended |= self._had_job - alive.keys()
        self._follow_runs(jobs)
        self._check_twice({uid: ids for uid, ids in alive.items() if len(ids) > 1}, by)

    def _check_twice(self, twice: Mapping[str, list[int]], by: str) -> None:
        self._twice_since = {uid: self._twice_since.get(uid, self._now) for uid in twice}
        for uid, ids in twice.items():
            if self._now >= self._lenient_until or self._now - self._twice_since[uid] > MENDING:
                raise Broken(f"I1: {ids} are living jobs of the same pod {uid} (after {by or 'the world'})")

    def _check_gate(self, uid: str, job: state.Job, by: str) -> None:
        pod = self.pods.get(uid)
        if pod is not None and pod.gated and not job.over and by:
            raise Broken(f"I5: {by} has job {job.job_id} for {pod.key}, which somebody holds back")

    def _check_foreign(self, now: Mapping[int, state.Job], by: str) -> None:
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

    def _follow_runs(self, jobs: list[state.Job]) -> None:
        running = {}
        for job in jobs:
            owner = self.owner(job)
            if owner is not None and job.state == state.RUNNING and not job.configuring and job.grant is not None:
                shares = {self._slurm_names.get(share.node, share.node): share for share in job.grant.shares}
                running[job.job_id, job.sluid] = seen.Run(job_id=job.job_id, uid=owner.uid, shares=shares)
        for key, run in self._runs.items():
            if key not in running and run.left is None:
                run.left = self._now
        self._runs |= running

    # -- pods --------------------------------------------------------------------------------------------------------

    def _look_at_pod(self, event: Event, by: str) -> None:
        manifest = event.new.manifest()
        pod = self.pods.get(event.new.uid)
        if pod is None:
            pod = self.pods[event.new.uid] = seen.pod(manifest)
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
            self._check_deletion(pod, by)
        pod.leaving, pod.gone = leaving, event.gone
        pod.phase = manifest["status"].get("phase", "Pending")
        pod.parked = names.ANNOTATION_PARKED in (manifest["metadata"].get("annotations") or {})
        pod.gated = bool(manifest["spec"].get("schedulingGates"))

    def _check_binding(self, pod: seen.Pod, by: str) -> None:
        runs = [run for run in self._runs.values() if run.uid == pod.uid and pod.node in run.shares]
        fresh = [run for run in runs if run.left is None or self._now - run.left <= STALE]
        if not fresh:
            raise Broken(f"I2: {by} bound {pod.key} to {pod.node}, which no running job of it holds: {runs}")
        living = self.living(pod.uid)
        if len(living) > 1 and self._now >= self._lenient_until:
            raise Broken(f"I1: {by} bound {pod.key} while {[job.job_id for job in living]} live")
        share = fresh[-1].shares[pod.node]
        if pod.cpu > share.cpus or pod.memory_mib > share.memory_mib:
            raise Broken(f"I3: {pod.key} asks for {pod.cpu} cpus and {pod.memory_mib} MiB, its job holds {share}")
        self._check_node(pod.node, by)

    def _check_node(self, name: str, by: str) -> None:
        node = self._kube.store.get(NODES, "", name)
        if node is None:
            if self._now - self._nodes_left.get(name, 0.0) > DEAF:
                raise Broken(f"I2: {by} bound a pod to node {name}, which is not there")
            return
        room = node.manifest()["status"]["allocatable"]
        there = [pod for pod in self.pods.values() if pod.node == name and not (pod.over or pod.strange)]
        cpu, memory = sum(pod.cpu for pod in there), sum(pod.memory_mib for pod in there)
        if cpu > seen.quantity(room["cpu"]) or memory > seen.quantity(room["memory"]) / 2**20:
            raise Broken(f"I3: {by} put {cpu} cpus, {memory} MiB on {name} ({room}): {[pod.key for pod in there]}")

    def _check_deletion(self, pod: seen.Pod, by: str) -> None:
        if not pod.node:
            raise Broken(f"I7: {by} deleted {pod.key}, which had no node yet")
        if pod.uid not in self._ended and not self._ended_by_name(pod) and not self._moved(pod):
            raise Broken(f"I7: {by} deleted {pod.key}, whose job never ended: {self.living(pod.uid)}")

    def _ended_by_name(self, pod: seen.Pod) -> bool:
        """The very job that the pod names is over, or gone; there may be another one by mistake."""
        named = self._slurm.world.jobs.get(pod.job_id)
        owner = self.owner(named) if named is not None else None
        return named is None or named.over or owner is None or owner.uid != pod.uid

    def _moved(self, pod: seen.Pod) -> bool:
        """The job runs elsewhere: a slurmctld that forgot where it ran has started it anew."""
        living = self.living(pod.uid)
        grants = [job.grant for job in living if job.running and job.grant is not None]
        held = {self._slurm_names.get(node, node) for grant in grants for node in grant.nodes}
        return len(grants) == len(living) and pod.node not in held

    # -- at the end --------------------------------------------------------------------------------------------------

    def complaints(self) -> list[str]:
        """What I1, I4 and I6 would say if this were the end."""
        self.look()
        doubled = [f"I1: pod {uid} still has several living jobs" for uid in self._twice_since]
        return [*doubled, *self._leaked(), *self._stuck()]

    def _leaked(self) -> Iterator[str]:
        for job in self._slurm.world.jobs.values():
            owner = self.owner(job)
            if owner is not None and not job.over:
                pod = self.pods.get(owner.uid)
                if pod is None or pod.over or pod.strange:
                    yield f"I4: job {job.job_id} ({job.state}) outlives its pod {owner.namespace}/{owner.name}"

    def _stuck(self) -> Iterator[str]:
        for pod in self.pods.values():
            if not pod.ours or pod.over or pod.gated:
                continue
            if not pod.node:
                yield f"I6: {pod.key} {'is parked' if pod.parked else 'has no node'}: {self.living(pod.uid)}"
            elif not (pod.leaving or pod.strange or self.living(pod.uid)):
                yield f"I6: {pod.key} sits on {pod.node} without a job"
