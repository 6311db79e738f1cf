"""A pocket Slurm in virtual time."""

from collections.abc import Callable
from typing import Any

import pytest
from pocket_desk import Desk

from slurm_bridge.runtime import clock
from slurm_bridge.sim.slurm import pocket, state


@pytest.fixture
def opened() -> Callable[..., Desk]:
    """Open a pocket with this configuration."""

    def open_(**config: Any) -> Desk:
        time = clock.VirtualClock()
        quick = {"down_delay": 0.0, "hang_delay": 0.0, **config}
        return Desk(pocket.PocketSlurm(clock=time, config=state.PocketConfig(**quick)), time)

    return open_


@pytest.fixture
def slurm(opened: Callable[..., Desk]) -> Desk:
    """Open one without any wishes."""
    return opened()
