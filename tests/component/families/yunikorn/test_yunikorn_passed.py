"""Who is passed: it waits in Slurm for long enough, and a smaller one that queues let in later has started."""

import pathlib

import pytest

from slurm_bridge.hooks.lifecycle import Reserves
from slurm_bridge.runtime.clock import VirtualClock
from tests.component.families.yunikorn.yunikorn_scenes import Queues, document, made, queue
from tests.component.scheduler.whole_core import Bridge

AFTER = 10.0
#: Each asks for less than the one before.
SIZES = (3, 2, 1)
MODES = ("local", "slurm")


@pytest.fixture
def bridge(tmp_path: pathlib.Path) -> Bridge:
    """Four nodes of four cpus, and a Slurm that starts what the test wants."""
    return Bridge(tmp_path)


def waiting(bridge: Bridge, *names: str, **options: float) -> Queues:
    """These wait in Slurm, let in in this order."""
    bridge.slurm.control.pause()
    queues = Queues(bridge, queue("a"), reserve_after=AFTER, **options)
    for number, name in enumerate(names):
        queues.pod(name, cpu=str(SIZES[number]))
        bridge.run(2)
    queues.hook.passed()
    return queues


def start(bridge: Bridge, name: str) -> None:
    """Slurm starts only this one."""
    others = [one.job_id for one in bridge.jobs() if one.pending and one.job_id != bridge.job(name).job_id]
    for job_id in others:
        bridge.slurm.control.hold(job_id)
    bridge.slurm.control.unpause()
    bridge.until(lambda: bridge.node_of(name))
    bridge.slurm.control.pause()
    for job_id in others:
        bridge.slurm.control.release(job_id)


def passed(bridge: Bridge, queues: Queues) -> list[str]:
    """By name."""
    by_key = {bridge.key(name): name for name in ("one", "two", "three") if bridge.exists(name)}
    return [by_key[key] for key in queues.hook.passed()]


def test_the_hook_has_a_say_in_it() -> None:
    """As the scheduler asks for it; where Slurm decides about order nobody is passed."""
    document_ = document(queue("a"))
    local, theirs = (made({"configuration": document_, "mode": mode}, clock=VirtualClock()) for mode in MODES)
    assert isinstance(local, Reserves)
    assert (local.reservations, local.reserve_seconds, theirs.reservations) == (1, 600.0, 0)
    assert local.passed() == ()


def test_whoever_waits_while_a_later_one_starts_is_passed(bridge: Bridge) -> None:
    """After its time; one that came after that one is not."""
    queues = waiting(bridge, "one", "two", "three")
    start(bridge, "two")
    bridge.run(AFTER)
    assert passed(bridge, queues) == ["one"]


def test_nobody_is_passed_before_its_time(bridge: Bridge) -> None:
    """It counts from when it was seen in Slurm."""
    queues = waiting(bridge, "one", "two")
    start(bridge, "two")
    queues.hook.passed()
    assert passed(bridge, queues) == []
    bridge.run(AFTER)
    assert passed(bridge, queues) == ["one"]


def test_nobody_is_passed_by_what_asks_for_as_much(bridge: Bridge) -> None:
    """Of one thing less is less."""
    bridge.slurm.control.pause()
    queues = Queues(bridge, queue("a"), reserve_after=AFTER)
    for name in ("one", "two", "three"):
        queues.pod(name, cpu="1" if name == "three" else "2")
        bridge.run(2)
    start(bridge, "two")
    queues.hook.passed()
    bridge.run(AFTER)
    assert passed(bridge, queues) == []
    start(bridge, "three")
    assert passed(bridge, queues) == ["one"]


def test_nobody_is_passed_by_those_before(bridge: Bridge) -> None:
    """The one that was let in first starts first."""
    queues = waiting(bridge, "one", "two", "three")
    start(bridge, "one")
    bridge.run(2 * AFTER)
    assert passed(bridge, queues) == []


def test_the_most_important_comes_first_and_then_who_was_first(bridge: Bridge) -> None:
    """Whoever starts is passed no more."""
    bridge.slurm.control.pause()
    queues = Queues(bridge, queue("a"), reserve_after=AFTER)
    for name, priority in (("one", 0), ("two", 5), ("three", 0)):
        queues.pod(name, cpu="1" if name == "three" else "2", spec={"priority": priority})
        bridge.run(2)
    queues.hook.passed()
    start(bridge, "three")
    bridge.run(2 * AFTER)
    assert passed(bridge, queues) == ["two", "one"]
    start(bridge, "two")
    assert passed(bridge, queues) == ["one"]


def test_it_can_be_switched_off(bridge: Bridge) -> None:
    """For none at once."""
    queues = waiting(bridge, "one", "two", reservations=0)
    start(bridge, "two")
    bridge.run(2 * AFTER)
    assert passed(bridge, queues) == []
