"""Pods as the operators of frameworks make them: with the owners, labels and gates of their releases.

MPI operator 0.6.0   workers are pods of the MPIJob, the launcher that of a Job of it (mpi_job_controller.go)
Spark                executors have the driver pod as their controller (BasicExecutorFeatureStep.scala)
Kueue 0.17.0         pods have the gate `kueue.x-k8s.io/admission` until their workload is admitted (jobs/pod)

`make frameworks` runs the real operators, except for Spark's.
"""

from typing import Any

import pytest

from slurm_bridge.model import kinds, names
from slurm_bridge.sim.slurm import state
from slurm_bridge.workloads.kinds import mpijob
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.world import NAMESPACE

EVIL = "evil"
VERSION = "kubeflow.org/v2beta1"
GATE = "kueue.x-k8s.io/admission"
TEMPLATE = {
    "metadata": {"annotations": {"kwok.local/outcome": "run"}},
    "spec": {
        "schedulerName": names.SCHEDULER_NAME,
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": "1", "memory": "500Mi"}}}],
    },
}


def controller(version: str, kind: str, name: str, uid: str) -> dict[str, Any]:
    """How an operator names itself as the maker; a user can write the same."""
    return {"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": True}


def mpi(bridge: Bridge, name: str = "pi", workers: int = 3, **annotations: str) -> str:
    """An MPIJob and the Job of its launcher; its uid. The workers are `worker`."""
    metadata = {"name": name, "namespace": NAMESPACE, "annotations": annotations}
    spec = {"mpiReplicaSpecs": {"Launcher": {"replicas": 1}, "Worker": {"replicas": workers}}}
    made = bridge.kube.create(mpijob.MPIJOBS, {"metadata": metadata, "spec": spec})
    uid = str(made["metadata"]["uid"])
    above = {"name": f"{name}-launcher", "namespace": NAMESPACE}
    job = {"metadata": {**above, "ownerReferences": [controller(VERSION, "MPIJob", name, uid)]}}
    bridge.kube.create(kinds.JOBS, {**job, "spec": {"parallelism": 1, "completions": 1, "template": TEMPLATE}})
    return uid


def worker(bridge: Bridge, uid: str, number: int, name: str = "pi", namespace: str = NAMESPACE) -> str:
    """A worker; its name."""
    labels = {names.LABEL_MPI_NAME: name, "training.kubeflow.org/job-role": "worker"}
    owners = [controller(VERSION, "MPIJob", name, uid)]
    bridge.pod(f"{name}-worker-{number}", namespace, labels=labels, ownerReferences=owners)
    return f"{name}-worker-{number}"


def pods(bridge: Bridge, prefix: str) -> list[str]:
    """The names of those that are there."""
    found = (str(one["metadata"]["name"]) for one in bridge.kube.list(kinds.PODS, NAMESPACE))
    return sorted(name for name in found if name.startswith(prefix))


def job_of(bridge: Bridge, uid: str) -> state.SlurmJob:
    """The only living job of this object."""
    (found,) = [one for one in bridge.jobs(uid) if not one.over]
    return found


def test_an_mpijob_is_submitted_once_when_launcher_and_workers_are_there(bridge: Bridge) -> None:
    """With a task for each, and as its annotations ask."""
    uid = mpi(bridge, **{names.JOB_PREFIX + "timelimit": "7"})
    for number in range(2):
        worker(bridge, uid, number)
    bridge.run(5)
    assert bridge.submits() == 0
    assert "3 of 4 pods of MPIJob" in bridge.condition("pi-worker-0")[1]
    worker(bridge, uid, 2)
    bridge.until(lambda: all(bridge.node_of(name) for name in pods(bridge, "pi-")))
    job = job_of(bridge, uid)
    assert (bridge.submits(), job.ask.tasks, job.ask.name) == (1, 4, "pi")


def test_the_placeholder_of_an_mpijob_ends_with_its_last_pod(bridge: Bridge) -> None:
    """The operator deletes the workers when the launcher has ended."""
    uid = mpi(bridge, workers=1)
    worker(bridge, uid, 0)
    bridge.until(lambda: all(bridge.node_of(name) for name in pods(bridge, "pi-")))
    (launcher,) = pods(bridge, "pi-launcher")
    bridge.status(launcher, phase="Succeeded")
    bridge.run(2)
    assert not job_of(bridge, uid).over
    bridge.delete("pi-worker-0")
    bridge.until(lambda: all(one.over for one in bridge.jobs(uid)))


