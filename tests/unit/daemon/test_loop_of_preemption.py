"""The thread that makes room for others."""

import threading

import pytest

from slurm_bridge.daemon.loops import PREEMPT, Loops
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.telemetry.health import Health


class Turned:
    """The part of a core that this thread asks."""

    def __init__(self) -> None:
        self.turns: list[float] = []
        self.clock = VirtualClock()

    def preempt_step(self) -> None:
        self.turns.append(self.clock.now())


@pytest.mark.parametrize(("leads", "turns"), [(True, 3), (False, 0)])
def test_only_who_leads_has_others_make_room(leads: bool, turns: int) -> None:
    """Again and again, with a pause before each look, until it is stopped."""
    core, stop, asked = Turned(), threading.Event(), []

    def leading() -> bool:
        asked.append(leads)
        if len(asked) == 3:
            stop.set()
        return leads

    loops = Loops(core, None, core.clock, Health(core.clock.now), leading)  # type: ignore[arg-type]
    loops._recovered.set()
    loops.preempt(stop)
    assert core.turns == [(number + 1) * PREEMPT for number in range(turns)]
