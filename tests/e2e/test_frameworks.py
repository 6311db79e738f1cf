"""Frameworks as they come: what real operators make is grouped, queued, bound and ended as their users expect.

The operators run in a local cluster with FRAMEWORKS=1. KWOK plays the programs in the pods, and the test plays what a
program reports to its operator.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from localcluster import frameworks
from slurm_bridge.model import names
from tests import wait
from tests.e2e import (
    support_daemon,
    support_foreign,
    support_frameworks,
    support_groups,
    support_kinds,
    support_servers,
    support_world,
)
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_frameworks import SECONDS
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def world(cluster: Mapping[str, str], open_world: OpenWorld, foreign: support_foreign.Foreign) -> Iterator[World]:
    """A daemon as it is shipped; jobs of others in the same Slurm stay as they are."""
    support_frameworks.require(cluster)
    assert foreign.jobs
    made = open_world("frameworks")
    # Kueue has a say in this namespace only.
    made.kube.merge(f"/api/v1/namespaces/{made.namespace}", {"metadata": {"labels": {frameworks.MANAGED: "yes"}}})
    return made


def limits(world: World, *job_ids: int) -> set[str]:
    """The time limits that Slurm shows of these jobs."""
    return {world.slurm.shown(job_id)["TimeLimit"] for job_id in job_ids}


# -- MPI operator


def mpi(world: World, name: str, **spec: Any) -> Json:
    """The example under another name; its launcher runs until it is told to end."""
    (document,) = support_frameworks.example(world, "mpijob")
    document["metadata"]["name"] = name
    document["spec"] |= spec
    for role in document["spec"]["mpiReplicaSpecs"].values():
        support_frameworks.running(role["template"])
    return document


def test_an_mpijob_is_one_gang_that_ends_with_its_launcher(world: World) -> None:
    """Launcher and workers are bound by one job, as its annotations ask; the operator then removes the workers."""
    document = mpi(world, "pi")
    support_frameworks.create(world, document)
    pods = support_groups.placed(world, "pi-", 3, SECONDS)
    job = support_groups.together(world, pods)
    assert (job.owner["kind"], job.owner["name"]) == ("MPIJob", "pi")
    assert limits(world, job.job_id) == {"00:05:00"}
    (launcher,) = (one for one in pods if "launcher" in one["metadata"]["name"])
    world.finish([launcher])
    support_frameworks.await_condition(world, document, "Succeeded")
    wait.until(lambda: not support_groups.living_of(world, "MPIJob", "pi"), "end of the job", SECONDS, every=0.5)


def test_members_of_an_mpijob_that_are_made_again_take_their_places(world: World) -> None:
    """A worker that was deleted, and a launcher that failed: the job stays."""
    support_frameworks.create(world, mpi(world, "mend"))
    pods = support_groups.placed(world, "mend-", 3, SECONDS)
    job = support_groups.together(world, pods)
    _, worker, launcher = sorted(pods, key=lambda one: "launcher" in one["metadata"]["name"])
    lost = support_kinds.uids([worker, launcher])
    world.delete(worker["metadata"]["name"])
    support_kinds.fail(world, launcher)

    def mended() -> bool:
        found = support_kinds.members(world, "mend-")
        return len(found) == 3 and not lost & support_kinds.uids(found) and all(map(support_world.is_bound, found))

    wait.until(mended, "replaced members", SECONDS, every=0.5)
    assert support_groups.together(world, support_kinds.members(world, "mend-")).job_id == job.job_id
    support_frameworks.remove(world, mpi(world, "mend"))


def test_a_launcher_that_waits_for_its_workers_is_bound_after_them(world: World) -> None:
    """The operator makes it when they are ready: they are two jobs, and none waits for the other for ever."""
    document = mpi(world, "late", launcherCreationPolicy="WaitForWorkersReady")
    support_frameworks.create(world, document)
    pods = support_groups.placed(world, "late-", 3, SECONDS)
    parts = support_groups.by_job(world, pods)
    assert sorted(map(len, parts.values())) == [1, 2]
    support_frameworks.remove(world, document)


def test_a_suspended_mpijob_gives_its_nodes_back(world: World) -> None:
    """And is a new job when it goes on."""
    document = mpi(world, "pause")
    support_frameworks.create(world, document)
    first = support_groups.together(world, support_groups.placed(world, "pause-", 3, SECONDS))
    support_frameworks.change(world, document, runPolicy={"suspend": True})
    wait.until(lambda: not support_groups.living_of(world, "MPIJob", "pause"), "end of the job", SECONDS, every=0.5)
    support_frameworks.change(world, document, runPolicy={"suspend": False})
    second = support_groups.together(world, support_groups.placed(world, "pause-", 3, SECONDS))
    assert second.job_id != first.job_id
    support_frameworks.remove(world, document)


# -- Kubeflow Trainer


def test_the_nodes_of_a_trainjob_are_one_gang(world: World) -> None:
    """By its JobSet, without a PodGroup; the annotations in its spec count, and its pods have their ranks."""
    runtime, document = support_frameworks.example(world, "trainjob")
    (part,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    support_frameworks.running(part["template"]["spec"]["template"])
    support_frameworks.create(world, runtime, document)
    pods = support_groups.placed(world, "trainjob-", 3, SECONDS)
    job = support_groups.together(world, pods)
    assert (job.owner["kind"], job.owner["name"]) == ("JobSet", "trainjob")
    assert limits(world, job.job_id) == {"00:05:00"}
    assert {one["metadata"]["labels"]["job-name"] for one in pods} == {"trainjob-node-0"}
    world.finish(pods)
    support_frameworks.await_condition(world, document, "Complete")
    wait.until(lambda: not support_groups.living_of(world, "JobSet", "trainjob"), "end of the job", SECONDS, every=0.5)


def test_the_initializer_of_a_trainjob_runs_before_its_nodes(world: World) -> None:
    """A replicated job that others depend on is a workload of its own: no gang waits for pods that cannot come."""
    runtime, document = support_frameworks.example(world, "trainjob")
    for one, name in ((runtime, "with-data"), (document, "staged")):
        one["metadata"]["name"] = name
    document["spec"]["runtimeRef"]["name"] = "with-data"
    (node,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    step = "trainer.kubeflow.org/trainjob-ancestor-step"
    pods = {"spec": {**node["template"]["spec"]["template"]["spec"]}}
    pods["spec"]["containers"] = [{**pods["spec"]["containers"][0], "name": "dataset-initializer"}]
    first = {"metadata": {"labels": {step: "dataset-initializer"}}, "spec": {"template": pods}}
    node["dependsOn"] = [{"name": "dataset-initializer", "status": "Complete"}]
    runtime["spec"]["template"]["spec"]["replicatedJobs"] = [{"name": "dataset-initializer", "template": first}, node]
    support_frameworks.create(world, runtime, document)
    support_frameworks.await_condition(world, document, "Complete")
    found = [one for one in world.pods() if one["metadata"]["name"].startswith("staged-")]
    by_job: dict[int, int] = {}
    for one in found:
        by_job[support_world.job_id(one)] = by_job.get(support_world.job_id(one), 0) + 1
    assert sorted(by_job.values()) == [1, 3]


# -- KubeRay


def ray(world: World, name: str) -> Json:
    """An example whose pods run until they are deleted."""
    (document,) = support_frameworks.example(world, name)
    spec = document["spec"]
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        support_frameworks.running(group["template"])
    return document


def test_the_workers_of_a_raycluster_come_and_go(world: World) -> None:
    """Each pod has a job of its own, as its template asks; a worker that the operator removes gives its node back."""
    document = ray(world, "raycluster")
    support_frameworks.create(world, document)
    pods = support_groups.placed(world, "raycluster-", 3, SECONDS)
    jobs = {one.owner["name"]: one.job_id for one in support_groups.apart(world, pods)}
    heads = {job_id for name, job_id in jobs.items() if "-head" in name}
    assert limits(world, *heads) == {"00:30:00"}
    assert limits(world, *(set(jobs.values()) - heads)) == {"00:15:00"}
    (workers,) = document["spec"]["workerGroupSpecs"]
    support_frameworks.change(world, document, workerGroupSpecs=[{**workers, "replicas": 4}])
    more = support_groups.apart(world, support_groups.placed(world, "raycluster-", 5, SECONDS))
    assert set(jobs.values()) < {one.job_id for one in more}
    support_frameworks.change(world, document, workerGroupSpecs=[{**workers, "replicas": 1}])
    left = support_groups.apart(world, support_groups.placed(world, "raycluster-", 2, SECONDS))
    support_groups.await_only(world, *(one.job_id for one in left), seconds=SECONDS)
    assert heads < {one.job_id for one in left}
    support_frameworks.remove(world, document)
    support_groups.await_only(world, seconds=SECONDS)


def test_labels_make_a_raycluster_a_gang(world: World) -> None:
    """The operator keeps the labels of the templates; a worker that is lost and made again takes its place."""
    document = ray(world, "raycluster-gang")
    support_frameworks.create(world, document)
    pods = support_groups.placed(world, "raygang-", 3, SECONDS)
    job = support_groups.together(world, pods)
    assert (job.owner["kind"], job.owner["name"]) == ("Group", "raygang")
    lost = next(one for one in pods if "worker" in one["metadata"]["name"])
    world.delete(lost["metadata"]["name"])

    def replaced() -> bool:
        found = support_kinds.members(world, "raygang-")
        fresh = support_kinds.uids(found) - {lost["metadata"]["uid"]}
        return len(fresh) == 3 and all(map(support_world.is_bound, found))

    wait.until(replaced, "replaced worker", SECONDS, every=0.5)
    assert support_groups.together(world, support_kinds.members(world, "raygang-")).job_id == job.job_id
    support_frameworks.remove(world, document)


# -- Argo Workflows


def test_the_steps_of_a_workflow_follow_each_other(world: World) -> None:
    """Each is a job of its own, with the annotations that the Workflow has for all pods and those of its template."""
    (document,) = support_frameworks.example(world, "workflow")
    document["spec"]["podMetadata"]["annotations"].update(support_world.FOREVER)
    support_frameworks.create(world, document)
    (first,) = support_groups.placed(world, "workflow-", 1, SECONDS)
    (job,) = support_groups.apart(world, [first])
    assert limits(world, job.job_id) == {"00:05:00"}
    succeed(world, first)
    steps = support_groups.placed(world, "workflow-", 2, SECONDS)
    shown = [world.slurm.shown(one.job_id) for one in support_groups.apart(world, steps)]
    assert {one["TimeLimit"] for one in shown} == {"00:05:00"}
    assert "batch" in {one["Partition"] for one in shown}
    for one in steps:
        succeed(world, one)
    wait.until(
        lambda: support_frameworks.seen(world, document)["status"].get("phase") == "Succeeded",
        "end of the Workflow",
        SECONDS,
        every=0.5,
    )


def succeed(world: World, pod: Json) -> None:
    """The step ends, and its container `wait`, which no node of KWOK runs, has reported that it has no outputs."""
    node = pod["metadata"]["annotations"]["workflows.argoproj.io/node-id"]
    marks = {
        "workflows.argoproj.io/workflow": pod["metadata"]["labels"]["workflows.argoproj.io/workflow"],
        "workflows.argoproj.io/report-outputs-completed": "true",
    }
    body = {"apiVersion": "argoproj.io/v1alpha1", "kind": "WorkflowTaskResult"}
    result = {**body, "metadata": {"name": node, "labels": marks}}
    world.kube.create(support_frameworks.path(world, "WorkflowTaskResult", body["apiVersion"]), result)
    world.finish([pod])


# -- Kueue


@pytest.fixture
def queue(world: World) -> Iterator[tuple[Json, Json]]:
    """A queue that admits nothing yet, and the Job of the example; the queue is the cluster's and has a fresh name."""
    # The queue of the test before may be on its way out yet.
    name = support_daemon.fresh_name("kueue")
    flavor, shared, own, job = support_frameworks.example(world, "kueue")
    for one in (flavor, shared):
        one["metadata"]["name"] = name
    shared["spec"]["resourceGroups"][0]["flavors"][0]["name"] = name
    shared["spec"]["stopPolicy"] = "Hold"
    own["spec"]["clusterQueue"] = name
    support_frameworks.create(world, flavor, shared, own)
    yield shared, job
    # Nothing that Kueue still watches over may keep its queue.
    support_frameworks.remove(world, job)
    world.kube.delete(f"{world.path}?gracePeriodSeconds=0")
    support_frameworks.remove(world, own, shared, flavor)


