"""Pods with ResourceClaims, and a daemon that dies at any call: no device is given twice, and none is lost."""

import pathlib
import re

import pytest

from slurm_bridge import errors
from tests.component.scheduler.device_scene import Scene
from tests.simulation.broken_promise import Broken
from tests.simulation.weather import Fate, Killed, Odds, Weather

#: Parts of one loop, so that several processes can share it.
PARTS = 4

#: How many random runs there are, and seconds of bad weather in each.
STORMS, BAD_WEATHER = 12, 60.0

#: Kubernetes answers so; of Slurm's answers others tell.
REFUSED = (Fate.CONFLICT, Fate.BUSY, Fate.FAILED)
#: Where not every call is looked at, each so manieth order meets another fate than death.
SHORT_STEP = 3
_OF_KUBERNETES = re.compile(r"#([0-9]+) \S+ kube ")

#: What can become of one call of the daemon. The first two are its last: it is dead, or leads no more.
KILLED, REPLACED = "killed", "replaced"
FATES: tuple[str | Fate, ...] = (KILLED, REPLACED, *Fate)


def played(token: pathlib.Path, kill: int | None = None, fate: str | Fate = KILLED) -> Scene:
    """All pods have had their devices; this becomes of that call."""
    scene = Scene(token)
    weather = scene.bridge.world.weather
    if kill is not None and isinstance(fate, Fate):
        weather.instead(kill, fate)
    elif kill is not None:
        weather.after(kill, weather.kill if fate is KILLED else scene.takeover)
    for _ in range(2):
        try:
            scene.bridge.until(lambda: scene.done() or not scene.bridge.leads, 300)
        except (Killed, errors.NotLeading):
            scene.again()
        if not scene.bridge.leads:
            scene.again()
    scene.told()
    return scene


def of_kubernetes(weather: Weather) -> set[int]:
    """The numbers of the calls that it was asked."""
    return {int(found[1]) for line in weather.journal if (found := _OF_KUBERNETES.search(line))}


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("fate", FATES)
def test_whatever_becomes_of_a_call(
    fate: str | Fate, part: int, tmp_path: pathlib.Path, request: pytest.FixtureRequest
) -> None:
    """Whichever call it is, it comes to the same end: every pod has had its devices, and none is left with a claim."""
    calm = played(tmp_path)
    weather = calm.bridge.world.weather
    every = request.config.getoption("--every-call")
    made = range(1, weather.calls + 1) if every and fate is not Fate.CONFLICT else weather.orders
    if fate in REFUSED:
        made = sorted(of_kubernetes(weather).intersection(made))
    calls = [call for call in made if calm.began < call <= calm.ended]
    step = 1 if every or fate == KILLED else SHORT_STEP
    for call in calls[part :: step * PARTS]:
        try:
            played(tmp_path, call, fate)
        except (AssertionError, Broken) as broken:
            pytest.fail(f"{fate} at call {call}: {broken}", pytrace=False)


@pytest.mark.parametrize("storm", range(1, STORMS + 1))
def test_random_run(storm: int, tmp_path: pathlib.Path) -> None:
    """Calls, answers and daemons are lost: in the end it is as if nothing had been."""
    scene = Scene(tmp_path, storm)
    world = scene.bridge.world
    world.weather.odds = Odds(lost=0.03, unanswered=0.03, orders_unanswered=0.08, killed=0.03, refused=0.03)
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
