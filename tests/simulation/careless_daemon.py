"""A daemon that does right in fair weather and nothing more: what the observer has to catch in any other."""

from slurm_bridge import errors, ports
from slurm_bridge.model import kinds, names
from slurm_bridge.model.job import Done, JobRequest, Memory, Phase
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.names import JobId
from slurm_bridge.model.node import Node
from slurm_bridge.model.pod import Pod
from slurm_bridge.workloads import known
from tests.simulation.observer import CLUSTER_ID
from tests.simulation.process import Views


class Careless:
    """Believes every answer, and takes a missing one for a no."""

    def __init__(
        self, cluster: ports.Cluster, slurm: ports.Slurm, _clock: ports.Clock, _known: known.Known, _views: Views
    ) -> None:
        self._cluster, self._slurm = cluster, slurm
        self._pods: dict[str, Pod] = {}
        self._nodes: dict[str, str] = {}
        self._jobs: dict[str, JobId] = {}

    def on_pod(self, old: Pod | None, new: Pod | None) -> None:
        """Remember it as it is."""
        if new is not None:
            self._pods[new.uid] = new
        elif old is not None:
            self._pods.pop(old.uid, None)

    def on_other_pod(self, old: Pod | None, new: Pod | None) -> None:
        """It ignores all other pods."""

    def on_node(self, _: Node | None, new: Node | None) -> None:
        """Remember how Slurm calls it."""
        if new is not None:
            self._nodes[new.slurm_name] = new.metadata.name

    def on_owner(self, old: object, new: object) -> None:
        """It ignores the owners of pods."""

    def on_kinds(self) -> None:
        """Nor for kinds."""

    def on_surroundings(self) -> None:
        """Nor for what hooks look at."""

    def recover(self) -> None:
        """Nothing is worth knowing."""

    def mirror_step(self) -> None:
        """Bind what runs; end what has ended; withdraw what is over."""
        for uid, job_id in list(self._jobs.items()):
            try:
                self._follow(uid, job_id)
            except errors.BridgeError:
                continue

    def _follow(self, uid: str, job_id: JobId) -> None:
        pod, state = self._pods.get(uid), self._slurm.states([job_id]).get(job_id)
        if pod is None or pod.terminal:
            self._slurm.cancel(job_id)
            del self._jobs[uid]
        elif state is None or state.phase is Phase.ENDED:
            self._cluster.delete(kinds.PODS, pod)
            del self._jobs[uid]
        elif state.phase is Phase.RUNNING and not pod.bound:
            self._bind(pod, job_id)

    def _bind(self, pod: Pod, job_id: JobId) -> None:
        allocation = self._slurm.allocation(job_id)
        if allocation is not None:
            self._cluster.bind(
                ports.Binding(
                    namespace=pod.metadata.namespace,
                    pod=pod.metadata.name,
                    uid=pod.uid,
                    node=self._nodes[allocation.nodes[0]],
                    labels={names.LABEL_JOB_ID: str(job_id)},
                )
            )

    def schedule_step(self) -> bool:
        """Submit for the first pod that has no job; again, when no answer came."""
        for pod in self._pods.values():
            if not (pod.bound or pod.terminal or pod.terminating or pod.uid in self._jobs):
                try:
                    outcome = self._slurm.submit(self._request(pod))
                except errors.BridgeError:
                    return False
                if isinstance(outcome, Done):
                    self._jobs[pod.uid] = outcome.job_id
                    return True
        return False

    @staticmethod
    def _request(pod: Pod) -> JobRequest:
        namespace, name = pod.key
        owner = Owner(cluster=CLUSTER_ID, kind="Pod", namespace=namespace, name=name, uid=pod.uid)
        needs = pod.spec.containers[0].resources.requests
        return JobRequest(name=name, owner=owner, cpus_per_task=int(needs["cpu"]), memory=Memory(mib=500))

    def status_step(self) -> bool:
        """It says nothing."""
        return False
