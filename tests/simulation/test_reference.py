"""The reference run, undisturbed and with the daemon killed after every call that it makes."""

import pathlib
from collections.abc import Callable

import pytest

from tests.simulation import daemon, reference
from tests.simulation.observer import Broken
from tests.simulation.play import Play
from tests.simulation.world import World

SEED = 1
#: Parts of one loop, so that several processes can share it.
PARTS = 8

PODS = 16

#: One reading of details a second, and now and then a look at everything else.
MINUTES, CALLS_PER_MINUTE = 5, 80

END = {
    "pods": {
        **dict.fromkeys((*reference.RUN, "loop"), "Running"),
        **dict.fromkeys((*reference.SUCCEED, "wide"), "Succeeded"),
        "b5": "Failed",
    },
    "job pods": {"Succeeded": 4},
    "succeeded": 4,
    "placeholders": dict.fromkeys((*reference.RUN, "loop"), "RUNNING"),
}

MakeWorld = Callable[[int], World]


def test_undisturbed(make_world: MakeWorld) -> None:
    """Twelve pods and a Job come to their ends, nothing is left over, and each pod costs few calls."""
    world = make_world(SEED)
    assert reference.play(Play(world, daemon.real)) == END
    assert sum("/binding " in line for line in world.journal) == PODS
    # Some places are given back, because of the foreign pod that Slurm does not see.
    assert PODS <= sum("/job/submit " in line for line in world.journal) <= PODS + 4


def test_rest_is_cheap(make_world: MakeWorld) -> None:
    """When all pods run or are over, nothing is ordered any more, and little is asked."""
    world = make_world(SEED)
    play = Play(world, daemon.real)
    reference.play(play)
    calls, orders = world.weather.calls, len(world.weather.orders)
    for _ in range(600):
        play.step(0.5)
    assert len(world.weather.orders) == orders
    assert world.weather.calls - calls <= MINUTES * CALLS_PER_MINUTE


@pytest.mark.parametrize("chosen_ids", [True, False], ids=["chosen-ids", "counted-ids"])
@pytest.mark.parametrize("part", range(PARTS))
def test_killed_after_every_call(
    tmp_path: pathlib.Path, part: int, request: pytest.FixtureRequest, *, chosen_ids: bool
) -> None:
    """Whichever call is the daemon's last, the next daemon comes to the same end, and no promise is broken.

    After a read the world is as it was before it, so that without `--every-call` only orders are the last one.
    """
    build = daemon.build(daemon.Variant(chosen_ids=chosen_ids))
    token = tmp_path / "token"
    calm = World(SEED, token)
    reference.play(Play(calm, build))
    calls = range(1, calm.weather.calls + 1) if request.config.getoption("--every-call") else calm.weather.orders
    for call in calls[part::PARTS]:
        world = World(SEED, token)
        world.weather.after(call, world.weather.kill)
        try:
            assert reference.play(Play(world, build)) == END
        except (AssertionError, Broken) as broken:
            pytest.fail(f"killed after call {call}: {broken}\n" + "\n".join(world.journal), pytrace=False)
