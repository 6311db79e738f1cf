"""A defect of ours in one workload."""

from typing import Any

from slurm_bridge.scheduler.context import Gather
from slurm_bridge.scheduler.workload_pods import PodState, WorkloadPods
from tests.component.scheduler.whole_core import Bridge


def test_a_workload_that_nobody_can_cope_with_does_not_stop_the_others(bridge: Bridge) -> None:
    """It is counted and tried again later; everybody else is bound."""
    bridge.core.context.gather = poisoned(bridge.core.context.gather)
    bridge.pod("poison")
    bridge.pod("other")
    bridge.until(lambda: bridge.node_of("other"))
    assert not bridge.node_of("poison")
    assert "error" in bridge.told.attempts


def poisoned(gather: Gather) -> Gather:
    """Falls over one name."""

    def either(members: WorkloadPods, *stands: PodState, one: bool = False) -> Any:
        if members.root.name == "poison":
            raise KeyError("what nobody thought of")
        return gather(members, *stands, one=one)

    return either
