"""Whatever is sent while something is preempted: both sides agree, and what is kept of it is what there is."""

import functools
from typing import Any

import hypothesis
from hypothesis import strategies as st

from slurm_bridge.families.yunikorn.queues import amounts, tree
from slurm_bridge.families.yunikorn.queues.partition import QueuePartition
from slurm_bridge.families.yunikorn.queues.records import NodeMode
from tests.examples import examples
from tests.unit.families.yunikorn.queues.support_configs import queue
from tests.unit.families.yunikorn.queues.support_core import FakeManager, World, application, documented, node
from tests.unit.families.yunikorn.queues.test_queue_core_invariants import ACTIONS, Action, check, send


def made(number: int, mode: NodeMode, sized: bool = False) -> tuple[World, FakeManager]:
    """Two queues below a maximum, each with a guarantee, and two nodes, which may say how large the cluster is."""
    world = World(schedulers=number, preemptor=None)
    shares: list[Any] = [
        queue(name, resources={"guaranteed": {"vcore": much}}) for name, much in (("a", "3"), ("b", "8"))
    ]
    manager = world.register(documented(*shares), mode=mode)
    sizes = [{"size": {"vcore": vcore}} if sized and mode is NodeMode.ALLOCATABLE else {} for vcore in (8_000, 4_000)]
    nodes = (node("n1", 8_000, **sizes[0]), node("n2", 4_000, **sizes[1]))
    fields = {"nodes": nodes, "applications": (application("a1"),)}
    send(**fields)(world)
    return world, manager


def check_flights(partition: QueuePartition) -> None:
    """Victims are marked, what is promised is the sum of what is kept, and what stands is what is allocated."""
    for flight in partition.flights:
        assert all(partition.is_to_go(victim) for victim in flight.victims)
        assert amounts.fit_in(flight.kept, flight.total)
    for one in tree.downward(partition.root):
        below = [flight.kept for flight in partition.flights if one in flight.queue.lineage]
        assert amounts.same(one.promised, functools.reduce(amounts.plus, below, {}))
    for application_ in partition.applications.values():
        for key, allocation in application_.allocations.items():
            standing = partition.standing.one(allocation.ask.id)
            assert standing.nodes == allocation.nodes
            assert standing.preempted == (key in application_.preempting)


@hypothesis.settings(max_examples=examples(120))
@hypothesis.given(st.lists(ACTIONS, max_size=50), st.integers(1, 3), st.sampled_from(NodeMode), st.booleans())
def test_both_sides_agree_while_something_is_preempted(actions: list[Action], number: int, mode: NodeMode, sized: bool):
    """With one scheduler or several, in both modes, in a cluster with and without an end."""
    world, manager = made(number, mode, sized)
    for action in actions:
        action(world)
        for scheduler in world.core.schedulers:
            for lane in scheduler.lanes.values():
                check_flights(lane.partition)
    world.clock.advance(40)
    world.settle()
    assert world.failed == []
    check(world, manager)


@hypothesis.settings(max_examples=examples(60))
@hypothesis.given(st.lists(ACTIONS, max_size=30), st.integers(1, 3))
def test_nothing_is_promised_to_whom_does_not_wait(actions: list[Action], number: int):
    """Once everything has been handled."""
    world, _ = made(number, NodeMode.FREE)
    for action in actions:
        action(world)
    world.clock.advance(40)
    world.settle()
    waiting = {key for one in world.committed().applications.values() for key in (ask.id for ask in one.asks.values())}
    for scheduler in world.core.schedulers:
        assert {flight.asker for flight in scheduler.lanes["rm_default"].partition.flights} <= waiting
