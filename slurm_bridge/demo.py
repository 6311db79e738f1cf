"""The shortest way of a pod from pending to done, by the two ports alone.

It shows that both adapters and the servers behind them agree; nothing here decides anything. Every pod gets one
placeholder of the same small shape, is bound to the node that Slurm allocates, and its placeholder is cancelled once
the pod is over.
"""

import dataclasses
import threading
from collections.abc import Callable, Collection, Iterator

from slurm_bridge import errors, ports
from slurm_bridge.model import job, kinds, marks, names
from slurm_bridge.model.pod import Pod

#: How often both sides are asked while something is awaited. A walk is short; a daemon would watch.
PERIOD = 0.1


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that happened to one pod."""

    pod: Pod
    what: str
    job_id: names.JobId
    node: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """What a walk needs: both sides, time, and an end to waiting."""

    cluster: ports.Cluster
    slurm: ports.Slurm
    clock: ports.Clock
    stop: threading.Event
    cluster_id: str = "demo"
    deadline: float = 60.0

    def run(self, pods: Collection[Pod]) -> Iterator[Step]:
        """All these pods, step by step; raises TryLater when they are not done in time."""
        bound = []
        for step in self.place(pods):
            if step.what == "bound":
                bound.append(step)
            yield step
        yield from self.finish(bound)

    def place(self, pods: Collection[Pod]) -> Iterator[Step]:
        """Submit a placeholder for each, and bind each where Slurm allocates."""
        waiting = {}
        for pod in pods:
            job_id = self._submit(pod)
            waiting[job_id] = pod
            yield Step(pod=pod, what="submitted", job_id=job_id)
        left = set(waiting)
        for _ in self._until(lambda: not left, "Slurm to allocate nodes"):
            states = self.slurm.states(left)
            for job_id in sorted(one for one in left if one in states and states[one].phase is job.Phase.RUNNING):
                yield self._bind(job_id, waiting[job_id])
                left.discard(job_id)

    def finish(self, bound: Collection[Step]) -> Iterator[Step]:
        """Wait until these pods are over, and cancel the placeholder of each that is."""
        left = {step.job_id: step.pod for step in bound}
        for _ in self._until(lambda: not left, "the pods to end"):
            for job_id, pod in list(left.items()):
                now = self.cluster.get(kinds.PODS, *pod.key)
                if now is None or now.uid != pod.uid or now.terminal:
                    self.slurm.cancel(job_id)
                    del left[job_id]
                    yield Step(pod=pod, what="gone" if now is None else now.status.phase.lower(), job_id=job_id)

    def _submit(self, pod: Pod) -> names.JobId:
        outcome = self.slurm.submit(request_for(pod, self.cluster_id))
        if not isinstance(outcome, job.Done):
            raise errors.TryLater(f"placeholder of {'/'.join(pod.key)}: {outcome}")
        return outcome.job_id

    def _bind(self, job_id: names.JobId, pod: Pod) -> Step:
        allocation = self.slurm.allocation(job_id)
        if allocation is None or len(allocation.nodes) != 1:
            raise errors.BadAnswer(f"job {job_id} runs but holds {allocation}")
        node = self._kubernetes_name(allocation.nodes[0])
        self.cluster.bind(
            ports.Binding(
                namespace=pod.metadata.namespace,
                pod=pod.metadata.name,
                uid=pod.uid,
                node=node,
                annotations={names.ANNOTATION_SLURM_NODE: allocation.nodes[0]},
                labels={names.LABEL_JOB_ID: str(job_id)},
            )
        )
        return Step(pod=pod, what="bound", job_id=job_id, node=node)

    def _kubernetes_name(self, slurm_name: str) -> str:
        if self.cluster.get(kinds.NODES, "", slurm_name) is not None:
            return slurm_name
        mapped = self.cluster.list(kinds.NODES, ports.Scope(labels=f"{names.LABEL_SLURM_NODE_NAME}={slurm_name}"))
        if len(mapped.items) != 1:
            raise errors.NotFound(f"{len(mapped.items)} Kubernetes nodes say that they are Slurm's {slurm_name}")
        return mapped.items[0].metadata.name

    def _until(self, over: Callable[[], bool], what: str) -> Iterator[None]:
        end = self.clock.now() + self.deadline
        while not over():
            if self.clock.now() > end or self.clock.wait(self.stop, PERIOD):
                raise errors.TryLater(f"gave up waiting for {what}")
            yield


def request_for(pod: Pod, cluster_id: str) -> job.JobRequest:
    """A placeholder of one cpu and 128 MiB, owned by this very pod."""
    namespace, name = pod.key
    return job.JobRequest(
        name=name,
        owner=marks.Owner(cluster=cluster_id, kind="Pod", namespace=namespace, name=name, uid=pod.uid),
        memory=job.Memory(mib=128),
    )
