"""A defect of ours in one workload."""

from typing import Any

from slurm_bridge.scheduler.members import Crew, Standing
from slurm_bridge.scheduler.tools import Gather
from tests.unit.scheduler.bridging import Bridge


def test_a_workload_that_nobody_can_cope_with_does_not_stop_the_others(bridge: Bridge) -> None:
    """It is counted and tried again later; everybody else is bound."""
    bridge.core.tools.gather = poisoned(bridge.core.tools.gather)
    bridge.pod("poison")
    bridge.pod("other")
    bridge.until(lambda: bridge.node_of("other"))
    assert not bridge.node_of("poison")
    assert "error" in bridge.told.attempts


def poisoned(gather: Gather) -> Gather:
    """Falls over one name."""

    def either(crew: Crew, *stands: Standing, one: bool = False) -> Any:
        if crew.root.name == "poison":
            raise KeyError("what nobody thought of")
        return gather(crew, *stands, one=one)

    return either
