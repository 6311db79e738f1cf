"""Whatever is sent, in whatever order events are handled: nothing is counted twice, lost, or beyond a limit."""

import collections
import functools
from collections.abc import Callable, Mapping
from typing import Any

import hypothesis
from hypothesis import strategies as st

from slurm_bridge.families.yunikorn.queues import amounts
from slurm_bridge.families.yunikorn.queues.partition import QueuePartition
from slurm_bridge.families.yunikorn.queues.plans import PreemptionPlan
from slurm_bridge.families.yunikorn.queues.records import Allocation, AllocationRelease, NodeMode, Thing, Update, Why
from slurm_bridge.families.yunikorn.queues.tree import Queue
from tests.examples import examples
from tests.unit.families.yunikorn.queues.support_configs import queue
from tests.unit.families.yunikorn.queues.support_core import (
    FakeManager,
    World,
    application,
    ask,
    ask_id,
    documented,
    named,
    node,
)

_MOST = 6_000
_NAMES = st.sampled_from(["a1", "a2", "b1"])
_KEYS = st.sampled_from("xyz")
_NODES = st.sampled_from(["n1", "n2", "n3"])
_QUEUES: Mapping[str, str] = {"a1": "root.a", "a2": "root.a", "b1": "root.b"}

Action = Callable[[World], None]


def send(**fields: Any) -> Action:
    """A request, of which nothing is handled yet."""
    return lambda world: world.core.update(Update(rm="rm", **fields))


def passes(world: World) -> None:
    """One of every lane."""
    for lane in world.core.lanes():
        lane.run()


def cache(world: World) -> None:
    """The cache handles what it has."""
    world.core.cache.handle()


def schedulers(world: World) -> None:
    """The schedulers handle what they have."""
    for scheduler in world.core.schedulers:
        scheduler.route()
    for lane in world.core.lanes():
        lane.handle()


def time(world: World) -> None:
    """Some of it goes by."""
    world.clock.advance(40)


def asked(name: str, key: str, vcore: int, members: int, node: str) -> Action:
    """One ask, perhaps for a node."""
    return send(asks=(ask(name, key, vcore, members=members, required_node=node),))


def stands(name: str, key: str, on: str) -> Action:
    """Something that runs already."""
    return send(standing=(Allocation(ask=ask(name, key, 500), nodes=(on,)),))


def evicts(victim: str, key: str, asker: str, asks: str, on: str) -> Action:
    """Plan it for the next pass that is asked."""

    def act(world: World) -> None:
        plan = PreemptionPlan(
            victims=(ask_id(victim, key, "rm_default"),),
            asker=ask_id(asker, asks, "rm_default"),
            node=on,
            message="room",
        )
        world.plans.append(plan)

    return act


_SMALL = st.sampled_from([500, 2_000, 5_000])
EVICTIONS: st.SearchStrategy[Action] = st.one_of(
    st.builds(evicts, _NAMES, _KEYS, _NAMES, _KEYS, _NODES),
    st.builds(
        lambda name, key: send(releases=(AllocationRelease(id=ask_id(name, key), why=Why.PREEMPTED),)), _NAMES, _KEYS
    ),
    st.builds(lambda name, key: send(spared=(ask_id(name, key),)), _NAMES, _KEYS),
)
#: Nothing of this lets anybody have more than is allowed.
CALM: st.SearchStrategy[Action] = st.one_of(
    st.sampled_from([passes, cache, schedulers, time]),
    st.builds(lambda name: send(applications=(application(name, _QUEUES[name]),)), _NAMES),
    st.builds(asked, _NAMES, _KEYS, _SMALL, st.just(1), st.just("")),
    st.builds(asked, _NAMES, _KEYS, _SMALL, st.integers(1, 3), st.sampled_from(["", "", "n1"])),
    st.builds(lambda name, key: send(releases=(AllocationRelease(id=ask_id(name, key)),)), _NAMES, _KEYS),
    st.builds(lambda name, key: send(withdrawn=(ask_id(name, key),)), _NAMES, _KEYS),
    st.builds(lambda name: send(removed_applications=(named(name),)), _NAMES),
)
ACTIONS: st.SearchStrategy[Action] = st.one_of(
    CALM,
    EVICTIONS,
    st.builds(stands, _NAMES, _KEYS, _NODES),
    st.builds(lambda name, vcore: send(nodes=(node(name, vcore),)), _NODES, st.sampled_from([3_000, 8_000])),
    st.builds(lambda name: send(removed_nodes=(named(name),)), _NODES),
)


