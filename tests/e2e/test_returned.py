"""A daemon that comes back finds groups in every state, and does no more than what is left to do."""

import pytest

from slurm_bridge.model import names
from tests import wait
from tests.e2e import support_foreign, support_groups, support_kinds, support_world
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_groups import message
from tests.e2e.support_kinds import Objects
from tests.e2e.support_world import World

GANG = {names.JOB_PREFIX + "gang": "true"}
GPUS = {names.JOB_PREFIX + "partition": "gpu", names.JOB_PREFIX + "constraints": "gpu"}

#: A partition that is down: jobs wait there for ever.
CLOSED = {names.JOB_PREFIX + "partition": "closed"}


@pytest.fixture(scope="module")
def world(open_world: OpenWorld) -> World:
    """One daemon that is stopped and started again and again."""
    return open_world("returned", workloads={"incomplete_seconds": 2})


def group(world: World, name: str, size: int, pods: int, marks: dict[str, str] | None = None) -> None:
    """Bare pods that say of how many they are."""
    labels = {names.SCHEDULER_PREFIX + "group": name, names.SCHEDULER_PREFIX + "group-size": str(size)}
    annotations = {**support_world.FOREVER, **(marks or {})}
    support_kinds.grouped(world, name, pods, marks=annotations, labels=labels)


def await_job(world: World, kind: str, name: str) -> int:
    """The one living job of this object."""
    wait.until(lambda: len(support_groups.living_of(world, kind, name)) == 1, f"job of {name}", 20, every=0.3)
    return support_groups.living_of(world, kind, name)[0].job_id


def back(world: World) -> None:
    """Started again, and as far as to place a pod that came meanwhile."""
    name = support_groups.fresh("canary")
    world.create(support_world.pod(name, world.daemon.scheduler, annotations=support_world.SHORT))
    world.daemon.start()
    world.daemon.await_ready()
    world.await_pod(name, "success", support_world.has_succeeded)


@pytest.mark.real
@pytest.mark.timeout(120)
def test_t12_groups_are_left_as_they_were(world: World, foreign: support_foreign.Foreign) -> None:
    """Running, running on two kinds of nodes, waiting, and incomplete: the same jobs, and no more of them."""
    before = foreign.now()
    objects = Objects(world)
    worker = support_kinds.served(world, containers=support_kinds.containers(gpus=2))
    leader = support_kinds.served(world, containers=support_kinds.containers(gpus=5))
    spec = support_kinds.leader_worker_spec(worker, 3, leader=leader)
    objects.create("LeaderWorkerSet", "differs", spec, GPUS)
    objects.create("Job", "runs", support_kinds.job_spec(support_kinds.template(world), 3), GANG)
    group(world, "waits", 3, 3, CLOSED)
    group(world, "lacks", 3, 2)
    running = [
        support_groups.together(world, support_groups.placed(world, "runs", 3)).job_id,
        support_groups.together(world, support_groups.placed(world, "differs", 3, support_groups.HET_SECONDS)).job_id,
        await_job(world, "Group", "waits"),
    ]
    support_groups.awaited(world, "lacks", 2, support_world.waits_for("GangIncomplete"), "waiting")
    assert world.daemon.stop() == 0
    back(world)
    support_groups.await_only(world, *running)
    support_groups.together(world, support_groups.placed(world, "runs", 3))
    support_groups.together(world, support_groups.placed(world, "differs", 3))
    assert foreign.now() == before
    for kind, name in (("LeaderWorkerSet", "differs"), ("Job", "runs")):
        objects.delete(kind, name)
    world.kube.delete(f"{world.path}?gracePeriodSeconds=0")
    world.await_nothing_in_slurm(30)


@pytest.mark.real
@pytest.mark.timeout(120)
def test_t40_what_happened_to_groups_meanwhile_is_found(world: World) -> None:
    """A member that went before the start, a cancelled job, a suspended Job, a member that was missing and has come."""
    objects = Objects(world)
    objects.create("Job", "sleeps", support_kinds.job_spec(support_kinds.template(world), 3), GANG)
    group(world, "lost", 3, 3)
    group(world, "thinned", 3, 3, CLOSED)
    group(world, "grown", 3, 2)
    slept = support_groups.together(world, support_groups.placed(world, "sleeps", 3))
    cancelled = support_groups.together(world, support_groups.placed(world, "lost", 3))
    thinned = await_job(world, "Group", "thinned")
    assert world.daemon.stop() == 0
    world.slurm.cancel(cancelled.job_id)
    world.kube.delete(f"{world.path}/thinned-1?gracePeriodSeconds=0")
    objects.change("Job", "sleeps", suspend=True)
    third = support_world.pod("grown-2", world.daemon.scheduler, annotations=support_world.FOREVER)
    third["metadata"]["labels"] = {
        names.SCHEDULER_PREFIX + "group": "grown",
        names.SCHEDULER_PREFIX + "group-size": "3",
    }
    world.create(third)
    back(world)
    for number in range(3):
        world.await_gone(f"lost-{number}")
    grown = support_groups.together(world, support_groups.placed(world, "grown", 3))
    support_groups.await_only(world, grown.job_id)
    assert {slept.job_id, thinned} & {one.job_id for one in support_groups.living(world)} == set()
    left = support_groups.awaited(world, "thinned", 2, support_world.waits_for("GangIncomplete"), "incomplete")
    assert {"2 of 3" in message(one) for one in left} == {True}


@pytest.mark.real
@pytest.mark.timeout(120)
def test_groups_that_are_deleted_while_no_daemon_runs_leave_nothing(world: World) -> None:
    """All objects and pods go while the daemon is down; it cancels what stood for them."""
    objects = Objects(world)
    objects.create("Job", "gone", support_kinds.job_spec(support_kinds.template(world), 3), GANG)
    support_groups.together(world, support_groups.placed(world, "gone", 3))
    world.daemon.kill()
    objects.delete("Job", "gone")
    world.kube.delete(f"{world.path}?gracePeriodSeconds=0")
    wait.until(lambda: not world.pods(), "end of all pods", 20)
    back(world)
    world.await_nothing_in_slurm(60)
