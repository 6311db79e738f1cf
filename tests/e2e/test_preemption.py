"""Preemption on real servers: a more important pod takes the place of exactly one, and of none that is protected."""

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping

import pytest

from slurm_bridge.model import names
from tests import wait
from tests.e2e import support_daemon, support_families, support_farm, support_foreign, support_servers, support_world
from tests.e2e.support_farm import Farm
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

#: Two such pods do not fit together on a node, and one does beside a job of another Slurm user.
NODE_CPUS, CPUS, THEIR_CPUS = 64, "40", 20
#: Waiting for so long is enough to have others sent away.
AFTER = 3.0
PRIORITIES = {"low": 10, "high": 1000, "top": 2000}
#: Keeps a pod that was evicted for as long as the test wants.
KEPT = "tests.local/kept"


@contextlib.contextmanager
def levels(kube: support_servers.Kubernetes, suffix: str) -> Iterator[None]:
    """Classes of priority of our own."""
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    with contextlib.ExitStack() as stack:
        for level, value in PRIORITIES.items():
            kube.create(classes, {"metadata": {"name": f"{level}-{suffix}"}, "value": value})
            stack.callback(kube.delete, f"{classes}/{level}-{suffix}")
        yield


@pytest.fixture(scope="module")
def suffix() -> str:
    """Names what belongs to the whole cluster."""
    return support_daemon.fresh_name("e2e")


@pytest.fixture(scope="module")
def farm(kube: support_servers.Kubernetes, slurm: support_servers.Slurm) -> Iterator[Farm]:
    """Two nodes with names of their own in Kubernetes; no other pod takes what becomes free on them."""
    with support_farm.built(kube, slurm, 0, 0, cpus=NODE_CPUS, renamed=True) as made:
        yield made


@pytest.fixture(scope="module")
def world(farm: Farm, open_world: OpenWorld, kube: support_servers.Kubernetes, suffix: str) -> Iterator[World]:
    """A daemon with the hook; it ends before its nodes do."""
    assert farm.nodes
    with support_families.granted(kube, "preemption"), levels(kube, suffix):
        yield open_world("preempt", hooks=[{"name": "preemption", "options": {"after_seconds": AFTER}}])


@pytest.fixture(scope="module")
def theirs(slurm: support_servers.Slurm, farm: Farm) -> Iterator[int]:
    """A job of another Slurm user on one of the nodes, which leaves room for one such pod."""
    job = {**support_foreign.EXTERNAL, "name": "theirs", "partition": farm.partition, "cpus_per_task": THEIR_CPUS}
    job_id = slurm.submit(job)
    wait.until(lambda: state(slurm, job_id) == {"RUNNING"}, "foreign job")
    try:
        yield job_id
    finally:
        slurm.cancel(job_id)


def state(slurm: support_servers.Slurm, job_id: int) -> frozenset[str]:
    """The words of one job."""
    return next((one.states for one in slurm.jobs() if one.job_id == job_id), frozenset())


Create = Callable[..., Json]


@pytest.fixture(scope="module")
def create(world: World, farm: Farm, suffix: str) -> Create:
    """Makes pods of a priority that need more than half a node."""
    return functools.partial(created, world, farm, suffix)


def created(
    world: World, farm: Farm, suffix: str, name: str, level: str, labels: Mapping[str, str] | None = None
) -> Json:
    """A pod on the farm."""
    marks = {names.JOB_PREFIX + "partition": farm.partition, **support_world.FOREVER}
    containers = support_world.asks(cpu=CPUS, memory="64Mi")
    spec = {"priorityClassName": f"{level}-{suffix}", "containers": containers}
    manifest = support_world.pod(name, world.daemon.scheduler, annotations=marks, **spec)
    manifest["metadata"]["labels"] = dict(labels or {})
    (made,) = world.create(manifest)
    return made


def left(world: World) -> set[str]:
    """The pods that are there to stay."""
    return {one["metadata"]["name"] for one in world.pods() if "deletionTimestamp" not in one["metadata"]}


