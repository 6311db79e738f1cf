"""A pod that only few nodes can take: how long it waits for a node in virtual time, with the hook and without it."""

import statistics
from collections.abc import Callable
from typing import Any

import pytest

from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.eligibility import Eligibility, EligibilityOptions
from slurm_bridge.hooks.calls import Hook
from slurm_bridge.hooks.chain import Chain, Plan
from slurm_bridge.hooks.services import ChainServices
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait
from slurm_bridge.runtime.clock import VirtualClock
from tests.unit.families.vela.support_vela import Stage
from tests.unit.families.vela.vela_bench import partly_used
from tests.unit.hooks.builders import SCHEDULER, cluster, node, pod, translated, workload

PODS = 40
#: One round: the first retry of the hook.
ROUND = 1.0
#: After so long a pod counts as never placed.
GIVEN_UP = 3600.0


def sized(number: int, large: int) -> ClusterSnapshot:
    """Nodes of 4 cpus, the last ones of 64."""
    cpus = ["64" if place >= number - large else "4" for place in range(number)]
    return cluster([node(f"n{place:03}", allocatable={"cpu": most}) for place, most in enumerate(cpus)])


def labelled(number: int, wanted: int) -> ClusterSnapshot:
    """Nodes of which the last ones have the label `kind: rare`."""
    return cluster(
        [node(f"n{place:03}", labels={"kind": "rare"} if place >= number - wanted else {}) for place in range(number)]
    )


def requesting(name: str) -> Pod:
    """As in the README: requests, and no limits."""
    return pod(name, requests={"cpu": "8", "memory": "64Mi"})


def selecting(name: str) -> Pod:
    return pod(name, node_selector={"kind": "rare"})


class Waiting:
    """The times that pods wait for their first plan."""

    def __init__(self, snapshot: ClusterSnapshot, *, with_hook: bool, **options: Any) -> None:
        self.stage = Stage(snapshot, clock=VirtualClock())
        usable = Hook(
            name="eligibility",
            hook=Eligibility(EligibilityOptions(scheduler_names=(SCHEDULER,), volumes=False)),
            budget_seconds=60,
        )
        if with_hook:
            self.chain = self.stage.chain(self.stage.hook(**options), usable)
        else:
            self.chain = Chain([usable], ChainServices(clock=self.stage.clock))
        self.parked = 0

    def seconds(self, one: Pod, **fields: Any) -> float:
        """Of this pod, looked at again whenever the chain says so."""
        began = self.stage.clock.wall()
        while (past := self.stage.clock.wall() - began) < GIVEN_UP:
            found = self.chain.plan(workload(one), translated(**fields), self.stage.now, now=self.stage.clock.wall())
            if isinstance(found, Plan):
                return past
            assert isinstance(found, Wait)
            self.parked += found.reason == "FailedScheduling"
            self.stage.clock.advance(found.retry_after or 15.0)
        return GIVEN_UP


CASES: dict[str, tuple[ClusterSnapshot, Callable[[str], Pod], dict[str, str]]] = {
    "10 of 200 nodes are large enough": (sized(200, 10), requesting, {}),
    "1 of 100 nodes has the label": (labelled(100, 1), selecting, {}),
    "10 of 200 nodes are in the partition": (
        partly_used(200, {}, gpu=tuple(f"n{place}" for place in range(190, 200))),
        lambda name: pod(name, requests={"cpu": "1"}),
        {"partition": "gpu"},
    ),
}


@pytest.mark.parametrize("strategy", ["random", "round-robin"])
@pytest.mark.parametrize("case", CASES)
def test_a_pod_that_few_nodes_can_take_waits_no_longer_than_without_the_hook(case: str, strategy: str):
    """Give or take one round, and none is parked."""
    snapshot, made, fields = CASES[case]
    found = {}
    for with_hook in (False, True):
        waiting = Waiting(snapshot, with_hook=with_hook, **({"strategy": strategy} if with_hook else {}))
        times = [waiting.seconds(made(f"p{number}"), **fields) for number in range(PODS)]
        found[with_hook] = statistics.median(times), max(times), waiting.parked
    assert abs(found[True][0] - found[False][0]) <= ROUND
    assert found[True][1] <= ROUND
    assert found[True][2] == 0
