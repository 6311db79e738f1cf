"""Two hundred pods and a Job of fifty: bound exactly where Slurm allocated, and nothing left in Slurm afterwards."""

from collections.abc import Mapping

import pytest

from slurm_bridge.model import names
from tests import wait
from tests.e2e import support_farm, support_foreign, support_servers, support_world
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

PODS, MEMBERS = 200, 50

Crowd = tuple[World, list[Json]]


@pytest.fixture(scope="module")
def crowd(open_world: OpenWorld, foreign: support_foreign.Foreign) -> Crowd:
    """All pods bound, and none of them over."""
    assert foreign.jobs
    world = open_world("crowd")
    world.create_job(support_world.job("many", world.daemon.scheduler, MEMBERS, annotations=support_world.FOREVER))
    world.create_pods("bare", PODS, support_world.FOREVER)
    return world, world.await_bound(PODS + MEMBERS)


@pytest.mark.real
@pytest.mark.timeout(180)
def test_every_pod_runs_where_slurm_allocated(crowd: Crowd, kube: support_servers.Kubernetes) -> None:
    """What squeue says of a pod's job is what Kubernetes says of the pod."""
    world, pods = crowd
    # Others have heterogeneous jobs, whose components call themselves 7+0.
    rows = world.slurm.table("squeue", "--noheader", "--format=%i %T %N")
    table = {int(row[0]): row[1:] for row in rows if "+" not in row[0]}
    aliases = slurm_names(kube)
    for one in pods:
        where = one["metadata"]["annotations"][names.ANNOTATION_SLURM_NODE]
        assert table[support_world.job_id(one)] == ["RUNNING", where]
        assert aliases[one["spec"]["nodeName"]] == where


@pytest.mark.real
def test_every_pod_has_a_job_of_its_own(crowd: Crowd) -> None:
    """One placeholder per pod, whose record names exactly that pod; none twice, none for another pod.

    Others may have filled a node meanwhile: then its jobs were replaced, and are over.
    """
    world, pods = crowd
    jobs = [one for one in world.slurm.jobs_of(world.daemon.cluster_id) if one.alive]
    assert {one.owner["uid"]: one.job_id for one in jobs} == {
        one["metadata"]["uid"]: support_world.job_id(one) for one in pods
    }
    assert len(jobs) == len(pods)


@pytest.mark.real
def test_a_job_takes_what_its_pod_asks_for(crowd: Crowd) -> None:
    """One CPU and 64 MiB each, as the configured user, and not a whole node."""
    world, pods = crowd
    shown = world.slurm.shown(support_world.job_id(pods[0]))
    assert (shown["NumNodes"], shown["NumCPUs"], shown["MinMemoryNode"]) == ("1", "1", "64M")
    assert shown["UserId"].startswith("slurm-bridge(")


@pytest.mark.real
@pytest.mark.timeout(180)
def test_nothing_is_left_when_all_have_finished(crowd: Crowd, foreign: support_foreign.Foreign) -> None:
    """Every pod succeeds, every placeholder ends, the Job is complete, and jobs of others are as they were."""
    world, pods = crowd
    before = foreign.now()
    world.finish(pods)
    world.await_pods("success", support_world.has_succeeded, count=PODS + MEMBERS)
    world.await_nothing_in_slurm()
    path = f"/apis/batch/v1/namespaces/{world.namespace}/jobs/many"
    wait.until(lambda: world.kube.get(path)["status"].get("succeeded") == MEMBERS, "complete Job")
    assert world.kube.get(path)["status"].get("failed", 0) == 0
    assert foreign.now() == before


@pytest.mark.real
def test_people_see_as_many_nodes_on_both_sides(kube: support_servers.Kubernetes, cluster: Mapping[str, str]) -> None:
    """Kubernetes and sinfo agree on the machines, by their names in Slurm."""
    known = support_servers.said(cluster["SLURM_EXEC"], "sinfo", "--noheader", "--Node", "--format=%N")
    assert set(slurm_names(kube).values()) == {one for one in known.split() if not one.startswith(support_farm.PREFIX)}
    assert len(slurm_names(kube)) == int(cluster["NODES"]) + int(cluster["REAL_NODES"])


def slurm_names(kube: support_servers.Kubernetes) -> dict[str, str]:
    """What Slurm calls each node; machines that other tests have for themselves come and go."""
    known = [one["metadata"] for one in kube.items("/api/v1/nodes")]
    found = [one for one in known if not one["name"].startswith(support_farm.PREFIX)]
    return {one["name"]: one["labels"].get(names.LABEL_SLURM_NODE_NAME, one["name"]) for one in found}
