"""Time is injected: real where it must pass, virtual where a test decides."""

import threading

import pytest

from slurm_bridge.runtime import clock


def test_virtual_time_moves_only_when_told() -> None:
    """Two looks without an advance see the same moment."""
    still = clock.VirtualClock(wall=100.0)
    assert (still.now(), still.now()) == (0.0, 0.0)
    still.advance(2.5)
    assert (still.now(), still.wall()) == (2.5, 102.5)


def test_virtual_time_does_not_run_backwards() -> None:
    """A negative step is a mistake of the test."""
    with pytest.raises(ValueError, match="backwards"):
        clock.VirtualClock().advance(-1)


def test_a_virtual_wait_lets_its_time_pass_at_once() -> None:
    """A simulation does not wait for the wall."""
    still, stop = clock.VirtualClock(), threading.Event()
    assert still.wait(stop, 30) is False
    assert still.now() == 30


def test_a_wait_ends_when_a_stop_is_asked_for() -> None:
    """Nothing sleeps through a stop, in either kind of time."""
    stop = threading.Event()
    stop.set()
    real, still = clock.SystemClock(), clock.VirtualClock()
    before = real.now()
    assert real.wait(stop, 60)
    assert real.now() - before < 60
    assert still.wait(stop, 60)
    assert still.now() == 0


def test_the_real_clocks_run() -> None:
    """The monotonic one never jumps back, the wall shows a year of this century."""
    real = clock.SystemClock()
    assert real.now() <= real.now()
    assert real.wall() > 1_600_000_000
