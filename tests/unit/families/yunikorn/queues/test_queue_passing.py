"""The pass over a partition, and what it remembers from step to step."""

import hypothesis
import pytest
from hypothesis import strategies as st

from slurm_bridge.families.yunikorn.queues import node_search, nodes, records
from slurm_bridge.families.yunikorn.queues.allocation_pass import Allocated, Passing, Reserved
from slurm_bridge.families.yunikorn.queues.applications import PendingAsk
from slurm_bridge.families.yunikorn.queues.nodes import NodesOfPartition
from slurm_bridge.families.yunikorn.queues.partition import AllocationRules, QueuePartition
from slurm_bridge.families.yunikorn.queues.records import Allocation, AllocationAsk, NodeMode
from slurm_bridge.families.yunikorn.queues.settings import QueueSettings
from slurm_bridge.families.yunikorn.queues.tree import Queue
from tests.examples import examples
from tests.unit.families.yunikorn.queues.support_core import application, ask, node


def partition_of(*sizes: int, maximum: int | None = None, most: int = 0, **rules: object) -> QueuePartition:
    """Nodes of so many vcores, and one leaf."""
    root = Queue("root")
    settings = QueueSettings(max={"vcore": maximum} if maximum else None, max_applications=most)
    Queue("a", root, leaf=True, settings=settings)
    made = QueuePartition(root, nodes.sorts(), AllocationRules(**rules))  # type: ignore[arg-type]
    for number, size in enumerate(sizes):
        made.put_node(node(f"n{number}", size))
    return made


def asking(partition: QueuePartition, *asks: AllocationAsk) -> Passing:
    """Their applications are in the leaf."""
    for name in dict.fromkeys(one.application for one in asks):
        partition.add_application(application(name), partition.root.children["a"])
    for one in asks:
        partition.add_ask(one)
    return Passing(partition)


def results(passing: Passing, now: float = 100.0) -> list[tuple[str, object]]:
    """All steps, until nothing comes of one."""
    found: list[tuple[str, object]] = []
    while (one := passing.step(now)) is not None:
        if isinstance(one, Allocated):
            found.append((one.allocation.ask.key, one.allocation.nodes))
        else:
            found.append((one.ask.key, one.node))
    return found


SORTS = st.sampled_from(["fair", "binpacking"])
SIZES = st.lists(st.sampled_from([2_000, 4_000, 9_000]), min_size=1, max_size=4)
ASKS = st.lists(
    st.builds(
        ask,
        st.sampled_from(["one", "two", "three"]),
        st.sampled_from("abcdef"),
        st.sampled_from([500, 1_500, 3_000, 5_000]),
        members=st.sampled_from([1, 1, 2, 3]),
        priority=st.integers(0, 2),
        created=st.sampled_from([0.0, 98.5]),
        required_node=st.sampled_from(["", "", "", "n0"]),
    ),
    max_size=10,
    unique_by=lambda one: (one.application, one.key),
)


class Forgetful(Passing):
    """Remembers nothing from one step to the next."""

    def step(self, now: float) -> Allocated | Reserved | None:
        partition = self._partition
        for one in partition.applications.values():
            partition.leaf(one.queue).open()
        return Passing(partition).step(now)


@hypothesis.settings(max_examples=examples(150))
@hypothesis.given(SIZES, ASKS, st.sampled_from([None, 6_000]), st.sampled_from(NodeMode))
def test_what_is_remembered_changes_no_result(
    sizes: list[int], asks: list[AllocationAsk], maximum: int | None, mode: NodeMode
):
    """Step by step the same, also after room came back and time went by."""
    first, second = (partition_of(*sizes, maximum=maximum, mode=mode) for _ in range(2))
    remembers = asking(first, *asks)
    asking(second, *asks)
    forgets = Forgetful(second)
    for now in (99.0, 100.0, 101.0):
        assert results(remembers, now) == results(forgets, now)
    for one in (first, second):
        for on in [*one.nodes][:1]:
            for allocation in tuple(on.allocations.values()):
                one.release(allocation.ask.id)
    for now in (101.0, 5_000.0):
        assert results(remembers, now) == results(forgets, now)


@hypothesis.given(
    SIZES, st.integers(1, 6), st.sampled_from([500, 1_500, 3_000]), st.sampled_from(["fair", "binpacking"])
)
def test_members_of_a_gang_go_where_they_would_go_one_by_one(sizes: list[int], members: int, vcore: int, sort: str):
    """As asks of one application, each after the other; or none of them goes anywhere."""
    together, alone = partition_of(*sizes, node_sort=sort), partition_of(*sizes, node_sort=sort)
    gang = results(asking(together, ask("app", "gang", vcore, members=members, created=100.0)))
    single = results(asking(alone, *(ask("app", f"{number}", vcore, created=100.0) for number in range(members))))
    placed = [on for _, on in single]
    if len(placed) == members:
        assert gang == [("gang", tuple(name for on in placed for name in on))]
    else:
        assert gang == []


