"""The jobs that bound pods name, where they are not known: read, believed, or found to be somebody else's now.

A pod may have been bound as part of another workload: by another configuration, or before its controller said more.
Then it belongs to that one. And after a crash slurmctld may have given the id to another job: a stranger's, or ours for
other pods. Then the pod's own job is gone.
"""

from slurm_bridge.model import kinds, names
from slurm_bridge.model.job import JobState
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.placeholder import Certainty, Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Root
from slurm_bridge.scheduler import records
from slurm_bridge.scheduler.census import Census
from slurm_bridge.scheduler.members import Crew, Standing, job_id_of, slurm_node_of
from slurm_bridge.scheduler.queue import AT_ONCE, WOKEN, Filed
from slurm_bridge.scheduler.tools import Tools


class Finder:
    """The step LOOK."""

    def __init__(self, tools: Tools, census: Census) -> None:
        self._tools, self._census = tools, census
        #: By workload: its job, whose id is another's now. The table has one entry for an id, and that is the other's.
        self._robbed: dict[WorkloadKey, Placeholder] = {}

    def forget(self, uid: WorkloadKey) -> None:
        """The workload is over."""
        self._robbed.pop(uid, None)

    def robbed(self, crew: Crew) -> Placeholder | None:
        """The job of bound pods whose id is another's now."""
        found = self._robbed.get(crew.root.key)
        return found if found is not None and found.job_id in crew.named else None

    def may_be_by(self, pod: Pod, job: Placeholder) -> bool:
        """That this pod, which names this job, was bound by it."""
        return may_be_by(pod, job, self._census, counted=self._tools.limits.ids is None)

    def look(self, crew: Crew) -> Filed:
        """Read the placeholders that bound pods name; that Slurm does not know one is worth remembering too."""
        for job_id in crew.named:
            known = self._tools.table.get(job_id)
            if known is None or known.owner.key != crew.root.key or known.certainty is not Certainty.SEEN:
                self._look(crew, job_id)
        return AT_ONCE if crew.named else WOKEN

    def _look(self, crew: Crew, job_id: names.JobId) -> None:
        owner = records.owner_of(crew.root, self._tools.config.rules.cluster_id)
        found = self._tools.mirror.look_whose(job_id, owner)
        if found is not None and found.owner.same_workload(owner):
            return
        pods = [pod for pod in crew.pods(*Standing) if job_id_of(pod) == job_id]
        if found is not None and all(self.may_be_by(pod, found) for pod in pods):
            for pod in pods:
                self._census.move(pod.uid, root_of(found.owner))
            self._tools.table.put(found)
        else:
            self._gone(job_id, owner)

    def _gone(self, job_id: names.JobId, owner: Owner) -> None:
        known = self._tools.table.get(job_id)
        ours = known is None or known.owner.same_workload(owner)
        gone = Placeholder(
            job_id=job_id,
            owner=owner,
            state=JobState(frozenset()),
            certainty=Certainty.GONE,
            since=self._tools.clock.now(),
            started=True,
            seen=ours and known is not None and known.seen,
        )
        if ours:
            self._tools.table.put(gone, tell=False)
        else:
            before = self._robbed.get(owner.key)
            if before is None or before.job_id != job_id:
                self._robbed[owner.key] = gone


def may_be_by(pod: Pod, job: Placeholder, census: Census, *, counted: bool) -> bool:
    """That this pod, which names this job, was bound by it. An id that Slurm has `counted` alone is no evidence."""
    owner, view = job.owner, job.view
    if owner.namespace != pod.metadata.namespace or (owner.kind == kinds.PODS.kind and owner.uid != pod.uid):
        return False
    if counted and owner.kind != kinds.PODS.kind and owner.name not in census.handles(pod):
        return False
    known = view is not None and view.het_job_id is None and bool(view.nodes)
    return job.started and (not known or view is None or slurm_node_of(pod) in view.nodes)


def root_of(owner: Owner) -> Root:
    """The workload that an owner record speaks of."""
    return Root(kind=owner.kind, namespace=owner.namespace, name=owner.name, uid=owner.uid)
