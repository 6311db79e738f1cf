"""The reference run, undisturbed and with the daemon killed after every call that it makes."""

from collections.abc import Callable

import pytest

from tests.simulation import daemon, reference
from tests.simulation.play import Play
from tests.simulation.world import World

SEED = 1
#: Parts of one loop, so that several processes can share it.
PARTS = 8

PODS = 16

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


@pytest.mark.parametrize("part", range(PARTS))
def test_killed_after_every_call(make_world: MakeWorld, part: int, request: pytest.FixtureRequest) -> None:
    """Whichever call is the daemon's last, the next daemon comes to the same end, and no promise is broken."""
    calm = make_world(SEED)
    reference.play(Play(calm, daemon.real))
    every = request.config.getoption("--every-call")
    calls = range(1, calm.weather.calls + 1) if every else calm.weather.orders
    for call in calls[part::PARTS]:
        world = make_world(SEED)
        world.weather.after(call, world.weather.kill)
        try:
            assert reference.play(Play(world, daemon.real)) == END
        except AssertionError as broken:
            pytest.fail(f"killed after call {call}: {broken}\n" + "\n".join(world.journal), pytrace=False)
