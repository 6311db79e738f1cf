"""What a handover asks of both servers, and the state of both at one moment."""

from collections.abc import Sequence
from typing import Protocol

from slurm_bridge import ports
from slurm_bridge.model import kinds
from slurm_bridge.model.job import JobView, Outcome
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.names import JobId
from slurm_bridge.takeover.steps import Scenery


class JobRecords(Protocol):
    """The part of `ports.Slurm` that is needed, and one order more."""

    def jobs(self) -> Sequence[JobView]: ...

    def job(self, job_id: JobId) -> JobView | None: ...

    def note(self, job_id: JobId, owner: Owner) -> Outcome: ...

    def cancel(self, job_id: JobId) -> Outcome: ...

    def inscribe(self, job_id: JobId, text: str) -> Outcome:
        """Write any text into `admin_comment`."""


def read(cluster: ports.Cluster, slurm: JobRecords) -> Scenery:
    """Three lists. Jobs first: a pod that is created or bound meanwhile is seen, and its job is not."""
    jobs = slurm.jobs()
    pods, nodes = cluster.list(kinds.PODS), cluster.list(kinds.NODES)
    return Scenery(jobs=jobs, pods=pods.items, nodes=nodes.items, unreadable=pods.unreadable)
