"""A workload that is kept from all nodes by the pods on them is looked at when pods come or go, and no other is."""

from collections.abc import Mapping
from typing import Any

import pytest

from slurm_bridge.model import kinds
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.scheduler.queue import WOKEN, Filed, WorkQueue
from slurm_bridge.scheduler.state import WorkloadStore
from tests.component.scheduler.whole_core import Bridge

#: The whole cluster is one place.
EVERYWHERE = "tests.local/place"


@pytest.fixture
def bridge(bridge: Bridge) -> Bridge:
    """With predicates that look at the pods on the nodes; every node is in the same place."""
    bridge = Bridge(bridge.folder, world=bridge.world, hooks=[{"name": "kube-scheduler"}])
    for node in [one["metadata"]["name"] for one in bridge.kube.list(kinds.NODES)]:
        bridge.kube.merge(kinds.NODES, ("", node), {"metadata": {"labels": {EVERYWHERE: "here"}}})
    bridge.run(3)
    return bridge


def near(kind: str, app: str) -> Mapping[str, Any]:
    """Required affinity, or anti-affinity, to the pods of this label."""
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": EVERYWHERE}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def kept_away(bridge: Bridge, name: str, words: str) -> None:
    """It says so, and nothing was submitted for it."""
    before = bridge.submits()
    bridge.run(10)
    assert words in bridge.condition(name)[1]
    assert bridge.submits() == before


def test_a_pod_that_goes_makes_room_for_those_that_it_kept_away(bridge: Bridge) -> None:
    """Nothing about the nodes themselves has changed."""
    bridge.bound("loud", labels={"app": "loud"})
    bridge.pod("shy", spec=near("podAntiAffinity", "loud"))
    kept_away(bridge, "shy", "didn't match pod anti-affinity rules")
    bridge.delete("loud", grace=0)
    bridge.until(lambda: bridge.node_of("shy"), 10)


def test_a_pod_that_comes_may_be_what_another_waited_for(bridge: Bridge) -> None:
    """From the moment at which it has a node."""
    bridge.pod("fan", spec=near("podAffinity", "star"))
    kept_away(bridge, "fan", "didn't match pod affinity rules")
    bridge.bound("star", labels={"app": "star"})
    bridge.until(lambda: bridge.node_of("fan"), 10)


def test_new_labels_of_a_running_pod_count(bridge: Bridge) -> None:
    """They are what affinity looks at."""
    bridge.bound("star")
    bridge.pod("fan", spec=near("podAffinity", "star"))
    kept_away(bridge, "fan", "didn't match pod affinity rules")
    bridge.kube.merge(kinds.PODS, ("default", "star"), {"metadata": {"labels": {"app": "star"}}})
    bridge.until(lambda: bridge.node_of("fan"), 10)


def test_room_that_only_pods_take_is_seen_when_it_is_free(bridge: Bridge) -> None:
    """Also where eligibility is told to look at what is free."""
    free = [{"name": "eligibility", "options": {"capacity": "free"}}]
    bridge = Bridge(bridge.folder, world=bridge.world, hooks=free)
    bridge.bound("big", cpu="3")
    bridge.kube.merge(kinds.NODES, ("", bridge.node_of("big")), {"metadata": {"labels": {"only": "here"}}})
    bridge.pod("small", cpu="2", spec={"nodeSelector": {"only": "here"}})
    kept_away(bridge, "small", "Insufficient cpu")
    bridge.delete("big", grace=0)
    bridge.until(lambda: bridge.node_of("small"), 10)


def test_a_pod_that_only_nodes_can_help_is_left_alone(bridge: Bridge) -> None:
    """Pods that come and go cost those nothing."""
    bridge.pod("lost", spec={"nodeSelector": {"no": "where"}})
    bridge.run(10)
    before = len(bridge.told.attempts)
    bridge.bound("other")
    bridge.delete("other", grace=0)
    bridge.run(10)
    assert bridge.told.attempts[before:].count("unschedulable") == 0


MOVING = Filed(moving=True)


def test_the_queue_stirs_those_that_asked_for_it() -> None:
    """And once: a workload that is looked at says anew whether it wants to be."""
    queue = WorkQueue(WorkloadStore(), VirtualClock(), lambda uid: uid)
    for uid, filed in (("a", MOVING), ("b", WOKEN), ("c", Filed(after=60.0, moving=True))):
        queue.activate(uid)
        queue.pop(room=True)
        queue.done(uid, filed)
    queue.line_news()
    assert queue.stir() == 2
    assert queue.line_news() == {"a": True, "c": True}
    assert queue.stir() == 0
