"""One object of every kind, made at once by its real controller: placed where Slurm says, whole where it is a group."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from slurm_bridge.model import names
from tests import wait
from tests.e2e import support_groups, support_kinds, support_servers, support_world
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_kinds import Objects
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

ASKED = {names.JOB_PREFIX + "partition": "batch", names.JOB_PREFIX + "timelimit": "11"}
GANG = {names.JOB_PREFIX + "gang": "true"}
LATER_SECONDS = 60.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Group:
    """An object whose pods are placed together: how many jobs it has, and how many pods each of them."""

    owner: str
    sizes: tuple[int, ...]


#: Object -> how its pods are placed. The name of the object begins the names of its pods.
GROUPS = {
    "ganged": Group(owner="Job", sizes=(4,)),
    "spread": Group(owner="Job", sizes=(4,)),
    "whole": Group(owner="JobSet", sizes=(1 + 2 + 2,)),
    "steps": Group(owner="JobSet", sizes=(1, 2)),
    "serve": Group(owner="LeaderWorkerSet", sizes=(3, 3)),
    "lead": Group(owner="LeaderWorkerSet", sizes=(1, 2)),
    "built-in": Group(owner="PodGroup", sizes=(4,)),
    "together": Group(owner="PodGroup", sizes=(4,)),
    "free": Group(owner="Group", sizes=(3,)),
}

#: Object -> its pods, each with a job of its own.
SINGLES = {"bare": 1, "plain": 3, "basic": 2, "web": 2, "always": 2, "data": 2, "child": 1}


@pytest.fixture(scope="module")
def world(open_world: OpenWorld) -> World:
    """One of everything; what is asked of Slurm stands at the top of each."""
    world = open_world("kinds")
    objects = Objects(world)
    _singles(world, objects)
    _jobs(world, objects)
    _serving(world, objects)
    _groups(world, objects)
    return world


def _singles(world: World, objects: Objects) -> None:
    forever = support_kinds.template(world)
    marks = {**ASKED, **support_world.FOREVER}
    world.create(support_world.pod("bare", world.daemon.scheduler, annotations=marks))
    objects.create("Job", "plain", support_kinds.job_spec(forever, 3), ASKED)
    objects.create("PodGroup", "basic", {"schedulingPolicy": {"basic": {}}}, ASKED)
    world.create(*(_of_pod_group(world, f"basic-{number}", "basic") for number in range(2)))
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "parent"}}
    parent = world.kube.create(f"/api/v1/namespaces/{world.namespace}/configmaps", settings)
    child = support_world.pod("child", world.daemon.scheduler, annotations=marks)
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "parent", "uid": parent["metadata"]["uid"]}
    child["metadata"]["ownerReferences"] = [reference]
    world.create(child)


def _jobs(world: World, objects: Objects) -> None:
    forever = support_kinds.template(world)
    objects.create("Job", "ganged", support_kinds.job_spec(forever, 4), {**ASKED, **GANG})
    two_nodes = {names.JOB_PREFIX + "min-nodes": "2"}
    objects.create("Job", "spread", support_kinds.job_spec(forever, 4), {**ASKED, **two_nodes})
    one, two = support_kinds.job_spec(forever, 1), support_kinds.job_spec(forever, 2)
    whole = support_kinds.job_set_spec({"driver": one, "workers": two})
    whole["replicatedJobs"][1]["replicas"] = 2
    objects.create("JobSet", "whole", whole, ASKED)
    steps = support_kinds.job_set_spec({"prepare": one, "train": two})
    steps["replicatedJobs"][1]["dependsOn"] = [{"name": "prepare", "status": "Ready"}]
    objects.create("JobSet", "steps", steps, ASKED)


def _serving(world: World, objects: Objects) -> None:
    pods = support_kinds.served(world)
    groups = support_kinds.leader_worker_spec(pods, 3)
    objects.create("LeaderWorkerSet", "serve", {**groups, "replicas": 2}, ASKED)
    objects.create("LeaderWorkerSet", "lead", {**groups, "startupPolicy": "LeaderReady"}, ASKED)
    for kind, name, more in (
        ("Deployment", "web", {}),
        ("ReplicaSet", "always", {}),
        ("StatefulSet", "data", {"serviceName": "data"}),
    ):
        objects.create(kind, name, support_kinds.replicas_spec(name, pods, 2, **more), ASKED)


def _groups(world: World, objects: Objects) -> None:
    gang = {"gang": {"minCount": 4}}
    objects.create("Workload", "study", {"podGroupTemplates": [{"name": "all", "schedulingPolicy": gang}]}, ASKED)
    template = {"workload": {"workloadName": "study", "podGroupTemplateName": "all"}}
    weaker = {names.JOB_PREFIX + "timelimit": "5"}
    objects.create("PodGroup", "built-in", {"schedulingPolicy": gang, "podGroupTemplateRef": template}, weaker)
    world.create(*(_of_pod_group(world, f"built-in-{number}", "built-in") for number in range(4)))
    objects.create("CoschedulingPodGroup", "together", {"minMember": 4}, ASKED)
    named = {"scheduling.x-k8s.io/pod-group": "together"}
    support_kinds.grouped(world, "together", 4, marks=support_world.FOREVER, labels=named)
    free = {names.SCHEDULER_PREFIX + "group": "free", names.SCHEDULER_PREFIX + "group-size": "3"}
    support_kinds.grouped(world, "free", 3, marks={**ASKED, **support_world.FOREVER}, labels=free)


def _of_pod_group(world: World, name: str, group: str) -> Json:
    spec: dict[str, Any] = {"schedulingGroup": {"podGroupName": group}}
    return support_world.pod(name, world.daemon.scheduler, annotations=support_world.FOREVER, **spec)


def shown(world: World, job_ids: set[int]) -> set[tuple[str, str]]:
    """What slurmctld keeps of what was asked."""
    words = world.slurm.all_shown()
    return {(words[one]["Partition"], words[one]["TimeLimit"]) for one in job_ids}


@pytest.mark.real
@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", SINGLES)
def test_pods_that_are_no_group_have_a_job_each(world: World, name: str) -> None:
    """Bound where Slurm says, as their highest readable owner asks."""
    pods = support_groups.placed(world, name, SINGLES[name])
    jobs = support_groups.apart(world, pods)
    assert shown(world, {one.job_id for one in jobs}) == {("batch", "00:11:00")}


@pytest.mark.real
@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", GROUPS)
def test_pods_of_a_group_have_one_job(world: World, name: str) -> None:
    """Every group is bound by one placeholder, on nodes that Slurm gave, as its object asks."""
    group = GROUPS[name]
    pods = support_groups.placed(world, name, sum(group.sizes), LATER_SECONDS)
    jobs = support_groups.by_job(world, pods)
    assert sorted(map(len, jobs.values())) == sorted(group.sizes)
    for members in jobs.values():
        job = support_groups.together(world, members)
        assert (job.owner["kind"], job.owner["name"]) == (group.owner, name)
        assert job.text["tasks"]["number"] == len(members)
    assert shown(world, set(jobs)) == {("batch", "00:11:00")}


@pytest.mark.real
def test_a_group_is_packed_unless_its_user_spreads_it(world: World) -> None:
    """Four CPUs need one node; `min-nodes: 2` takes two."""
    assert len(support_groups.on_nodes(support_groups.placed(world, "ganged", 4))) == 1
    assert len(support_groups.on_nodes(support_groups.placed(world, "spread", 4))) >= 2


@pytest.mark.real
@pytest.mark.parametrize(("kind", "name"), [("PodGroup", "built-in"), ("CoschedulingPodGroup", "together")])
def test_t30_a_pod_group_is_told_once_that_it_is_scheduled(world: World, kind: str, name: str) -> None:
    """When all its members have a node; a daemon that comes back does not say it again."""
    support_groups.placed(world, name, 4)
    objects = Objects(world)
    wait.until(lambda: is_scheduled(objects.get(kind, name)), "status of the group", 15)
    before = objects.get(kind, name)["metadata"]["resourceVersion"]
    if kind == "PodGroup":  # one restart is enough for both: the later case looks at what it left
        assert world.daemon.stop() == 0
        world.daemon.start()
        world.daemon.await_ready()
        (late,) = world.create(support_world.pod("late", world.daemon.scheduler, annotations=support_world.FOREVER))
        world.await_pod(late["metadata"]["name"], "a node", support_world.is_bound)
    assert objects.get(kind, name)["metadata"]["resourceVersion"] == before


def is_scheduled(group: Json) -> bool:
    """In the words of either API."""
    status: Mapping[str, Any] = group.get("status") or {}
    said = support_servers.condition({"status": status}, "PodGroupScheduled")
    return said.get("status") == "True" or status.get("phase") in {"Scheduled", "Scheduling"}


@pytest.mark.real
@pytest.mark.timeout(120)
def test_nothing_is_left_when_everything_is_deleted(world: World) -> None:
    """No placeholder outlives the pods it stood for, whatever their owner is."""
    objects = Objects(world)
    for kind, name in (
        *(("Job", one) for one in ("plain", "ganged", "spread")),
        *(("JobSet", one) for one in ("whole", "steps")),
        *(("LeaderWorkerSet", one) for one in ("serve", "lead")),
        *(("Deployment", "web"), ("ReplicaSet", "always"), ("StatefulSet", "data")),
    ):
        objects.delete(kind, name)
    world.kube.delete(f"{world.path}?gracePeriodSeconds=2")
    world.await_nothing_in_slurm(30)
