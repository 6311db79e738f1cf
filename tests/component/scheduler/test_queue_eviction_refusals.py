"""Evictions for queues that are refused, kept by a budget or no longer wanted end or go on as they should."""

import pathlib
from typing import Any

import pytest

from slurm_bridge.model import kinds, names
from slurm_bridge.sim import faults
from tests.component.families.yunikorn.yunikorn_scenes import Queues, document, queue
from tests.component.scheduler.queue_evictions import (
    ALL,
    MARKS,
    borrowed,
    evictions,
    go,
    left,
    notes,
    planned,
    teams,
    until,
)
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.world import NAMESPACE

pytestmark = pytest.mark.thorough


@pytest.fixture
def bridge(tmp_path: pathlib.Path) -> Bridge:
    """Four nodes of four cpus."""
    return Bridge(tmp_path)


def test_a_refused_eviction_is_asked_again(bridge: Bridge) -> None:
    """A budget may have another opinion later."""
    queues = borrowed(bridge)
    bridge.kube_calls.plan(faults.Answer(429), method="POST", target="/eviction", times=3)
    queues.pod("mine", "root.team.a", cpu="2")
    until(bridge, lambda: bridge.node_of("mine"))
    assert left(bridge, *ALL) == ["b3", "b4"]


def test_a_pod_that_a_budget_keeps_is_spared_and_another_one_goes(bridge: Bridge) -> None:
    """After the time that is configured; what was written on it is taken back."""
    queues = borrowed(bridge, "b1", "b2", "b3", "b4")
    bridge.kube.merge(kinds.PODS, (NAMESPACE, "b4"), {"metadata": {"labels": {"app": "db"}}})
    spec = {"selector": {"matchLabels": {"app": "db"}}, "minAvailable": 1}
    bridge.kube.create(kinds.PODDISRUPTIONBUDGETS, {"metadata": {"name": "x", "namespace": NAMESPACE}, "spec": spec})
    queues.pod("mine", "root.team.a", cpu="2")
    until(bridge, lambda: bridge.node_of("mine"), 120)
    assert left(bridge, *ALL) == ["b2", "b3"]
    go(bridge, 2)
    assert notes(bridge, "b4", names.ANNOTATION_MAKES_ROOM) == {}


def keeps(bridge: Bridge, name: str) -> None:
    """A budget that lets this pod never go."""
    bridge.kube.merge(kinds.PODS, (NAMESPACE, name), {"metadata": {"labels": {"app": "db"}}})
    spec = {"selector": {"matchLabels": {"app": "db"}}, "minAvailable": 1}
    bridge.kube.create(kinds.PODDISRUPTIONBUDGETS, {"metadata": {"name": "x", "namespace": NAMESPACE}, "spec": spec})


def test_no_other_pod_is_evicted_while_one_is_refused(bridge: Bridge) -> None:
    """Without it the room is not enough: those that had left already would have left for nothing."""
    queues = Queues(bridge, *teams(most="2"), evict_seconds=20)
    for name in ("b1", "b2"):
        queues.pod(name, "root.team.b")
        bridge.run(2)
    keeps(bridge, "b2")
    queues.pod("mine", "root.team.a", cpu="2")
    until(bridge, lambda: evictions(bridge))
    go(bridge, 25)
    assert [notes(bridge, name, key) for name in ("b1", "b2", "mine") for key in MARKS] == [{}] * 6
    go(bridge, 170)
    assert left(bridge, "b1", "b2") == []


def test_a_pod_that_a_budget_kept_before_is_asked_first(bridge: Bridge) -> None:
    """So that others go in vain at most once, however often it is tried."""
    queues = Queues(bridge, *teams(most="2"), evict_seconds=20)
    for name in ("b1", "b2"):
        queues.pod(name, "root.team.b")
        bridge.run(2)
    keeps(bridge, "b1")
    queues.pod("mine", "root.team.a", cpu="2")
    until(bridge, lambda: bridge.leaving("b2"))
    queues.pod("b3", "root.team.b")
    until(bridge, lambda: bridge.node_of("b3"), 120)
    before = evictions(bridge)
    until(bridge, lambda: evictions(bridge) > before, 120)
    go(bridge, 60)
    assert left(bridge, "b1", "b3") == []


OFF: dict[str, Any] = {"preemption": {"enabled": False}}


@pytest.mark.parametrize("options", [{"configuration": document(*teams(), **OFF)}, {"mode": "slurm"}])
def test_a_pod_that_is_not_evicted_yet_stays_when_preemption_is_switched_off(bridge: Bridge, options: Any) -> None:
    """At once, and not when it has been refused for long enough: its operator does not want it to go."""
    queues = borrowed(bridge)
    bridge.kube_calls.plan(faults.Answer(429), method="POST", target="/eviction", times=3)
    queues.pod("mine", "root.team.a", cpu="2")
    until(bridge, lambda: evictions(bridge))
    queues.configure(**{"configuration": document(*teams()), "evict_seconds": 20, **options})
    told = evictions(bridge)
    go(bridge, 30)
    assert (evictions(bridge), left(bridge, *ALL), bridge.core.evictions.queue_evictions) == (told, [], {})
    assert [notes(bridge, name, key) for name in ("b3", "b4", "mine") for key in MARKS] == [{}] * 6


def test_without_the_right_to_evict_all_are_spared(bridge: Bridge) -> None:
    """And nothing is kept for the asker."""
    queues = borrowed(bridge)
    bridge.kube_calls.plan(faults.Answer(403), method="POST", target="/eviction", times=1000)
    queues.pod("mine", "root.team.a", cpu="2")
    go(bridge, 30)
    assert left(bridge, *ALL) == []
    assert notes(bridge, "b4", names.ANNOTATION_MAKES_ROOM) == {}


def test_no_pod_leaves_any_more_for_one_that_has_gone(bridge: Bridge) -> None:
    """A victim that is not evicted yet is spared."""
    queues = borrowed(bridge)
    bridge.kube_calls.plan(faults.Answer(429), method="POST", target="/eviction", times=1000)
    queues.pod("mine", "root.team.a", cpu="2")
    until(bridge, lambda: evictions(bridge))
    bridge.delete("mine", grace=0)
    bridge.step()
    bridge.core.preempt_step()
    bridge.kube_calls.clear()
    go(bridge, 20)
    assert left(bridge, *ALL) == []
    assert bridge.core.evictions.queue_evictions == {}


def test_a_lowered_maximum_takes_back_what_is_too_much(bridge: Bridge) -> None:
    """After the delay that the queue has; there is no asker, so the queue is named."""
    slow = {"quota.preemption.delay": "10s"}
    queues = Queues(
        bridge, configuration=document(queue("b", properties=slow), preemption={"quotapreemptionenabled": True})
    )
    for name in ALL:
        queues.pod(name, "root.b")
        bridge.run(2)
    lowered = queue("b", resources={"max": {"vcore": "3"}}, properties=slow)
    queues.configure(configuration=document(lowered, preemption={"quotapreemptionenabled": True}))
    go(bridge, 8)
    assert left(bridge, *ALL) == []
    until(bridge, lambda: left(bridge, *ALL))
    go(bridge, 30)
    (gone,) = left(bridge, *ALL)
    told = [note for reason, note in bridge.events(gone) if reason == "Preempted"]
    assert told[0].startswith("Preempted by queue root.b (over its maximum) on node n")


def test_without_the_hook_what_was_begun_ends(bridge: Bridge) -> None:
    """No other pod is evicted, and nothing is said on pods any more."""
    queues = borrowed(bridge)
    queues.pod("mine", "root.team.a", cpu="2")
    planned(bridge)
    bridge.core.configure(queues.base)
    bridge.kube_calls.clear()
    go(bridge, 5)
    assert left(bridge, *ALL) == []
    assert [notes(bridge, name, key) for name in ("b4", "mine") for key in MARKS] == [{}] * 4
    assert not bridge.core.context.promised.nodes
