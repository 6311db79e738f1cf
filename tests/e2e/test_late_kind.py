"""A kind that the cluster does not serve yet: nothing waits for it, and it is watched once it appears."""

import contextlib
import http
from collections.abc import Iterator

import pytest

from tests import wait
from tests.e2e import support_groups, support_kinds, support_servers, support_world
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_kinds import Objects

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEFINITION = f"{DEFINITIONS}/podgroups.scheduling.x-k8s.io"
LABEL = "scheduling.x-k8s.io/pod-group"

#: Discovery is asked every thirty seconds.
SECONDS = 60.0


@contextlib.contextmanager
def without_definition(kube: support_servers.Kubernetes) -> Iterator[None]:
    """As in a cluster without the coscheduling plugin; it is there again afterwards."""
    known = kube.get(DEFINITION)
    metadata = {"name": known["metadata"]["name"], "annotations": known["metadata"].get("annotations", {})}
    kube.delete(DEFINITION)
    wait.until(lambda: kube.find(DEFINITION) is None and not is_served(kube), "end of the definition", 30)
    try:
        yield
    finally:
        head = {"apiVersion": known["apiVersion"], "kind": known["kind"]}
        kube.create(DEFINITIONS, {**head, "metadata": metadata, "spec": known["spec"]})
        wait.until(lambda: is_served(kube), "served group", 30)


def is_served(kube: support_servers.Kubernetes) -> bool:
    """The API server lists the group of the definition."""
    return "scheduling.x-k8s.io" in {one["name"] for one in kube.get("/apis")["groups"]}


@pytest.mark.real
@pytest.mark.disruptive
@pytest.mark.timeout(150)
def test_a_kind_that_appears_is_picked_up_without_a_restart(
    open_world: OpenWorld, kube: support_servers.Kubernetes
) -> None:
    """Pods with its label run singly before, like any others, and as a group once the kind is served."""
    with without_definition(kube):
        world = open_world("late")
        support_kinds.grouped(world, "early", 2, marks=support_world.FOREVER, labels={LABEL: "early"})
        support_groups.apart(world, support_groups.placed(world, "early", 2))
    pid, tries = world.daemon.pid, iter(range(1000))

    def grouped() -> bool:
        name = f"late-{next(tries)}"
        wait.until(lambda: created(Objects(world), name), "new PodGroup", 10)
        support_kinds.grouped(world, name, 2, marks=support_world.FOREVER, labels={LABEL: name})
        pods = support_groups.placed(world, name, 2)
        return len({support_world.job_id(one) for one in pods}) == 1

    wait.until(grouped, "group that is placed as one", SECONDS, every=2.0)
    assert (world.daemon.alive, world.daemon.pid) == (True, pid)


def created(objects: Objects, name: str) -> bool:
    """The API server needs a moment until it accepts objects of a kind that is new."""
    try:
        objects.create("CoschedulingPodGroup", name, {"minMember": 2})
    except support_servers.Refused as refusal:
        if refusal.status != http.HTTPStatus.NOT_FOUND:
            raise
        return False
    return True