@hypothesis.given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.sampled_from([5_000, 9_000])), max_size=20),
    SORTS,
)
def test_the_order_of_nodes_follows_every_change(changes: list[tuple[str, int, int]], sort: str):
    """As if they were sorted anew."""
    book = NodesOfPartition(nodes.sorts(), NodeMode.FREE)
    assert list(book.ordered(sort)) == []
    for number, (name, vcore, size) in enumerate(changes):
        book.put(node(name, size))
        if vcore == 0:
            book.remove(name)
            book.remove(name)
        else:
            book.add(Allocation(ask=ask("app", f"{number}", vcore * 100), nodes=(name,)))
        expected = sorted(book.score(sort, one, {}) for one in book)
        assert [one.name for one in book.ordered(sort)] == [name for _, name in expected]
        assert book.total.get("vcore", 0) == sum(one.capacity["vcore"] for one in book)
        assert len(book) == len(expected)


def test_what_comes_off_a_node_leaves_it_as_it_was():
    """Free room, and the place in the order."""
    book = NodesOfPartition(nodes.sorts(), NodeMode.FREE)
    book.put(node("a"))
    book.put(node("b"))
    on = Allocation(ask=ask("app", "1", members=2), nodes=("a", "a"))
    assert [one.name for one in book.ordered("fair")] == ["a", "b"]
    book.add(on)
    assert [one.name for one in book.ordered("fair")] == ["b", "a"]
    book.take_off(on)
    assert [one.name for one in book.ordered("fair")] == ["a", "b"]


def test_asks_go_by_priority_then_age_then_arrival():
    """An application's own."""
    asks = [
        ask("app", "late", created=5),
        ask("app", "high", priority=1, created=9),
        ask("app", "first", created=1),
        ask("app", "second", created=1),
    ]
    assert [key for key, _ in results(asking(partition_of(9_000), *asks))] == ["high", "first", "second", "late"]


def test_an_ask_that_arrives_while_nothing_can_be_placed_is_tried():
    """The leaf was known to have nothing to place."""
    partition = partition_of(2_000, 2_000)
    passing = asking(partition, ask("app", "large", 3_000))
    assert results(passing) == []
    partition.add_ask(ask("app", "small"))
    assert results(passing) == [("small", ("n0",))]


def test_a_node_that_is_not_schedulable_is_for_those_who_require_it():
    """Whoever could go elsewhere does."""
    partition = partition_of(9_000, 9_000)
    partition.put_node(records.NodeReport(name="n0", partition="default", capacity={"vcore": 9_000}, schedulable=False))
    asks = ask("app", "any", created=1), ask("app", "one", required_node="n0", created=2)
    assert results(asking(partition, *asks)) == [("any", ("n1",)), ("one", ("n0",))]


def test_a_reserved_node_that_is_closed_serves_nobody_until_it_is_open_again():
    """What is held is kept, the ask waits or goes elsewhere."""
    partition = partition_of(9_000, 9_000)
    passing = asking(partition, *(ask("app", f"{number}", 6_000) for number in range(3)))
    assert results(passing) == [("0", ("n0",)), ("1", ("n1",)), ("2", "n0")]
    closed = records.NodeReport(name="n0", partition="default", capacity={"vcore": 9_000}, schedulable=False)
    partition.put_node(closed)
    partition.release(ask("app", "0").id)
    assert results(passing) == []
    partition.put_node(records.NodeReport(name="n0", partition="default", capacity={"vcore": 9_000}))
    assert results(passing) == [("2", ("n0",))]


def test_who_holds_a_node_does_not_start_while_enough_applications_run():
    """Its node is kept, and it starts when one of them has gone."""
    partition = partition_of(9_000, 9_000, most=1)
    passing = asking(partition, ask("first", "1", 1), ask("second", "1", 9_000))
    assert results(passing) == [("1", ("n0",))]
    waiting = partition.applications["second"].asks["1"]
    partition.reserve(waiting, "n1", 0.0)
    assert results(passing) == []
    partition.remove_application("first")
    assert results(passing) == [("1", ("n1",))]


@pytest.mark.parametrize(("resource", "room", "members"), [({"x": 2}, {"x": 5}, 2), ({"x": 2}, {}, 0), ({}, {}, None)])
def test_members_of_says_how_many_go_into_a_room(resource: dict[str, int], room: dict[str, int], members: int | None):
    """Any number of those that take nothing."""
    assert node_search.members_of(resource, room) == members


def test_a_gang_holds_no_more_nodes_than_it_needs():
    """Counted as if they were empty."""
    waiting = PendingAsk(ask("app", "gang", 4_000, members=3), "fair")
    own = [nodes.PartitionNode(node("n0", 9_000)), nodes.PartitionNode(node("n1", 3_000))]
    waiting.on.update({"n0": 0.0, "n1": 0.0})
    assert node_search.may_reserve(waiting, own, now=100, delay=2)
    assert not node_search.may_reserve(waiting, [*own, nodes.PartitionNode(node("n2", 4_000))], now=100, delay=2)
    assert not node_search.may_reserve(waiting, (), now=1, delay=2)
