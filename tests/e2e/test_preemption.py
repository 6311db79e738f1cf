"""Preemption on real servers: a more important pod takes the place of exactly one, and of nobody whom it may not."""

import contextlib
from collections.abc import Iterator, Mapping

import pytest
import yaml

from localcluster.config import PROJECT
from slurm_bridge.model import names
from tests import waiting
from tests.e2e import support_daemon, support_foreign, support_servers, support_world
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

#: Two nodes with names of their own in Kubernetes, on which two such pods do not fit together.
PARTITION = "mapped"
CPUS = "40"
#: Waiting for so long is enough to have others sent away.
AFTER = 3.0
PRIORITIES = {"low": 10, "high": 1000, "top": 2000}
#: Keeps a pod that was evicted for as long as the test wants.
KEPT = "tests.local/kept"

RIGHTS = PROJECT / "deploy" / "preemption" / "rbac.yaml"


@contextlib.contextmanager
def granted(kube: support_servers.Kubernetes, suffix: str) -> Iterator[None]:
    """The rights of deploy/preemption under a name of their own, and classes of priority."""
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    role, binding = yaml.safe_load_all(RIGHTS.read_text())
    name = f"slurm-bridge-preemption-{suffix}"
    role["metadata"]["name"] = binding["metadata"]["name"] = binding["roleRef"]["name"] = name
    with contextlib.ExitStack() as stack:
        for path, one in ((roles, role), (bindings, binding)):
            kube.create(path, one)
            stack.callback(kube.delete, f"{path}/{name}")
        for level, value in PRIORITIES.items():
            kube.create(classes, {"metadata": {"name": f"{level}-{suffix}"}, "value": value})
            stack.callback(kube.delete, f"{classes}/{level}-{suffix}")
        yield


@pytest.fixture(scope="module")
def suffix() -> str:
    """Names what belongs to the whole cluster."""
    return support_daemon.fresh_name("e2e")


@pytest.fixture(scope="module")
def world(open_world: OpenWorld, kube: support_servers.Kubernetes, suffix: str) -> Iterator[World]:
    """A daemon with the hook."""
    with granted(kube, suffix):
        yield open_world("preempt", hooks=[{"name": "preemption", "options": {"after_seconds": AFTER}}])


@pytest.fixture(scope="module")
def theirs(slurm: support_servers.Slurm) -> Iterator[int]:
    """A job of somebody else on one of the nodes, which leaves room for one such pod."""
    job = {**support_foreign.EXTERNAL, "name": "theirs", "partition": PARTITION, "cpus_per_task": 20}
    job_id = slurm.submit(job)
    waiting.until(lambda: state(slurm, job_id) == {"RUNNING"}, "foreign job")
    try:
        yield job_id
    finally:
        slurm.cancel(job_id)


def state(slurm: support_servers.Slurm, job_id: int) -> frozenset[str]:
    """The words of one job."""
    return next((one.states for one in slurm.jobs() if one.job_id == job_id), frozenset())


def create(world: World, name: str, level: str, suffix: str, labels: Mapping[str, str] | None = None) -> Json:
    """A pod of that priority that needs more than half a node."""
    marks = {names.JOB_PREFIX + "partition": PARTITION, **support_world.FOREVER}
    containers = support_world.asks(cpu=CPUS, memory="64Mi")
    tolerated = [{"key": "local-cluster/partition", "operator": "Exists"}]
    spec = {"priorityClassName": f"{level}-{suffix}", "containers": containers, "tolerations": tolerated}
    manifest = support_world.pod(name, world.daemon.scheduler, annotations=marks, **spec)
    manifest["metadata"]["labels"] = dict(labels or {})
    (made,) = world.create(manifest)
    return made


def left(world: World) -> set[str]:
    """The pods that are there to stay."""
    return {one["metadata"]["name"] for one in world.pods() if "deletionTimestamp" not in one["metadata"]}


@pytest.fixture(scope="module")
def low(world: World, theirs: int, suffix: str) -> list[Json]:
    """Both nodes are full."""
    assert theirs
    made = [create(world, name, "low", suffix, {"app": name}) for name in ("low-1", "low-2")]
    return [world.await_pod(one["metadata"]["name"], "a node", support_world.is_bound) for one in made]


@pytest.fixture(scope="module")
def taken(world: World, low: list[Json], suffix: str) -> Json:
    """A pod that got its node from one of them, because a budget keeps the other."""
    budgets = f"/apis/policy/v1/namespaces/{world.namespace}/poddisruptionbudgets"
    kept = {"selector": {"matchLabels": {"app": "low-1"}}, "minAvailable": 1}
    world.kube.create(budgets, {"metadata": {"name": "keeps"}, "spec": kept})
    waiting.until(lambda: world.kube.get(f"{budgets}/keeps").get("status", {}).get("currentHealthy") == 1, "budget")
    create(world, "high-1", "high", suffix)
    assert low
    return world.await_pod("high-1", "a node", support_world.is_bound, 90.0)


@pytest.mark.real
def test_exactly_one_pod_makes_room(world: World, low: list[Json], taken: Json, theirs: int) -> None:
    """The one that no budget keeps; both are told, and the job of somebody else never knew."""
    assert left(world) == {"low-1", "high-1"}
    assert taken["spec"]["nodeName"] == low[1]["spec"]["nodeName"]
    said = [(one["reason"], one["message"]) for one in world.events(low[1]["metadata"]["uid"])]
    assert ("Preempted", f"Preempted by {world.namespace}/high-1 on node {taken['spec']['nodeName']}") in said
    waiting.until(lambda: "PreemptionStarted" in world.reasons(taken["metadata"]["uid"]), "event")
    assert world.placeholder(low[1]["metadata"]["uid"]) is None
    assert state(world.slurm, theirs) == {"RUNNING"}


@pytest.mark.real
def test_what_a_budget_keeps_stays_until_it_may_go(world: World, low: list[Json], taken: Json, suffix: str) -> None:
    """The next one waits in Slurm; without the budget it gets the place of the other."""
    made = create(world, "high-2", "high", suffix)
    job = world.await_placeholder(made["metadata"]["uid"])
    slow = create(world, "low-3", "low", suffix)
    world.await_placeholder(slow["metadata"]["uid"])
    waiting.until(lambda: waited(world, job.job_id) > 3 * AFTER, "some tries in vain", 60.0, every=0.5)
    assert left(world) == {"low-1", "low-3", "high-1", "high-2"}
    world.kube.delete(f"/apis/policy/v1/namespaces/{world.namespace}/poddisruptionbudgets/keeps")
    bound = world.await_pod("high-2", "a node", support_world.is_bound, 90.0)
    assert bound["spec"]["nodeName"] == low[0]["spec"]["nodeName"] != taken["spec"]["nodeName"]
    assert left(world) == {"low-3", "high-1", "high-2"}


@pytest.mark.real
def test_a_daemon_that_dies_between_eviction_and_end_loses_nothing(
    world: World, low: list[Json], taken: Json, suffix: str
) -> None:
    """Killed while the victim is leaving: its successor keeps the node, and nobody else goes."""
    assert low
    assert taken
    before = left(world)
    running = [one["metadata"]["name"] for one in world.pods() if support_world.is_bound(one)]
    for name in running:
        world.kube.merge(f"{world.path}/{name}", {"metadata": {"finalizers": [KEPT]}})
    create(world, "top", "top", suffix)
    waiting.until(lambda: before - left(world), "eviction", 60.0)
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
