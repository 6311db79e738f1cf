"""Objects of a kind that only the site knows: their pods run singly, as they ask, and they hide no group below them."""

import contextlib
import http
from collections.abc import Iterator

import pytest

from slurm_bridge.model import names
from tests import wait
from tests.e2e import (
    support_daemon,
    support_definitions,
    support_groups,
    support_kinds,
    support_servers,
    support_world,
)
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_kinds import Objects
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

ASKED = {names.JOB_PREFIX + "partition": "batch", names.JOB_PREFIX + "timelimit": "11"}
RIGHTS = "/apis/rbac.authorization.k8s.io/v1"


@contextlib.contextmanager
def defined(kube: support_servers.Kubernetes, group: str) -> Iterator[str]:
    """A kind of another operator, which the daemon may read because an administrator allowed it."""
    head = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": group}}
    rules = [{"apiGroups": [group], "resources": ["trainings"], "verbs": ["get"]}]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": group}
    subjects = [{"kind": "ServiceAccount", "name": "slurm-bridge", "namespace": "slurm-bridge-system"}]
    try:
        kube.create(f"{RIGHTS}/clusterroles", {**head, "kind": "ClusterRole", "rules": rules})
        bound = {**head, "kind": "ClusterRoleBinding", "roleRef": role, "subjects": subjects}
        kube.create(f"{RIGHTS}/clusterrolebindings", bound)
        with support_definitions.served(kube, group, "v1", "Training", "trainings"):
            yield group
    finally:
        kube.delete(f"{RIGHTS}/clusterrolebindings/{group}")
        kube.delete(f"{RIGHTS}/clusterroles/{group}")


@pytest.fixture(scope="module")
def world(kube: support_servers.Kubernetes, open_world: OpenWorld) -> Iterator[tuple[World, Json]]:
    """A daemon, and an owner of the unknown kind."""
    with defined(kube, f"{support_daemon.fresh_name('operator')}.local") as group:
        world = open_world("above", owners=[{"api_version": f"{group}/v1", "kind": "Training", "plural": "trainings"}])
        path = f"/apis/{group}/v1/namespaces/{world.namespace}/trainings"
        body = {
            "apiVersion": f"{group}/v1",
            "kind": "Training",
            "metadata": {"name": "model", "annotations": ASKED},
            "spec": {},
        }
        wait.until(lambda: made(kube, path, body), "owner", 20)
        yield world, kube.get(f"{path}/model")


def made(kube: support_servers.Kubernetes, path: str, body: Json) -> bool:
    """The API server needs a moment until it takes objects of a kind that is new."""
    try:
        kube.create(path, body)
    except support_servers.Refused as refusal:
        if refusal.status != http.HTTPStatus.NOT_FOUND:
            raise
        return False
    return True


def below(owner: Json) -> list[Json]:
    """What its operator writes on what it makes."""
    metadata = owner["metadata"]
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata["name"]}
    return [{**reference, "uid": metadata["uid"], "controller": True}]


@pytest.mark.real
def test_pods_of_an_unknown_owner_run_singly_as_it_asks(world: tuple[World, Json]) -> None:
    """Its annotations count, because it may be read."""
    bridge, owner = world
    for number in range(2):
        one = support_world.pod(f"plain-{number}", bridge.daemon.scheduler, annotations=support_world.FOREVER)
        one["metadata"]["ownerReferences"] = below(owner)
        bridge.create(one)
    jobs = support_groups.apart(bridge, support_groups.placed(bridge, "plain", 2))
    assert {shown(bridge, one.job_id) for one in jobs} == {("batch", "00:11:00")}


@pytest.mark.real
def test_t08_an_unknown_owner_above_a_jobset_does_not_hide_it(world: tuple[World, Json]) -> None:
    """The JobSet is still one group."""
    bridge, owner = world
    objects, pods = Objects(bridge), support_kinds.template(bridge)
    spec = support_kinds.job_set_spec({"all": support_kinds.job_spec(pods, 3)})
    path = objects.path("JobSet")
    body = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "spec": spec}
    bridge.kube.create(path, {**body, "metadata": {"name": "owned", "ownerReferences": below(owner)}})
    job = support_groups.together(bridge, support_groups.placed(bridge, "owned", 3))
    assert (job.owner["kind"], job.owner["name"]) == ("JobSet", "owned")


def shown(world: World, job_id: int) -> tuple[str, str]:
    """What slurmctld keeps of what was asked."""
    words = world.slurm.shown(job_id)
    return words["Partition"], words["TimeLimit"]
