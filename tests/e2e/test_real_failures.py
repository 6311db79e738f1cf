"""Parts of hybrid nodes are killed while pods with claims and native jobs run there: the failure matrix holds."""

import dataclasses
from collections.abc import Iterator, Mapping

import pytest

from tests import wait
from tests.e2e import (
    support_both,
    support_daemon,
    support_foreign,
    support_given,
    support_real,
    support_servers,
    support_world,
)
from tests.e2e.support_both import NODES, Both
from tests.e2e.support_devices import Claims
from tests.e2e.support_fixtures import OpenWorld

pytestmark = [pytest.mark.real, pytest.mark.disruptive, pytest.mark.timeout(600)]

DAEMON = "daemon"
#: All that can be killed here, in the order in which it starts.
PARTS = (
    "etcd",
    "kube-apiserver",
    "slurmctld",
    "slurmrestd",
    *(f"{node}-{part}" for node in NODES for part in ("machine", "containerd", "kubelet", "dra")),
    *(f"slurmd-{node}" for node in NODES),
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Kill:
    """What is killed, and whether the pods and the native jobs of real1 die of it; `deaf`: it takes no orders."""

    parts: tuple[str, ...]
    pods_die: bool = False
    native_die: bool = False
    deaf: bool = False


KILLS = {
    "slurmctld": Kill(parts=("slurmctld",)),
    "slurmrestd": Kill(parts=("slurmrestd",)),
    "kube-apiserver": Kill(parts=("kube-apiserver",), deaf=True),
    "etcd": Kill(parts=("etcd",), deaf=True),
    "kubelet": Kill(parts=("real1-kubelet",)),
    "containerd": Kill(parts=("real1-containerd",)),
    "driver": Kill(parts=("real1-dra",)),
    "daemon": Kill(parts=(DAEMON,)),
    "slurmd": Kill(parts=("slurmd-real1",), native_die=True),
    "node": Kill(parts=("slurmd-real1", "real1-machine"), pods_die=True, native_die=True),
}


#: A slurmd that starts misses only jobs that began longer ago (BatchStartTimeout, and a ping of slurmctld).
MISSED = 20.0


@pytest.fixture(scope="module")
def claims(cluster: Mapping[str, str], kube: support_servers.Kubernetes, open_world: OpenWorld) -> Iterator[Claims]:
    """A daemon with the hook on the real nodes."""
    support_real.require(cluster)
    with support_both.claims(kube, open_world, "failures") as made:
        yield made


@pytest.fixture(autouse=True)
def healed(claims: Claims) -> Iterator[None]:
    """Whatever was killed is started again, and no native job is left."""
    yield
    for part in PARTS:
        support_real.heal(part)
    if not claims.world.daemon.alive:
        claims.world.daemon.start()
    support_given.forget(claims.world)


def _kill(claims: Claims, part: str) -> None:
    if part == DAEMON:
        claims.world.daemon.kill()
    else:
        support_servers.part(part, "kill")


def _start(claims: Claims, kill: Kill) -> None:
    """With all that a power cut has ended."""
    for part in PARTS:
        support_real.heal(part)
    if DAEMON in kill.parts:
        claims.world.daemon.start()
    claims.world.daemon.await_ready()


@pytest.mark.parametrize("name", KILLS)
def test_what_runs_runs_on(claims: Claims, foreign: support_foreign.Foreign, name: str) -> None:
    """Processes that need not die are the same ones afterwards; no device is given twice, and nothing is left.

    A pod that ends meanwhile ends its job, one that comes meanwhile runs, and jobs of others stay as they are.
    """
    kill, both, before = KILLS[name], Both(claims), foreign.now()
    foreign.await_saved()
    seen = both.seen()
    wait.until(lambda: support_both.uptime() > max(seen.native.values()) + MISSED, "native jobs of some age", 60.0)
    for part in kill.parts:
        _kill(claims, part)
    if not kill.pods_die:
        both.hang_up()
    if not kill.deaf:
        both.create("meanwhile")
    _start(claims, kill)
    if kill.deaf:
        both.create("meanwhile")
    for one in ("brief", *(["pod-real1"] if kill.pods_die else ())):
        ended = claims.world.await_pod(one, "an end", support_world.is_over, 120.0)
        support_real.await_free(claims.world, ended["metadata"]["uid"], 120.0)
    for one in ("meanwhile", *(both.create(f"after-{node}", node) for node in NODES)):
        both.await_running(one)
    both.judge()
    now = both.seen()
    lost = {"brief", *(["pod-real1"] if kill.pods_die else [])}
    assert {pod: now.pods.get(pod) for pod in seen.pods} == {
        pod: None if pod in lost else what for pod, what in seen.pods.items()
    }
    gone = {both.native["real1"]} if kill.native_die else set()
    assert now.native == {job: began for job, began in seen.native.items() if job not in gone}
    both.end()
    assert foreign.now() == before


def test_a_node_that_leaves_slurm_ends_no_job_elsewhere(claims: Claims, slurm: support_servers.Slurm) -> None:
    """It is deleted, and slurmctld reads its configuration and then starts anew: what runs on others is the same."""
    name = support_daemon.fresh_name("leaves").replace("-", "")
    slurm.command("scontrol", "create", f"NodeName={name}", "NodeAddr=127.0.0.1", "CPUs=1", "State=EXTERNAL")
    both = Both(claims)
    seen = both.seen()
    slurm.command("scontrol", "delete", f"NodeName={name}")
    assert name not in slurm.command("sinfo", "--noheader", "--Node", "--all", "--format=%N").split()
    slurm.command("scontrol", "reconfigure")
    support_servers.part("slurmctld", "kill", "start")
    claims.world.daemon.await_ready()
    both.create("after")
    both.await_running("after")
    now = both.seen()
    assert {pod: now.pods.get(pod) for pod in seen.pods} == seen.pods
    assert now.native == seen.native
    both.judge()
    both.end()


def test_a_kubelet_that_starts_costs_no_allocation(claims: Claims, kube: support_servers.Kubernetes) -> None:
    """It deletes what the driver has published. A pod whose job starts now keeps its nodes and waits for the driver."""
    world = claims.world
    native = support_given.submit(world, "infinity", support_given.whole(4), "--nodelist=real1")
    support_real.await_state(world, native, "RUNNING")
    (made,) = world.create(support_given.pod(claims, "waits", "two", node="real1"))
    job = world.await_placeholder(made["metadata"]["uid"])
    support_servers.part("real1-dra", "pause")
    support_servers.part("real1-kubelet", "kill", "start")
    assert not support_both.published(kube, "real1")
    world.slurm.cancel(native)
    world.await_pod("waits", "words", support_world.waits_for("WaitsForDevices"), support_real.SECONDS)
    (late,) = world.create(support_given.pod(claims, "late", "two", node="real1"))
    world.await_pod("late", "words", support_world.waits_for("Unschedulable"), support_real.SECONDS)
    assert world.placeholder(late["metadata"]["uid"]) is None
    support_servers.part("real1-dra", "resume")
    wait.until(lambda: support_both.published(kube, "real1"), "devices of real1", 120.0)
    for name in ("waits", "late"):
        world.await_pod(name, "a process", support_real.runs, 120.0)
    runs = world.pod("waits")
    assert runs is not None
    assert support_world.job_id(runs) == job.job_id
    assert len(set(claims.held())) == len(claims.held()) == 4
    for name in ("waits", "late"):
        world.delete(name)
        world.await_gone(name)