@pytest.fixture(scope="module")
def low(world: World, theirs: int, create: Create) -> list[Json]:
    """Both nodes are full."""
    assert theirs
    made = [create(name, "low", {"app": name}) for name in ("low-1", "low-2")]
    return [world.await_pod(one["metadata"]["name"], "a node", support_world.is_bound) for one in made]


@pytest.fixture(scope="module")
def taken(world: World, low: list[Json], create: Create) -> Json:
    """A pod that got its node from one of them, because a budget keeps the other."""
    budgets = f"/apis/policy/v1/namespaces/{world.namespace}/poddisruptionbudgets"
    kept = {"selector": {"matchLabels": {"app": "low-1"}}, "minAvailable": 1}
    world.kube.create(budgets, {"metadata": {"name": "keeps"}, "spec": kept})
    wait.until(lambda: world.kube.get(f"{budgets}/keeps").get("status", {}).get("currentHealthy") == 1, "budget")
    create("high-1", "high")
    assert low
    return world.await_pod("high-1", "a node", support_world.is_bound, 90.0)


@pytest.mark.real
def test_exactly_one_pod_makes_room(world: World, low: list[Json], taken: Json, theirs: int) -> None:
    """The one that no budget protects; both pods are told, and the other user's job is not touched."""
    assert left(world) == {"low-1", "high-1"}
    assert taken["spec"]["nodeName"] == low[1]["spec"]["nodeName"]
    said = [(one["reason"], one["message"]) for one in world.events(low[1]["metadata"]["uid"])]
    assert ("Preempted", f"Preempted by {world.namespace}/high-1 on node {taken['spec']['nodeName']}") in said
    wait.until(lambda: "PreemptionStarted" in world.reasons(taken["metadata"]["uid"]), "event")
    assert world.placeholder(low[1]["metadata"]["uid"]) is None
    assert state(world.slurm, theirs) == {"RUNNING"}


@pytest.mark.real
def test_what_a_budget_keeps_stays_until_it_may_go(world: World, low: list[Json], taken: Json, create: Create) -> None:
    """The next one waits in Slurm; without the budget it gets the place of the other."""
    made = create("high-2", "high")
    job = world.await_placeholder(made["metadata"]["uid"])
    slow = create("low-3", "low")
    world.await_placeholder(slow["metadata"]["uid"])
    wait.until(lambda: waited(world, job.job_id) > 3 * AFTER, "some tries in vain", 60.0, every=0.5)
    assert left(world) == {"low-1", "low-3", "high-1", "high-2"}
    world.kube.delete(f"/apis/policy/v1/namespaces/{world.namespace}/poddisruptionbudgets/keeps")
    bound = world.await_pod("high-2", "a node", support_world.is_bound, 90.0)
    assert bound["spec"]["nodeName"] == low[0]["spec"]["nodeName"] != taken["spec"]["nodeName"]
    assert left(world) == {"low-3", "high-1", "high-2"}


@pytest.mark.real
def test_a_daemon_that_dies_between_eviction_and_end_loses_nothing(
    world: World, low: list[Json], taken: Json, create: Create
) -> None:
    """Killed while the victim is leaving: its successor keeps the node, and no other pod is evicted."""
    assert low
    assert taken
    before = left(world)
    running = [one["metadata"]["name"] for one in world.pods() if support_world.is_bound(one)]
    for name in running:
        world.kube.merge(f"{world.path}/{name}", {"metadata": {"finalizers": [KEPT]}})
    create("top", "top")
    wait.until(lambda: before - left(world), "eviction", 60.0)
    world.daemon.kill()
    for name in running:
        world.kube.merge(f"{world.path}/{name}", {"metadata": {"finalizers": None}})
    world.daemon.start()
    world.daemon.await_ready()
    world.await_pod("top", "a node", support_world.is_bound, 90.0)
    assert len(before - left(world)) == 1
    assert left(world) - before == {"top"}


def waited(world: World, job_id: int) -> int:
    """For how many seconds a job has been in Slurm's queue, by Slurm's clock."""
    now = int(world.slurm.command("date", "+%s"))
    (one,) = [one for one in world.slurm.jobs() if one.job_id == job_id]
    assert "PENDING" in one.states
    return now - int(one.text["submit_time"]["number"])
