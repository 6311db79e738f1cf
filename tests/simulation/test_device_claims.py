"""Pods with ResourceClaims, and a daemon that dies at any call: no device is given twice, and none is lost."""

import pathlib
import re
from collections.abc import Collection, Mapping

import pytest

from slurm_bridge import errors
from tests.component.scheduler.device_scene import Scene
from tests.simulation.branches import Branches
from tests.simulation.weather import Fate, Killed, Odds, Weather

#: Parts of one loop, so that several processes can share it.
PARTS = 12

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


def play(scene: Scene) -> None:
    """All pods have had their devices, whatever becomes of the daemon."""
    for _ in range(2):
        try:
            scene.bridge.until(lambda: scene.done() or not scene.bridge.leads, 300)
        except (Killed, errors.NotLeading):
            scene.again()
        if not scene.bridge.leads:
            scene.again()
    scene.told()


def branched(scene: Scene, calls: Collection[int], fates: Mapping[str | Fate, Collection[int]]) -> Branches:
    """The same, and once more for each of these fates of each call that can have it."""
    weather, branches = scene.bridge.world.weather, Branches()
    before = weather.watcher

    def watch(who: str) -> None:
        before(who)
        if who or weather.calls not in calls:
            return
        call = weather.calls
        for fate, possible in fates.items():
            if call in possible:
                branches.branch(f"{fate} at call {call}", lambda fate=fate: meet(scene, call, fate))

    weather.watcher = watch
    branches.play(lambda: play(scene))
    return branches


def meet(scene: Scene, call: int, fate: str | Fate) -> None:
    """This becomes of that call."""
    weather = scene.bridge.world.weather
    if isinstance(fate, Fate):
        weather.instead(call, fate)
    else:
        weather.after(call, weather.kill if fate is KILLED else scene.takeover)


def of_kubernetes(weather: Weather) -> set[int]:
    """The numbers of the calls that it was asked."""
    return {int(found[1]) for line in weather.journal if (found := _OF_KUBERNETES.search(line))}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", range(PARTS))
def test_whatever_becomes_of_a_call(part: int, tmp_path: pathlib.Path, request: pytest.FixtureRequest) -> None:
    """Whichever call it is, it comes to the same end: every pod has had its devices, and none is left with a claim."""
    calm = Scene(tmp_path)
    play(calm)
    weather = calm.bridge.world.weather
    every = request.config.getoption("--every-call")
    of_fate: dict[str | Fate, set[int]] = {}
    for fate in FATES:
        made = range(1, weather.calls + 1) if every and fate is not Fate.CONFLICT else weather.orders
        if fate in REFUSED:
            made = sorted(of_kubernetes(weather).intersection(made))
        calls = [call for call in made if calm.began < call <= calm.ended]
        of_fate[fate] = set(calls[part :: PARTS if every or fate is KILLED else SHORT_STEP * PARTS])
    branches = branched(Scene(tmp_path), set[int]().union(*of_fate.values()), of_fate)
    assert not branches.failures, "\n".join(branches.failures)
    assert branches.count == sum(map(len, of_fate.values()))


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