def check(world: World, manager: FakeManager) -> None:
    """After all events are handled: both sides agree, and each of them with itself."""
    committed = world.committed()
    held, waiting = allocations(committed.applications), set()
    assert told(manager) == {key: len(nodes) for key, nodes in held.items()}
    for scheduler in world.core.schedulers:
        partition = scheduler.lanes["rm_default"].partition
        assert allocations(partition.applications) == held
        for one, other in ((partition.root, committed.root), *zip(leaves(partition), leaves(committed), strict=True)):
            assert (one.path, one.allocated, one.running) == (other.path, other.allocated, other.running)
        assert partition.root.max == committed.root.max
        assert partition.root.preempting == committed.root.preempting
        sums(partition)
        waiting |= {(name, key) for name, one in partition.applications.items() for key in one.asks}
    assert waiting == {(name, key) for name, one in committed.applications.items() for key in one.asks}


def leaves(partition: Any) -> list[Queue]:
    """The queues below the root."""
    return list(partition.root.children.values())


def allocations(applications: Mapping[str, Any]) -> dict[tuple[str, str], tuple[str, ...]]:
    """The nodes of every allocation, by application and key."""
    return {(name, key): one.nodes for name, app in applications.items() for key, one in app.allocations.items()}


def sums(partition: QueuePartition) -> None:
    """What is kept incrementally is what there is."""
    total: dict[str, int] = {}
    for one in partition.applications.values():
        expected = functools.reduce(amounts.plus, (waiting.total for waiting in one.asks.values()), {})
        assert amounts.same(one.pending, expected)
        total = amounts.plus(total, expected)
        assert one.holders == sum(bool(waiting.on) for waiting in one.asks.values())
    assert amounts.same(partition.root.pending, total)
    held = {(holder, on.name) for on in partition.nodes for holder in on.held}
    assert held == {(holder, name) for holder, waiting in partition.holders.items() for name in waiting.on}


def told(manager: FakeManager) -> dict[tuple[str, str], int]:
    """How many members of what the manager has by what it was told, news after news."""
    has: collections.Counter[tuple[str, str]] = collections.Counter()
    for news in manager.heard:
        for one in news.accepted:
            if one.subject.thing is Thing.ALLOCATION:
                has[one.subject.name, one.subject.key] += 1
        for allocation in news.new:
            key = allocation.ask.application, allocation.ask.key
            assert key not in has
            has[key] = len(allocation.nodes)
        for gone in news.released:
            if gone.subject.thing is Thing.ALLOCATION:
                has[gone.subject.name, gone.subject.key] -= len(gone.nodes)
        has = +has
    return dict(has)


def made(number: int, mode: NodeMode) -> tuple[World, FakeManager]:
    """Queues with limits, two nodes and an application."""
    world = World(schedulers=number)
    limited = queue("a", resources={"max": {"vcore": f"{_MOST}m"}}, maxapplications=1)
    manager = world.register(documented(limited, queue("b", maxapplications=5)), mode=mode)
    send(nodes=(node("n1", 8_000), node("n2", 8_000)), applications=(application("a1"),))(world)
    return world, manager


_NUMBERS = st.integers(1, 3)


@hypothesis.settings(max_examples=examples(80))
@hypothesis.given(st.lists(ACTIONS, max_size=40), _NUMBERS, st.sampled_from(NodeMode))
def test_both_sides_agree_and_nothing_is_lost(actions: list[Action], number: int, mode: NodeMode):
    """With one scheduler or several, in both modes."""
    world, manager = made(number, mode)
    for action in actions:
        action(world)
    world.settle()
    assert world.failed == []
    check(world, manager)


@hypothesis.settings(max_examples=examples(80))
@hypothesis.given(st.lists(CALM, max_size=40), _NUMBERS)
def test_no_limit_is_exceeded_at_any_time(actions: list[Action], number: int):
    """The maximum of a queue, the applications that may run in it, and the capacity of nodes."""
    world, _ = made(number, NodeMode.FREE)
    for action in (*actions, World.settle):
        action(world)
        committed = world.committed()
        limited = committed.root.children["a"]
        assert limited.allocated.get("vcore", 0) <= _MOST
        assert limited.running <= 1
        assert all(amounts.fit_in(one.allocated, one.record.capacity) for one in committed.nodes.values())
