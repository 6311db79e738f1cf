"""Objects of real controllers go through both real servers: Slurm allocates, we bind, the kubelets' stand-in runs."""

import subprocess
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from slurm_bridge import demo, ports
from slurm_bridge.kube.client import KubeClient
from slurm_bridge.model import job, kinds, meta, names
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.pod import Pod
from slurm_bridge.runtime.clock import SystemClock
from slurm_bridge.slurm.client import SlurmClient
from tests import waiting

Manifest = dict[str, Any]

#: The stand-in for kubelets ends a pod as its annotations say.
SHORT = {"kwok.local/outcome": "succeed", "kwok.local/seconds": "1"}


def pod_template(annotations: Mapping[str, str], **spec: object) -> Manifest:
    """A small pod for our scheduler."""
    container = {"name": "c", "image": "busybox", "resources": {"requests": {"cpu": "1", "memory": "64Mi"}}}
    usual = {"schedulerName": names.SCHEDULER_NAME, "containers": [container], **spec}
    return {"metadata": {"annotations": dict(annotations)}, "spec": usual}


def batch_job(name: str, parallelism: int) -> Manifest:
    """A Job of so many pods at once."""
    template = pod_template(SHORT, restartPolicy="Never")
    spec = {"parallelism": parallelism, "completions": parallelism, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def job_set(name: str) -> Manifest:
    """A JobSet of two Jobs of two pods."""
    template = {"spec": batch_job(name, 2)["spec"]}
    spec = {"replicatedJobs": [{"name": "workers", "replicas": 2, "template": template}]}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name}, "spec": spec}


def leader_worker_set(name: str) -> Manifest:
    """One group of a leader and two workers."""
    spec = {"replicas": 1, "leaderWorkerTemplate": {"size": 3, "workerTemplate": pod_template({})}}
    kind = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet"}
    return {**kind, "metadata": {"name": name}, "spec": spec}


class Ground:
    """One namespace on the real cluster, and the daemon's way to walk its pods."""

    def __init__(self, admin: KubeClient, daemon: KubeClient, slurm: SlurmClient, namespace: str) -> None:
        self._admin = admin
        self.daemon = daemon
        self.slurm = slurm
        self.namespace = namespace
        self.walk = demo.Walk(
            cluster=daemon, slurm=slurm, clock=SystemClock(), stop=threading.Event(), cluster_id="e2e"
        )

    def apply(self, kind: Kind[meta.Object], manifest: Manifest, members: int) -> meta.Object:
        """Create it, and wait until its controller has made so many pods."""
        made = self._admin.create(kind, self.namespace, manifest)
        waiting.until(lambda: len(self.pods()) == members, f"{members} pods")
        return made

    def delete(self, kind: Kind[meta.Object], made: meta.Object) -> None:
        """As a user would."""
        self._admin.delete(kind, made)

    def pods(self) -> tuple[Pod, ...]:
        """Every pod, as the daemon sees them."""
        return self.daemon.list(kinds.PODS, ports.Scope(namespace=self.namespace)).items

    def jobs_complete(self) -> bool:
        """The Job controller is content."""
        jobs = self._admin.list(kinds.JOBS, ports.Scope(namespace=self.namespace)).items
        lines = [line for one in jobs for line in one.status.conditions if line.type == "Complete"]
        return len(lines) == len(jobs) and all(line.status == "True" for line in lines)

    def slurm_nodes(self, step: demo.Step) -> tuple[str, ...]:
        """Where Slurm says that the job of this step was."""
        view = self.slurm.job(step.job_id)
        assert view is not None
        return view.nodes


@pytest.fixture
def ground(admin: KubeClient, daemon: KubeClient, slurm: SlurmClient, namespace: str) -> Ground:
    """A fresh namespace on both real servers."""
    return Ground(admin, daemon, slurm, namespace)


@pytest.mark.real
@pytest.mark.parametrize(
    ("kind", "manifest"),
    [(kinds.JOBS, batch_job("train", 4)), (kinds.JOBSETS, job_set("pair"))],
    ids=["job", "jobset"],
)
def test_pods_of_a_controller_run_where_slurm_allocated(ground: Ground, kind: Any, manifest: Manifest) -> None:
    """Each pod is bound to the node of its own placeholder, succeeds there, and leaves nothing alive in Slurm."""
    ground.apply(kind, manifest, members=4)
    bound = {step.pod.key: step for step in ground.walk.run(ground.pods()) if step.what == "bound"}
    assert len(bound) == 4
    for pod in ground.pods():
        step = bound[pod.key]
        assert (pod.spec.node_name, pod.metadata.labels[names.LABEL_JOB_ID]) == (step.node, str(step.job_id))
        assert ground.slurm_nodes(step) == (pod.metadata.annotations[names.ANNOTATION_SLURM_NODE],)
    states = ground.slurm.states([step.job_id for step in bound.values()])
    assert {state.phase for state in states.values()} == {job.Phase.ENDED}
    waiting.until(ground.jobs_complete, "complete Jobs")


@pytest.mark.real
def test_a_leader_and_its_workers_run_where_slurm_allocated(ground: Ground) -> None:
    """A group of three runs side by side until its owner deletes it; then its placeholders can go."""
    made = ground.apply(kinds.LEADERWORKERSETS, leader_worker_set("serve"), members=3)
    bound = [step for step in ground.walk.place(ground.pods()) if step.what == "bound"]
    waiting.until(lambda: [pod.status.phase for pod in ground.pods()] == ["Running"] * 3, "three running pods")
    assert sorted(pod.spec.node_name for pod in ground.pods()) == sorted(step.node for step in bound)
    ground.delete(kinds.LEADERWORKERSETS, made)
    assert {step.what for step in ground.walk.finish(bound)} <= {"gone", "failed"}
    waiting.until(lambda: not ground.pods(), "end of the group")


@pytest.mark.real
def test_people_see_as_many_nodes_on_both_sides(cluster: Mapping[str, str]) -> None:
    """kubectl and sinfo, as an administrator types them, agree."""
    kubernetes = printed(cluster["KUBECTL"], "get", "nodes", "--no-headers")
    slurm = printed(cluster["SLURM_EXEC"], "sinfo", "--noheader", "--Node", "--format=%N")
    assert len(kubernetes.splitlines()) == len(set(slurm.split())) == int(cluster["NODES"])
    assert "NotReady" not in kubernetes


def printed(*command: str) -> str:
    """What a command says."""
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout
