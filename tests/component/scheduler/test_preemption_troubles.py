"""What goes wrong while room is made: no node is given away twice, and no promise outlasts its pod."""

import pathlib
from collections.abc import Mapping
from typing import Any

import pytest

from slurm_bridge.hooks.services import Target
from slurm_bridge.model import names
from slurm_bridge.sim import faults
from tests.component.scheduler.preemptive_bridge import (
    AFTER,
    EXTENDER,
    Counted,
    ends_of,
    full,
    go,
    important,
    preemptive,
    promised,
    until,
)
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.world import NAMESPACE

pytestmark = pytest.mark.thorough

GROUP = {names.GROUP: "g", names.GROUP_SIZE: "2"}
#: Of pods that take long to end.
SLOW = {"kwok.local/terminating": "60s"}


def broken_until(bridge: Bridge, condition: Any, target: str, nth: int = 1) -> None:
    """Go on while such writes of the part that makes room fail, and no others."""
    for _ in range(60):
        bridge.step(0.5)
        bridge.kube_calls.plan(faults.Answer(500), method="PATCH", target=target, nth=nth, times=1000)
        bridge.core.preempt_step()
        bridge.kube_calls.clear()
        if condition():
            return
    raise AssertionError("it never came to that:\n" + "\n".join(bridge.world.journal[-30:]))


def test_the_job_of_a_group_outlives_a_member_that_was_leaving_already(bridge: Bridge) -> None:
    """Its grace is long: the node that it still runs on would be given away under it."""
    preemptive(bridge)
    keep = {names.ANNOTATION_MEMBER_LOST: "keep"}
    important(bridge, "g-0", 5, labels=GROUP, annotations=keep)
    important(bridge, "g-1", 5, labels=GROUP, annotations={**keep, **SLOW})
    bridge.until(lambda: bridge.node_of("g-0") and bridge.node_of("g-1"))
    important(bridge, "mid", 10)
    bridge.until(lambda: bridge.node_of("mid"))
    bridge.delete("g-1")
    important(bridge, "high", spec={"nodeSelector": {"kubernetes.io/hostname": bridge.node_of("g-0")}})
    until(bridge, lambda: not bridge.exists("g-0"))
    go(bridge, 10)
    (job,) = bridge.jobs(f"Group:{NAMESPACE}/g")
    assert bridge.exists("g-1")
    assert job.running
    until(bridge, lambda: bridge.node_of("high"), 120)
    assert bridge.phase("g-1") in ("", "Failed")


def test_members_of_a_group_on_one_node_do_not_count_their_job_twice(bridge: Bridge) -> None:
    """A job of others has a cpu of that node: without the group it has three, not all four."""
    preemptive(bridge)
    for node in ("n1", "n3", "n4"):
        bridge.world.cordon(node, on=True)
    bridge.run(3)
    for name in ("g-0", "g-1"):
        important(bridge, name, 5, cpu="1", labels=GROUP)
    bridge.until(lambda: bridge.node_of("g-0") and bridge.node_of("g-1"))
    assert {bridge.node_of("g-0"), bridge.node_of("g-1")} == {"n2"}
    bridge.world.submit("native", required_nodes="n2")
    bridge.run(40)
    important(bridge, "high", cpu="4")
    go(bridge, 3 * AFTER)
    assert ends_of(bridge, ["g-0", "g-1"]) == [False, False]


def test_a_promise_that_was_written_on_some_pods_only_is_taken_back(bridge: Bridge) -> None:
    """Nothing would end it: it is of no preemption."""
    counted = preemptive(bridge)
    full(bridge, 10, 5, 5)
    for name in ("h-0", "h-1"):
        important(bridge, name, labels=GROUP)
    broken_until(bridge, lambda: counted.counts.get("failed"), "/pods/h-./status", nth=2)
    go(bridge, 3)
    assert [promised(bridge, "h-0"), promised(bridge, "h-1")] == ["", ""]


def test_a_promise_that_could_not_be_taken_back_is_taken_back_later(bridge: Bridge) -> None:
    """Else others would leave room for it for ever."""
    counted = preemptive(bridge, keep_seconds=20)
    full(bridge, 10, 5, 10, annotations=SLOW)
    important(bridge, "high")
    until(bridge, lambda: promised(bridge, "high"))
    broken_until(bridge, lambda: counted.counts.get("given_up"), "/pods/high/status")
    assert promised(bridge, "high")
    go(bridge, 3)
    assert promised(bridge, "high") == ""


def test_a_restart_without_the_hook_takes_promises_back(bridge: Bridge) -> None:
    """Hooks that leave room for pods with a nominated node would do so until these have one."""
    preemptive(bridge)
    full(bridge, 10, 5, 10)
    bridge.kube_calls.plan(faults.Answer(429), method="POST", target="/eviction", times=1000)
    important(bridge, "high")
    until(bridge, lambda: promised(bridge, "high"))
    bridge.start()
    go(bridge, 5)
    assert promised(bridge, "high") == ""


def test_one_workload_that_cannot_be_dealt_with_does_not_stop_the_others(bridge: Bridge) -> None:
    """A defect of ours, or an answer that was not thought of: the thread of all preemptions lives on."""

    def post(_target: Target, _path: str, body: Mapping[str, Any], *, seconds: float) -> Any:
        if body["Pod"]["metadata"]["name"] == "odd":
            raise RecursionError(f"within {seconds} s")
        return body

    preemptive(bridge, post=post, extenders=[EXTENDER | {"ignorable": True}])
    full(bridge, 10, 5, 10)
    important(bridge, "odd", 2000)
    important(bridge, "high")
    until(bridge, lambda: bridge.node_of("high"))
    assert not bridge.node_of("odd")


def test_an_extender_that_may_be_ignored_may_answer_nonsense(bridge: Bridge) -> None:
    """A victim's uid that is no text is no answer, and no accident."""

    def post(_target: Target, _path: str, _body: Mapping[str, Any], *, seconds: float) -> Any:
        assert seconds
        return {"nodeNameToMetaVictims": {"n3": {"pods": [{"uid": [1]}]}}}

    preemptive(bridge, post=post, extenders=[EXTENDER | {"ignorable": True}])
    full(bridge, 10, 5, 10)
    important(bridge, "high")
    until(bridge, lambda: bridge.node_of("high"), 30)
    assert bridge.node_of("high") == "n3"


def test_a_try_that_helped_is_not_held_against_the_next(bridge: Bridge) -> None:
    """Later and later is for workloads that no eviction helps."""
    preemptive(bridge)
    full(bridge, 10, 5, 10)
    important(bridge, "high")
    until(bridge, lambda: bridge.node_of("high"))
    go(bridge, 2)
    state = bridge.core.evictions._store.get(bridge.key("high"))
    assert state is not None
    assert state.tries == 0


@pytest.mark.parametrize("place", ["promise", "eviction"])
def test_a_lead_that_is_lost_on_the_way_is_taken_up_again(bridge: Bridge, place: str) -> None:
    """What was promised is kept by the next leader, which may be the same."""
    counted = preemptive(bridge)
    low = full(bridge, 10, 5, 10)
    if place == "eviction":
        bridge.kube_calls.plan(faults.Answer(429), method="POST", target="/eviction", times=4)
    important(bridge, "high")
    until(bridge, lambda: promised(bridge, "high") if place == "promise" else counted.counts.get("refused"))
    bridge.leads = False
    bridge.core.preempt_step()
    bridge.leads = True
    bridge.kube_calls.clear()
    bridge.core.recover()
    until(bridge, lambda: bridge.node_of("high"), 600)
    assert sum(ends_of(bridge, low)) == 1


def test_the_pod_that_was_promised_a_node_may_go(bridge: Bridge) -> None:
    """It is deleted while its victims leave: the nodes are free to all, and no other pod is evicted."""
    counted = preemptive(bridge)
    low = full(bridge, 10, 5, 10)
    important(bridge, "high")
    until(bridge, lambda: bridge.leaving("low1"))
    bridge.delete("high")
    go(bridge, 5)
    assert bridge.core.evictions.preemptions == {}
    assert not bridge.core.context.promised.nodes
    assert "used" not in counted.counts
    assert ends_of(bridge, low) == [False, True, False]


def test_no_pod_is_preempted_back(bridge: Bridge) -> None:
    """What replaces a victim is less important than the pod that took its place, and waits."""
    counted = preemptive(bridge)
    full(bridge, 10, 10, 10)
    important(bridge, "high", 11)
    until(bridge, lambda: bridge.node_of("high"))
    important(bridge, "back", 10)
    go(bridge, 5 * AFTER)
    assert not bridge.node_of("back")
    assert counted.counts["started"] == 1


def refusing(bridge: Bridge, times: int) -> Counted:
    """A pod that room is made for, while so many evictions are refused."""
    counted = preemptive(bridge)
    full(bridge, 10, 5, 10)
    bridge.kube_calls.plan(faults.Answer(429), method="POST", target="/eviction", times=times)
    important(bridge, "high")
    until(bridge, lambda: counted.counts.get("refused"))
    return counted


def test_no_pod_leaves_for_one_whose_job_was_cancelled_meanwhile(bridge: Bridge) -> None:
    """It is parked, and would not be submitted to the nodes."""
    refusing(bridge, times=30)
    bridge.slurm.control.end(bridge.job("high").job_id, "CANCELLED")
    go(bridge, 30)
    assert bridge.park_note("high")
    assert not bridge.leaving("low1")
    assert (bridge.core.evictions.preemptions, promised(bridge, "high")) == ({}, "")


def test_no_pod_leaves_for_one_that_wants_something_else_by_now(bridge: Bridge) -> None:
    """The nodes were chosen for what it asked for before."""
    counted = refusing(bridge, times=30)
    bridge.annotate("high", exclusive="true")
    until(bridge, lambda: counted.counts.get("given_up"), 5)
    assert not bridge.leaving("low1")
    assert promised(bridge, "high") == ""


def test_no_pod_leaves_for_one_that_could_not_be_submitted(tmp_path: pathlib.Path) -> None:
    """Slurm's queue has no place for it: the nodes would be cleared, and stay empty."""
    bridge = Bridge(tmp_path, scheduling={"unstarted_window": 1})
    counted = preemptive(bridge, capacity="free")
    low = full(bridge, 10, 5, 10)
    bridge.world.cordon("n1", on=True)
    bridge.run(3)
    important(bridge, "high")
    bridge.step()
    bridge.waiting("first", cpu="1")
    go(bridge, 3 * AFTER)
    assert ends_of(bridge, low) == [False, False, False]
    bridge.slurm.control.unpause()
    until(bridge, lambda: bridge.node_of("high"), 120)
    assert counted.counts["started"] == 1


@pytest.mark.parametrize("acted", [True, False])
def test_a_victim_is_told_why_although_the_answer_was_lost(bridge: Bridge, *, acted: bool) -> None:
    """Once, and whether the API server had let it go the first time or not."""
    counted = preemptive(bridge)
    full(bridge, 10, 5, 10, annotations=SLOW)
    bridge.kube_calls.plan(faults.Reset(acted=acted), method="POST", target="/eviction")
    important(bridge, "high")
    until(bridge, lambda: bridge.leaving("low1"))
    go(bridge, 5)
    assert [reason for reason, _ in bridge.events("low1")].count("Preempted") == 1
    assert counted.counts["victims"] == 1
