"""What a daemon does, done by a test: right or wrong, one call at a time."""

from typing import Any

from slurm_bridge import ports
from slurm_bridge.kube.client import KubeClient
from slurm_bridge.model import kinds, names
from slurm_bridge.model.job import Done, JobRequest, Memory
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.names import JobId
from slurm_bridge.slurm.client import SlurmClient
from tests.simulation.observer import CLUSTER_ID
from tests.simulation.world import NAMESPACE, World


class Hand:
    """What a daemon does, done by a test."""

    def __init__(self, world: World, name: str = "hand") -> None:
        self.world = world
        self.cluster: KubeClient = world.cluster(name, world.clock)
        self.slurm: SlurmClient = world.jobs_of(name, world.clock)

    def submit(self, name: str, **fields: Any) -> JobId:
        """A placeholder of this pod; it runs when nothing speaks against it."""
        return self.ask(self.request(name, self.world.find(name)["metadata"]["uid"], **fields))  # type: ignore[index]

    def request(
        self, name: str, uid: str, *, kind: str = "Pod", cpus: int = 1, memory: int = 500, **fields: Any
    ) -> JobRequest:
        """What a daemon would ask for a workload of this record."""
        owner = Owner(cluster=CLUSTER_ID, kind=kind, namespace=NAMESPACE, name=name, uid=uid)
        return JobRequest(name=name, owner=owner, cpus_per_task=cpus, memory=Memory(mib=memory), **fields)

    def ask(self, request: JobRequest) -> JobId:
        """A job, with all its components."""
        outcome = self.slurm.submit(request)
        assert isinstance(outcome, Done)
        self.world.pass_time(1.0)
        return outcome.job_id

    def bind(self, name: str, node: str, job_id: int = 0) -> None:
        """A binding."""
        pod = self.cluster.get(kinds.PODS, NAMESPACE, name)
        assert pod is not None
        labels = {names.LABEL_JOB_ID: str(job_id)} if job_id else {}
        self.cluster.bind(ports.Binding(namespace=NAMESPACE, pod=name, uid=pod.uid, node=node, labels=labels))

    def node_of(self, job_id: JobId) -> str:
        """Where a job runs, by Kubernetes' name."""
        name = self.slurm.allocation(job_id).nodes[0]  # type: ignore[union-attr]
        return "n4" if name == "s4" else name

    def bound(self, name: str) -> JobId:
        """A pod on its node, as it should be."""
        job_id = self.submit(name)
        self.bind(name, self.node_of(job_id), job_id)
        return job_id

    def delete(self, name: str) -> None:
        """Delete a pod."""
        pod = self.cluster.get(kinds.PODS, NAMESPACE, name)
        assert pod is not None
        self.cluster.delete(kinds.PODS, pod)
