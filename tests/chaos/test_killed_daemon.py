"""The daemon is killed at random moments while hundreds of pods go through it."""

import concurrent.futures
import random
import threading

import pytest

from tests.chaos.support_size import Size
from tests.e2e import support_foreign, support_observer, support_world
from tests.e2e.support_fixtures import OpenWorld


@pytest.mark.real
@pytest.mark.timeout(600)
def test_killed_at_any_moment_nothing_is_doubled_lost_or_left(
    open_world: OpenWorld, foreign: support_foreign.Foreign, size: Size
) -> None:
    """Every pod has one job ever, is bound where Slurm said, and in the end nothing is left in Slurm."""
    before = foreign.now()
    dice, caught = random.Random(size.seed), 0
    # Killed, it cannot give its lease back: this is about what a successor finds, not about how long it waits.
    world = open_world("killed", start=False, leader_election={"enabled": False})
    with support_observer.observing(world) as observer:
        for turn in range(size.kills):
            short_life(world, turn, size, dice)
            caught += half_done(world)
        world.daemon.start()
        pods = world.await_bound(size.pods, seconds=120)
        world.finish(pods)
        world.await_pods("success", support_world.has_succeeded, count=size.pods)
        world.await_nothing_in_slurm()
        seen = observer.end()
    assert seen.wrong == set()
    assert not seen.gone
    assert len(seen.jobs) == len({one.owner["uid"] for one in seen.jobs.values()}) == size.pods
    assert caught > size.kills, "the daemon was killed in its sleep"
    assert seen.looks > size.kills / 2, f"the observer saw too little: {seen.misses} misses"
    assert foreign.now() == before


def short_life(world: support_world.World, turn: int, size: Size, dice: random.Random) -> None:
    """Killed while it starts and finds the work of its predecessors, or in the middle of work of its own."""
    share = range(size.pods * turn // size.kills, size.pods * (turn + 1) // size.kills)
    world.daemon.start()
    at_work = dice.random() < size.at_work
    if at_work:
        world.daemon.await_ready()
    with concurrent.futures.ThreadPoolExecutor(1) as user:
        created = user.submit(world.create_pods, f"life{turn}", len(share), support_world.FOREVER)
        threading.Event().wait(dice.uniform(*(size.work_seconds if at_work else size.start_seconds)))
        assert world.daemon.alive, world.daemon.last_words()
        world.daemon.kill()
        created.result()


def half_done(world: support_world.World) -> int:
    """Pods whose placeholder lives and that have no node yet: what the next life has to find."""
    waiting = {one["metadata"]["uid"] for one in world.pods() if not support_world.is_bound(one)}
    return len(waiting & {one.owner["uid"] for one in world.slurm.alive(world.daemon.cluster_id)})