@pytest.mark.security("identity")
def test_forged_workers_of_another_namespace_complete_no_mpijob(bridge: Bridge) -> None:
    """They wait for an MPIJob of that name in their own namespace; the victim starts when its own pods are there."""
    bridge.kube.create(kinds.NAMESPACES, {"metadata": {"name": EVIL}})
    uid = mpi(bridge)
    for number in range(2):
        worker(bridge, uid, number)
    for number in range(2, 6):
        worker(bridge, uid, number, namespace=EVIL)
    bridge.run(10)
    assert bridge.submits() == 0
    worker(bridge, uid, 2)
    bridge.until(lambda: all(bridge.node_of(name) for name in pods(bridge, "pi-")))
    assert job_of(bridge, uid).ask.tasks == 4
    forged = bridge.kube.list(kinds.PODS, EVIL)
    assert not any(one["spec"].get("nodeName") for one in forged)


def test_an_mpijob_that_cannot_start_leaves_its_neighbours_alone(bridge: Bridge) -> None:
    """A pod, and an MPIJob of another name, run while a worker of the first is missing."""
    missing, whole = mpi(bridge, "half"), mpi(bridge, "pi", workers=1)
    worker(bridge, missing, 0, "half")
    worker(bridge, whole, 0)
    bridge.pod("plain")
    bridge.until(lambda: all(bridge.node_of(name) for name in [*pods(bridge, "pi-"), "plain"]))
    assert not any(bridge.node_of(name) for name in pods(bridge, "half-"))


def test_executors_of_spark_are_placed_as_they_ask_and_end_alone(bridge: Bridge) -> None:
    """The annotations of the driver are its own; an executor that ends takes no other job with it."""
    driver = bridge.pod("driver", labels={"spark-role": "driver"}, annotations={names.JOB_PREFIX + "timelimit": "90"})
    bridge.until(lambda: bridge.node_of("driver"))
    owners = [controller("v1", "Pod", "driver", driver)]
    for number in (1, 2):
        asked = {names.JOB_PREFIX + "timelimit": f"{number}"}
        labels = {"spark-role": "executor", "spark-exec-id": str(number)}
        bridge.pod(f"exec-{number}", labels=labels, annotations=asked, ownerReferences=owners)
    bridge.until(lambda: bridge.node_of("exec-1") and bridge.node_of("exec-2"))
    jobs = {name: bridge.job(name) for name in ("driver", "exec-1", "exec-2")}
    assert {name: job.ask.minutes for name, job in jobs.items()} == {"driver": 90, "exec-1": 1, "exec-2": 2}
    bridge.delete("exec-1")
    bridge.until(lambda: bridge.slurm.world.jobs[jobs["exec-1"].job_id].over)
    assert not any(bridge.slurm.world.jobs[jobs[name].job_id].over for name in ("driver", "exec-2"))


def test_pods_behind_the_gate_of_kueue_are_not_submitted(bridge: Bridge) -> None:
    """As soon as the gates are gone they are one job, with the node labels that Kueue has added meanwhile."""
    labels = {
        "kueue.x-k8s.io/queue-name": "q",
        "kueue.x-k8s.io/pod-group-name": "g",
        names.GROUP: "g",
        names.GROUP_SIZE: "2",
    }
    for name in ("g-0", "g-1"):
        bridge.pod(name, labels=labels, spec={"schedulingGates": [{"name": GATE}]})
    bridge.run(10)
    assert bridge.submits() == 0
    node = bridge.kube.list(kinds.NODES)[0]["metadata"]["name"]
    for name in ("g-0", "g-1"):
        freed = {"schedulingGates": None, "nodeSelector": {"kubernetes.io/hostname": node}}
        bridge.kube.merge(kinds.PODS, (NAMESPACE, name), {"spec": freed})
    bridge.until(lambda: bridge.node_of("g-0") and bridge.node_of("g-1"))
    assert bridge.submits() == 1
    assert {bridge.node_of("g-0"), bridge.node_of("g-1")} == {node}
