"""Daemons that die, and calls that are lost, between a selected node and a bound pod."""

import pathlib

import pytest

from slurm_bridge import errors
from tests.component.scheduler.claimed_volumes import HOOKS, LOCAL, Storage, using
from tests.component.scheduler.gang_scenes import member
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.weather import Killed, Odds
from tests.simulation.world import World

PODS = ("a", "g-0", "g-1")


def scene(folder: pathlib.Path, seed: int = 1) -> Storage:
    """A pod whose first node has no room for its volume, and a gang of which one claim takes a volume that is there."""
    bridge = Bridge(folder, world=World(seed, folder / "token"), hooks=HOOKS)
    storage = Storage(bridge)
    storage.refuses = {"n1"}
    storage.volume("v", "n3")
    storage.claim("data")
    storage.claim("c-0", of=LOCAL)
    storage.claim("c-1")
    bridge.pod("a", spec=using("data"))
    for number in range(2):
        member(bridge, f"g-{number}", size=2, spec=using(f"c-{number}"))
    return storage


def done(storage: Storage) -> bool:
    """Every pod has a node."""
    return all(storage.bridge.node_of(name) for name in PODS)


def told(storage: Storage) -> None:
    """Every claim is bound where its pod is, and Slurm has one job for each workload."""
    bridge = storage.bridge
    assert storage.read("c-0")["spec"]["volumeName"] == "v"
    assert bridge.node_of("g-0") == "n3"
    for name, claim in (("a", "data"), ("g-1", "c-1")):
        assert bridge.node_of(name) == storage.selected(claim) != "n1"
    assert len([job for job in bridge.jobs() if not job.over]) == 2


def again(storage: Storage) -> None:
    """The next daemon in the same world."""
    storage.bridge = Bridge(storage.bridge.folder, world=storage.bridge.world, hooks=HOOKS)


def played(folder: pathlib.Path, kill: int | None = None) -> list[int]:
    """All calls that changed something; the daemon dies after this one."""
    storage = scene(folder)
    weather = storage.bridge.world.weather
    began = weather.calls
    if kill is not None:
        weather.after(kill, weather.kill)
    for _ in range(2):
        try:
            storage.until(lambda: done(storage), 200)
        except Killed:
            again(storage)
    told(storage)
    return [call for call in weather.orders if call > began]


def test_a_daemon_that_is_killed_after_any_order_leaves_no_claim_behind(tmp_path: pathlib.Path) -> None:
    """Whichever was its last one, the next daemon comes to the same end."""
    for call in played(tmp_path):
        try:
            played(tmp_path, call)
        except AssertionError as broken:
            pytest.fail(f"killed after call {call}: {broken}")


@pytest.mark.parametrize("seed", range(1, 9))
def test_whatever_is_lost_the_pods_start_with_their_volumes(tmp_path: pathlib.Path, seed: int) -> None:
    """Calls, answers and daemons: in the end it is as if nothing had been."""
    storage = scene(tmp_path, seed)
    world = storage.bridge.world
    world.weather.odds = Odds(lost=0.03, unanswered=0.03, orders_unanswered=0.08, killed=0.03)
    end = world.clock.now() + 60
    while world.clock.now() < end:
        try:
            storage.bridge.step()
            storage.step()
        except (Killed, errors.BridgeError):
            again(storage)
    world.weather.calm()
    again(storage)
    storage.until(lambda: done(storage), 700)
    told(storage)
