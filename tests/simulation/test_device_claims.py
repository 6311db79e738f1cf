"""Pods with ResourceClaims, and a daemon that dies at any call: no device is given twice, and none is lost."""

import pathlib

import pytest

from slurm_bridge import errors
from tests.component.scheduler.device_scene import Scene
from tests.simulation.broken_promise import Broken
from tests.simulation.weather import Killed, Odds

#: Parts of one loop, so that several processes can share it.
PARTS = 4

#: How many random runs there are, and seconds of bad weather in each.
STORMS, BAD_WEATHER = 12, 60.0


def played(token: pathlib.Path, kill: int | None = None) -> Scene:
    """All pods have had their devices; the daemon dies after this call."""
    scene = Scene(token)
    if kill is not None:
        scene.bridge.world.weather.after(kill, scene.bridge.world.weather.kill)
    for _ in range(2):
        try:
            scene.bridge.until(scene.done, 300)
        except Killed:
            scene.again()
    scene.told()
    return scene


@pytest.mark.parametrize("part", range(PARTS))
def test_killed_after_every_call(part: int, tmp_path: pathlib.Path, request: pytest.FixtureRequest) -> None:
    """Whichever call is the daemon's last, the next one comes to the same end."""
    calm = played(tmp_path)
    weather = calm.bridge.world.weather
    every = request.config.getoption("--every-call")
    made = range(1, weather.calls + 1) if every else weather.orders
    calls = [call for call in made if calm.began < call <= calm.ended]
    for call in calls[part::PARTS]:
        try:
            played(tmp_path, call)
        except (AssertionError, Broken) as broken:
            pytest.fail(f"killed after call {call}: {broken}", pytrace=False)


@pytest.mark.parametrize("storm", range(1, STORMS + 1))
def test_random_run(storm: int, tmp_path: pathlib.Path) -> None:
    """Calls, answers and daemons are lost: in the end it is as if nothing had been."""
    scene = Scene(tmp_path, storm)
    world = scene.bridge.world
    world.weather.odds = Odds(lost=0.03, unanswered=0.03, orders_unanswered=0.08, killed=0.03)
    end = world.clock.now() + BAD_WEATHER
    while world.clock.now() < end:
        try:
            scene.bridge.step()
        except (Killed, errors.BridgeError):
            scene.again()
    world.weather.calm()
    scene.again()
    scene.bridge.until(scene.done, 900)
    scene.told()
