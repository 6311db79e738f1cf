"""Nodes are kept for one workload while a guarantee makes others go for another one, in a cluster that is full."""

import pathlib

import pytest

from slurm_bridge.families.yunikorn import node_scores
from slurm_bridge.model import kinds
from tests.component.families.yunikorn.yunikorn_scenes import Queues, queue, until
from tests.component.scheduler.traffic import OPTIONS, emptied, reserved
from tests.component.scheduler.whole_core import Bridge

OWED = {"guaranteed": {"vcore": "4"}}
QUEUES = (queue("a", resources=OWED, properties={"preemption.delay": "5s"}), queue("b"), queue("c", resources=OWED))


@pytest.fixture
def bridge(tmp_path: pathlib.Path) -> Bridge:
    """Four nodes of four cpus, on one of which another scheduler has a pod for good."""
    return emptied(tmp_path)


def scattered(bridge: Bridge, queues: Queues) -> list[str]:
    """Pods of two cpus on all nodes, but on two nodes as much is left: four cpus together, and four on neither."""
    small = [f"small-{number}" for number in range(7)]
    for name in small:
        queues.pod(name, "root.b", cpu="2")
    until(bridge, lambda: len(queues.running(*small)) == len(small))
    for node in ("n1", "n2"):
        first = next(name for name in small if bridge.node_of(name) == node)
        bridge.status(first, phase="Succeeded")
        small.remove(first)
    return small


def seen(bridge: Bridge) -> None:
    """Slurm's nodes are read again, and the cluster is measured anew."""
    bridge.core.context.refresh_facts()
    bridge.kube.merge(kinds.NODES, ("", "n1"), {"metadata": {"labels": {"read": f"at-{bridge.clock.now()}"}}})
    bridge.run(node_scores.EVERY + 0.5)


def test_a_node_that_is_kept_does_not_make_the_cluster_smaller(bridge: Bridge) -> None:
    """The workload that it is kept for is let in already: too many borrowers would have to leave for what is owed."""
    queues = Queues(bridge, *QUEUES, **OPTIONS)
    small = scattered(bridge, queues)
    queues.pod("large", "root.c", cpu="4")
    until(bridge, lambda: bridge.jobs(bridge.uid("large")))
    small.append("late")
    queues.pod("late", "root.b", cpu="2")
    until(bridge, lambda: bridge.node_of("late"))
    seen(bridge)
    until(bridge, lambda: reserved(bridge))
    seen(bridge)
    (kept,) = reserved(bridge)[0].nodes
    there = bridge.core.context.keeper.snapshot().slurm_nodes[kept]
    assert ("RESERVED" in there.states, there.used_cpus) == (True, 2)
    # One cpu would be free beside the pod of the other scheduler.
    queues.pod("mine", "root.a", cpu="2")
    until(bridge, lambda: any(map(bridge.leaving, small)))
    bridge.run(5)
    assert sum(map(bridge.leaving, small)) == 1
