"""Pods of real controllers: annotations are read from the object that the user wrote, whatever stands between."""

from collections.abc import Mapping

import pytest

from slurm_bridge.model import names
from tests import waiting
from tests.e2e import support_world
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

ASKED = {names.JOB_PREFIX + "partition": "batch", names.JOB_PREFIX + "timelimit": "11"}


@pytest.fixture(scope="module")
def world(open_world: OpenWorld) -> World:
    """One daemon for all owners."""
    return open_world("owners")


def template(world: World, annotations: Mapping[str, str], **spec: object) -> Json:
    """A pod without a name."""
    made = support_world.pod("unnamed", world.daemon.scheduler, annotations=annotations, **spec)
    return {"metadata": {"annotations": made["metadata"]["annotations"]}, "spec": made["spec"]}


def job_set(world: World) -> Json:
    """Two Jobs of two pods; what is asked of Slurm stands at the top."""
    pods = template(world, support_world.SHORT)
    jobs = {"spec": {"parallelism": 2, "completions": 2, "template": pods}}
    spec = {"replicatedJobs": [{"name": "workers", "replicas": 2, "template": jobs}]}
    kind = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}
    return {**kind, "metadata": {"name": "pair", "annotations": ASKED}, "spec": spec}


def leader_worker_set(world: World) -> Json:
    """One group of a leader and two workers."""
    spec = {
        "replicas": 1,
        "leaderWorkerTemplate": {"size": 3, "workerTemplate": template(world, {}, restartPolicy="Always")},
    }
    kind = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet"}
    return {**kind, "metadata": {"name": "serve", "annotations": ASKED}, "spec": spec}


def deployment(world: World) -> Json:
    """Two replicas, with a ReplicaSet between."""
    marks = {"app": "web"}
    pods = template(world, support_world.FOREVER, restartPolicy="Always")
    pods["metadata"]["labels"] = marks
    spec = {"replicas": 2, "selector": {"matchLabels": marks}, "template": pods}
    kind = {"apiVersion": "apps/v1", "kind": "Deployment"}
    return {**kind, "metadata": {"name": "web", "annotations": ASKED}, "spec": spec}


def pods_of(world: World, prefix: str) -> list[Json]:
    """By their names, which controllers make from their own."""
    return [one for one in world.pods() if one["metadata"]["name"].startswith(prefix)]


def placed(world: World, prefix: str, count: int) -> list[Json]:
    """All of them bound, each by a job that shows what the owner asked for."""
    waiting.until(
        lambda: len(pods_of(world, prefix)) == count and all(map(support_world.is_bound, pods_of(world, prefix))),
        f"{count} bound pods {prefix}*: {[support_world.told(one) for one in pods_of(world, prefix)]}",
    )
    found = pods_of(world, prefix)
    for one in found:
        shown = world.slurm.shown(support_world.job_id(one))
        assert (shown["Partition"], shown["TimeLimit"]) == ("batch", "00:11:00")
        assert shown["NodeList"] == one["metadata"]["annotations"][names.ANNOTATION_SLURM_NODE]
    assert len({support_world.job_id(one) for one in found}) == count
    return found


@pytest.mark.real
@pytest.mark.timeout(180)
def test_pods_of_a_jobset_run_as_the_jobset_asks(world: World) -> None:
    """Four pods of two Jobs, each with a placeholder; they succeed and the JobSet is complete."""
    path = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{world.namespace}/jobsets"
    world.kube.create(path, job_set(world))
    placed(world, "pair-", 4)
    waiting.until(lambda: world.kube.get(f"{path}/pair")["status"].get("terminalState") == "Completed", "end")


@pytest.mark.real
@pytest.mark.timeout(180)
def test_pods_of_a_leaderworkerset_run_as_it_asks(world: World) -> None:
    """Leader and workers run; when the group is deleted, its placeholders end."""
    path = f"/apis/leaderworkerset.x-k8s.io/v1/namespaces/{world.namespace}/leaderworkersets"
    world.kube.create(path, leader_worker_set(world))
    uids = {one["metadata"]["uid"] for one in placed(world, "serve-", 3)}
    world.kube.delete(f"{path}/serve")
    waiting.until(lambda: not uids & {one.owner["uid"] for one in world.slurm.alive(world.daemon.cluster_id)}, "end")


@pytest.mark.real
@pytest.mark.timeout(180)
def test_pods_of_a_deployment_run_as_the_deployment_asks(world: World) -> None:
    """Through the ReplicaSet, which carries copies of some annotations and none of the others."""
    world.kube.create(f"/apis/apps/v1/namespaces/{world.namespace}/deployments", deployment(world))
    assert placed(world, "web-", 2)