def workload(world: World) -> Json:
    """What Kueue made of the one object that waits in its queue."""
    (found,) = world.kube.items(support_frameworks.path(world, "Workload", "kueue.x-k8s.io/v1beta2"))
    return found


def test_a_job_waits_for_kueue_and_then_for_slurm(world: World, queue: tuple[Json, Json]) -> None:
    """No placeholder before its quota; a gang with it; the nodes are given back when Kueue takes the quota away."""
    shared, job = queue
    support_frameworks.running(job["spec"]["template"])
    support_frameworks.create(world, job)
    wait.until(
        lambda: world.kube.items(support_frameworks.path(world, "Workload", shared["apiVersion"])), "Workload", 20
    )
    assert support_groups.living_of(world, "Job", "kueue") == []
    support_frameworks.change(world, shared, stopPolicy="None")
    first = support_groups.together(world, support_groups.placed(world, "kueue-", 2, SECONDS))
    assert (first.owner["kind"], first.owner["name"]) == ("Job", "kueue")
    support_frameworks.change(world, workload(world), active=False)
    wait.until(lambda: not support_groups.living_of(world, "Job", "kueue"), "end of the job", SECONDS, every=0.5)
    wait.until(lambda: not support_kinds.members(world, "kueue-"), "end of the pods", SECONDS, every=0.5)
    support_frameworks.change(world, workload(world), active=True)
    second = support_groups.together(world, support_groups.placed(world, "kueue-", 2, SECONDS))
    assert second.job_id != first.job_id


