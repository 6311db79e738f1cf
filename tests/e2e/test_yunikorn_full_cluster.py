"""What is guaranteed holds on a full cluster, too, without a maximum anywhere.

The cluster is full of a resource that only the machine of this suite has: of CPUs there are always more.
"""

import contextlib
from collections.abc import Iterator

import pytest

from slurm_bridge.model import names
from tests import wait
from tests.e2e import (
    support_families,
    support_farm,
    support_observer,
    support_queues,
    support_servers,
    support_world,
)
from tests.e2e.support_families import pods
from tests.e2e.support_farm import Farm
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_queues import hook, pod, queue
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

pytestmark = pytest.mark.real

#: So many pods does the machine hold, by its CPUs and by what only it has.
PLACES = 3
SECONDS = 45.0
LEAVES = {"kwok.local/terminating": "1s"}


@pytest.fixture(scope="module")
def farm(kube: support_servers.Kubernetes, slurm: support_servers.Slurm) -> Iterator[Farm]:
    """A machine of our own."""
    with support_farm.built(kube, slurm, 0, cpus=PLACES) as made:
        yield made


@pytest.fixture(scope="module")
def widget(farm: Farm, kube: support_servers.Kubernetes) -> str:
    """What no other machine of the cluster has."""
    (node,), kind = farm.nodes, f"{farm.partition}.example.com/widget"
    there = {kind: str(PLACES)}
    kube.merge(f"/api/v1/nodes/{node}/status", {"status": {"capacity": there, "allocatable": there}})
    return kind


@pytest.fixture(scope="module")
def world(farm: Farm, widget: str, open_world: OpenWorld, kube: support_servers.Kubernetes) -> Iterator[World]:
    """One queue is entitled to one of them, the other one to none; nothing has a maximum."""
    entitled = queue("a", resources={"guaranteed": {widget: "1"}}, properties={"preemption.delay": "2s"})
    hooks = hook(queue("full", entitled, queue("b"), submitacl="*"))
    with support_families.granted(kube, "yunikorn"):
        yield open_world("full", hooks=hooks, defaults={"partition": farm.partition})


def holder(world: World, widget: str, name: str, path: str) -> Json:
    """A pod that takes a place."""
    made = pod(world, name, f"root.full.{path}", **LEAVES)
    for amounts in made["spec"]["containers"][0]["resources"].values():
        amounts[widget] = "1"
    made["spec"]["containers"][0]["resources"]["limits"] = {widget: "1"}
    return made


def gone(world: World) -> set[str]:
    """Of the pods that borrow, those that are gone or being deleted."""
    there = {one["metadata"]["name"] for one in world.pods() if "deletionTimestamp" not in one["metadata"]}
    return {"b1", "b2", "b3", "late"} - there


def test_a_pod_with_guaranteed_resources_gets_a_place_of_a_full_cluster(world: World, widget: str) -> None:
    """A borrower that waits in Slurm is taken back, one that runs is evicted; without a guarantee pods wait there."""
    with contextlib.ExitStack() as stack:
        for name in ("b1", "b2", "b3"):
            stack.enter_context(pods(world, holder(world, widget, name, "b")))
            world.await_pod(name, "a node", support_world.is_bound, SECONDS)
        (late,) = stack.enter_context(pods(world, holder(world, widget, "late", "b")))
        world.await_placeholder(late["metadata"]["uid"])
        (mine,) = stack.enter_context(pods(world, holder(world, widget, "mine", "a")))
        with support_observer.observing(world) as observer:
            world.await_pod("mine", "a node", support_world.is_bound, SECONDS)
            assert len(gone(world)) == 1
            assert "late" not in gone(world)
            assert not support_world.is_bound(world.kube.get(f"{world.path}/late"))
            wait.until(
                lambda: world.placeholder(late["metadata"]["uid"]) is not None, "job of the pod that was taken back"
            )
            events = {str(said["reason"]) for said in world.events(mine["metadata"]["uid"])}
            assert "PreemptionStarted" in events
            assert support_queues.shown(world)["root.full.a"]["used"][widget] == 1
            keys = {names.ANNOTATION_ROOM, names.ANNOTATION_MAKES_ROOM}
            wait.until(
                lambda: not any(keys & one["metadata"].get("annotations", {}).keys() for one in world.pods()),
                "end of what was noted",
            )
        assert observer.seen.wrong == set()


def test_another_one_borrows_no_more_than_there_is(world: World, widget: str) -> None:
    """Two places are guaranteed to no queue: they are not taken back for a pod that asks for a second one."""
    with contextlib.ExitStack() as stack:
        for name in ("b1", "b2"):
            stack.enter_context(pods(world, holder(world, widget, name, "b")))
            world.await_pod(name, "a node", support_world.is_bound, SECONDS)
        stack.enter_context(pods(world, holder(world, widget, "first", "a")))
        world.await_pod("first", "a node", support_world.is_bound, SECONDS)
        (second,) = stack.enter_context(pods(world, holder(world, widget, "second", "a")))
        world.await_placeholder(second["metadata"]["uid"])
        assert gone(world) == {"b3", "late"}
