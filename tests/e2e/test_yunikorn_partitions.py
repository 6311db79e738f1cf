"""Two partitions of Slurm with queues of their own: native jobs make one smaller, and guarantees hold in each."""

import contextlib
from collections.abc import Iterator, Mapping

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
from tests.e2e.support_queues import page, pod, queue, says
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

pytestmark = pytest.mark.real

CPUS = 8
SECONDS = 60.0
#: A native job counts as soon as two reads of Slurm have found it.
READ = 120.0
PARTITION = names.JOB_PREFIX + "partition"
EXCLUSIVE = {names.JOB_PREFIX + "exclusive": "true"}
LEAVES = {"kwok.local/terminating": "1s"}


@pytest.fixture(scope="module")
def farms(kube: support_servers.Kubernetes, slurm: support_servers.Slurm) -> Iterator[tuple[Farm, Farm]]:
    """Two machines in each of two partitions of Slurm."""
    with (
        support_farm.built(kube, slurm, 0, 0, cpus=CPUS) as first,
        support_farm.built(kube, slurm, 0, 0, cpus=CPUS) as second,
    ):
        yield first, second


def partition(farm: Farm) -> Json:
    """Its queues: one of them is entitled to a machine."""
    entitled = queue("mine", resources={"guaranteed": {"vcore": str(CPUS)}}, properties={"preemption.delay": "2s"})
    root = queue("root", entitled, queue("b"), submitacl="*")
    return {"name": farm.partition, "placementrules": [{"name": "provided"}], "queues": [root]}


@pytest.fixture(scope="module")
def world(farms: tuple[Farm, Farm], open_world: OpenWorld, kube: support_servers.Kubernetes) -> Iterator[World]:
    """Workloads that name no partition are in the first one."""
    configuration = {"partitions": [partition(one) for one in farms]}
    hooks = [{"name": "yunikorn", "options": {"configuration": configuration, "partitions": "slurm"}}]
    with support_families.granted(kube, "yunikorn"):
        yield open_world("parts", hooks=hooks, defaults={"partition": farms[0].partition})


def of(world: World, farm: Farm) -> Json:
    """What the page shows of a partition; {} before it shows any."""
    found: Json = next((one for one in page(world).get("partitions", ()) if one["partition"] == farm.partition), {})
    return found


def size(world: World, farm: Farm) -> int:
    """Of a partition, in cpus."""
    return int(of(world, farm).get("size", {}).get("vcore", 0)) // 1000


def used(world: World, farm: Farm) -> int:
    """In all queues of a partition, in cpus."""
    return int((of(world, farm).get("queues") or {}).get("used", {}).get("vcore", 0)) // 1000


def to(world: World, name: str, path: str, farm: Farm, cpu: str = "1", marks: Mapping[str, str] = {}) -> Json:
    """A pod for a queue of a partition."""
    return pod(world, name, path, cpu=cpu, **{PARTITION: farm.partition, **LEAVES, **marks})


def await_bound(world: World, *names_: str) -> None:
    """All of these have nodes."""
    for name in names_:
        world.await_pod(name, "a node", support_world.is_bound, SECONDS)


def await_size(world: World, farm: Farm, cpus: int) -> None:
    """The page shows that the partition has so many."""
    wait.until(lambda: size(world, farm) == cpus, f"size {cpus} of partition {farm.partition}", READ, every=1.0)


def test_a_native_job_makes_its_partition_smaller_and_no_other_one(world: World, farms: tuple[Farm, Farm]) -> None:
    """A guarantee is met out of what is left: as many pods are evicted as that takes, all of the same partition."""
    first, second = farms
    with contextlib.ExitStack() as stack:
        stack.enter_context(pods(world, to(world, "neighbour", "root.b", first)))
        await_bound(world, "neighbour")
        await_size(world, first, 2 * CPUS)
        await_size(world, second, 2 * CPUS)
        stack.enter_context(support_families.taken(world.slurm, second, second.slurm_nodes[0], cpus=CPUS))
        await_size(world, second, CPUS)
        assert size(world, first) == 2 * CPUS
        borrowers = [f"b{number}" for number in range(1, 3)]
        for name in borrowers:
            stack.enter_context(pods(world, to(world, name, "root.b", second, cpu=str(CPUS // 2))))
        await_bound(world, *borrowers)
        assert used(world, second) == CPUS
        with support_observer.observing(world) as observer:
            (mine,) = stack.enter_context(pods(world, to(world, "mine", "root.mine", second, cpu=str(CPUS // 2))))
            await_bound(world, "mine")
            assert "PreemptionStarted" in world.reasons(mine["metadata"]["uid"])
        assert observer.seen.wrong == set()
        left = {one["metadata"]["name"] for one in world.pods() if "deletionTimestamp" not in one["metadata"]}
        assert len(left & {*borrowers}) == 1
        assert "neighbour" in left


def test_an_exclusive_pod_counts_with_its_whole_node(world: World, farms: tuple[Farm, Farm]) -> None:
    """It asks for one cpu. Slurm says the same, and its partition does not become smaller by that."""
    first, second = farms
    await_size(world, first, 2 * CPUS)
    with pods(world, to(world, "whole", "root.b", first, marks=EXCLUSIVE)):
        seen = world.await_pod("whole", "a node", support_world.is_bound, SECONDS)
        assert used(world, first) == CPUS
        assert world.slurm.shown(support_world.job_id(seen))["NumCPUs"] == str(CPUS)
        assert (used(world, second), size(world, first)) == (0, 2 * CPUS)
        shown = support_queues.command(world)
        assert [one["partition"] for one in shown["partitions"]] == [first.partition, second.partition]


def test_a_pod_for_both_partitions_is_refused(world: World, farms: tuple[Farm, Farm]) -> None:
    """Slurm hears nothing of it."""
    wanted = [one.partition for one in farms]
    words = (
        f"asks for the Slurm partitions {', '.join(wanted)}, and a workload is in the queues of one: "
        f"name one of {', '.join(sorted(wanted))} in the annotation slurmjob.slinky.slurm.net/partition"
    )
    with pods(world, pod(world, "torn", "root.b", **{PARTITION: ",".join(wanted)})) as (torn,):
        world.await_pod("torn", words, says("QueueRejected", words), SECONDS)
        assert world.placeholders(torn["metadata"]["uid"]) == []
