"""The daemon and slurmctld are killed while groups go through: each is bound whole by one job, or not at all."""

import concurrent.futures
import random
import threading

import pytest

from slurm_bridge.model import names
from tests import wait
from tests.chaos.support_size import Size
from tests.e2e import (
    support_foreign,
    support_groups,
    support_kinds,
    support_observer,
    support_servers,
    support_slots,
    support_world,
)
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_kinds import Objects
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

GANG = {names.JOB_PREFIX + "gang": "true"}
GROUP, GROUP_SIZE = names.SCHEDULER_PREFIX + "group", names.SCHEDULER_PREFIX + "group-size"
SMALLEST, LARGEST = 2, 8


@pytest.mark.real
@pytest.mark.timeout(600)
def test_killed_at_any_moment_groups_are_bound_whole_by_one_job_each(
    open_world: OpenWorld, foreign: support_foreign.Foreign, size: Size
) -> None:
    """Half of the groups are Jobs, half are bare pods; in the end all are placed and nothing is left in Slurm."""
    before, dice = foreign.now(), random.Random(size.seed)
    sizes = [dice.randint(SMALLEST, LARGEST) for _ in range(size.groups)]
    # Killed, it cannot give its lease back: this is about what a successor finds, not about how long it waits.
    world = open_world("torn", start=False, leader_election={"enabled": False})
    caught = 0
    with support_observer.observing(world) as observer:
        for turn in range(size.kills):
            short_life(world, turn, sizes, size, dice)
            caught += half_done(world)
        world.daemon.start()
        pods = world.await_bound(sum(sizes), seconds=120)
        assert_whole(world, pods, sizes)
        world.finish(pods)
        world.await_pods("success", support_world.has_succeeded, count=sum(sizes))
        world.await_nothing_in_slurm()
        seen = observer.end()
    assert seen.wrong == set()
    assert not seen.gone
    assert len(seen.jobs) == len({one.owner["uid"] for one in seen.jobs.values()}) == len(sizes)
    assert caught > 0, "the daemon was killed in its sleep"
    assert seen.looks > size.kills / 2, f"the observer saw too little: {seen.misses} misses"
    assert foreign.now() == before


def short_life(world: World, turn: int, sizes: list[int], size: Size, dice: random.Random) -> None:
    """Killed while it starts and finds the work of its predecessors, or in the middle of work of its own."""
    share = range(len(sizes) * turn // size.kills, len(sizes) * (turn + 1) // size.kills)
    world.daemon.start()
    at_work = dice.random() < size.at_work
    if at_work:
        world.daemon.await_ready()
    with concurrent.futures.ThreadPoolExecutor(1) as user:
        created = user.submit(support_servers.each, share, lambda number: create(world, number, sizes[number]))
        threading.Event().wait(dice.uniform(*(size.work_seconds if at_work else size.start_seconds)))
        assert world.daemon.alive, world.daemon.last_words()
        world.daemon.kill()
        created.result()


def create(world: World, number: int, size: int) -> None:
    """A Job that is a gang, or bare pods that say so themselves."""
    name = f"group{number:03}"
    if number % 2:
        spec = support_kinds.job_spec(support_kinds.template(world), size, backoffLimit=0)
        Objects(world).create("Job", name, spec, GANG)
    else:
        labels = {GROUP: name, GROUP_SIZE: str(size)}
        support_kinds.grouped(world, name, size, marks=support_world.FOREVER, labels=labels)


def half_done(world: World) -> int:
    """Groups whose placeholder lives and that are bound in part or not at all: what the next life has to find."""
    alive = {one.owner["name"] for one in world.slurm.alive(world.daemon.cluster_id)}
    waits = {group_of(one) for one in world.pods() if not support_world.is_bound(one)}
    return len(waits & alive)


def group_of(one: Json) -> str:
    """The name of its group, with which its own name begins."""
    return str(one["metadata"]["name"].split("-", maxsplit=1)[0])


def assert_whole(world: World, pods: list[Json], sizes: list[int]) -> None:
    """Every group under one job, and every job with one group."""
    jobs = support_groups.by_job(world, pods)
    groups = {job_id: {group_of(one) for one in members} for job_id, members in jobs.items()}
    assert sorted(map(len, groups.values())) == [1] * len(sizes), groups
    assert sorted(map(len, jobs.values())) == sorted(sizes)


@pytest.mark.real
@pytest.mark.disruptive
@pytest.mark.timeout(180)
def test_groups_that_run_keep_their_nodes_when_slurmctld_forgets_them(
    open_world: OpenWorld, foreign: support_foreign.Foreign
) -> None:
    """What slurmctld had not saved when it was killed is asked for again, whole, on the nodes that the pods are on."""
    before = foreign.now()
    world = open_world("forgotten")
    with support_observer.observing(world) as observer:
        with foreign.nothing_else_saved():
            leader_with_workers(world)
            support_groups.placed(world, "serve", 3, support_groups.HET_SECONDS)
            for number in range(6):
                create(world, number, SMALLEST + number)
            pods = support_groups.placed(world, "", 3 + sum(range(SMALLEST, LARGEST)))
            before_it, where = incarnations(world), {one["metadata"]["uid"]: support_slots.where(one) for one in pods}
            support_servers.part("slurmctld", "kill")
            support_servers.part("slurmctld", "start")
        wait.until(lambda: restored(world), f"job for every group\n{world.daemon.last_words()}", 90, every=1.0)
        assert {one["metadata"]["uid"]: support_slots.where(one) for one in world.pods()} == where
        assert incarnations(world).isdisjoint(before_it), "slurmctld had saved some"
        Objects(world).delete("LeaderWorkerSet", "serve")
        world.finish([one for one in pods if not one["metadata"]["name"].startswith("serve")])
        world.await_nothing_in_slurm()
        seen = observer.end()
    assert {line for line in seen.wrong if not line.startswith("I7")} == set()
    assert foreign.now() == before


def incarnations(world: World) -> set[str]:
    """What tells a job from another one that has got its id."""
    return {str(one.text["step_id"]["sluid"]) for one in support_groups.living(world)}


def leader_with_workers(world: World) -> None:
    """Nine GPUs where no machine has more than eight: two components."""
    worker = support_kinds.served(world, containers=support_kinds.containers(gpus=2))
    leader = support_kinds.served(world, containers=support_kinds.containers(gpus=5))
    spec = support_kinds.leader_worker_spec(worker, 3, leader=leader)
    marks = {names.JOB_PREFIX + "partition": "gpu", names.JOB_PREFIX + "constraints": "gpu"}
    Objects(world).create("LeaderWorkerSet", "serve", spec, marks)


def restored(world: World) -> bool:
    """Every pod is where a running job of its group has a node, and nowhere more than it has there."""
    pods = world.pods()
    jobs = {one.job_id: one for one in world.slurm.parts_of(world.daemon.cluster_id)}
    running = [one for one in jobs.values() if "RUNNING" in one.states and one.part_of == one.job_id]
    for one in pods:
        of_its_own = [job for job in running if support_slots.belongs(job.owner, one)]
        if len(of_its_own) != 1:
            return False
        held = {name for part in support_slots.parts(of_its_own[0].job_id, jobs) for name in part.node_names}
        if support_slots.where(one) not in held:
            return False
    return True