def test_pods_behind_kueues_gate_are_no_members_yet(world: World, queue: tuple[Json, Json]) -> None:
    """A pod group of Kueue that also is a group of the bridge: nothing in Slurm before the gates go, one job then."""
    shared, _ = queue
    mine = {
        "kueue.x-k8s.io/queue-name": "research",
        "kueue.x-k8s.io/pod-group-name": "pair",
        names.GROUP: "pair",
        names.GROUP_SIZE: "2",
    }
    marks = {"kueue.x-k8s.io/pod-group-total-count": "2", **support_world.FOREVER}
    made = support_kinds.grouped(world, "pair", 2, marks=marks, labels=mine)
    assert [one["spec"]["schedulingGates"] for one in made] == [[{"name": "kueue.x-k8s.io/admission"}]] * 2
    for one in made:
        world.await_pod(
            one["metadata"]["name"],
            "gate",
            lambda pod: support_servers.condition(pod, "PodScheduled").get("reason") == "SchedulingGated",
        )
    assert support_groups.living_of(world, "Group", "pair") == []
    support_frameworks.change(world, shared, stopPolicy="None")
    job = support_groups.together(world, support_groups.placed(world, "pair-", 2, SECONDS))
    assert (job.owner["kind"], job.owner["name"]) == ("Group", "pair")
