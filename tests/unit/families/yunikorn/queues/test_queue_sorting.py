"""Who is tried first: queues, applications, asks, nodes."""

import dataclasses
import functools
import itertools

import hypothesis
import pytest
from hypothesis import strategies as st

from slurm_bridge.families.yunikorn.queues import amounts, orders
from slurm_bridge.families.yunikorn.queues.amounts import Known
from slurm_bridge.families.yunikorn.queues.orders import Applications, NodePolicy
from slurm_bridge.families.yunikorn.queues.settings import QueueSettings, SortPolicy
from slurm_bridge.families.yunikorn.queues.tree import Queue, State
from tests.unit.families.yunikorn.queues.support_trees import App, amounts_of_things, apps, limits, names, policies


@dataclasses.dataclass(frozen=True, slots=True)
class _Ask:
    name: str
    priority: int
    created: float


_shared = st.fixed_dictionaries(
    {
        "allocated": st.dictionaries(st.sampled_from(["vcore", "memory"]), st.integers(0, 3)),
        "guaranteed": st.none() | st.dictionaries(st.sampled_from(["vcore", "memory"]), st.integers(0, 3)),
        "priority": st.integers(0, 1),
        "stopped": st.booleans(),
    }
)
_PLAIN = {"allocated": {}, "guaranteed": None, "priority": 0, "stopped": False}

#: What a queue has pending, where amounts can be compared, and where they cannot always.
_alike = st.fixed_dictionaries({"vcore": st.integers(-1, 3)})
_unlike = st.fixed_dictionaries({"vcore": st.integers(-1, 3), "memory": st.integers(0, 3)})


def _parent(children: list[tuple[dict[str, object], dict[str, int]]], settings: QueueSettings) -> Queue:
    parent = Queue("root", settings=settings)
    parent.resize({"vcore": 10})
    for place, (facts, pending) in enumerate(children):
        child = Queue(f"q{place}", parent, leaf=True, settings=QueueSettings(guaranteed=facts["guaranteed"]))
        child.allocate(facts["allocated"])
        child.add_pending(pending)
        child.set_waiting(facts["priority"])
        child.turn(State.STOPPED if facts["stopped"] else State.ACTIVE)
    return parent


def _above(child: Queue) -> Queue:
    assert child.parent is not None
    return child.parent


#: What may happen to a child, to its parent's settings, and to the size of the cluster.
_CHANGES = [
    Queue.allocate,
    Queue.add_pending,
    lambda child, amount: child.set_waiting(len(amount)),
    lambda child, _: child.turn(State.DRAINING),
    lambda child, amount: child.configure(QueueSettings(guaranteed=amount)),
    lambda child, amount: _above(child).resize(amount),
    lambda child, amount: _above(child).configure(QueueSettings(max=amount, priority_sorting=False)),
    lambda child, _: _above(child).arrange([child.name]),
]


def _share(queue: Queue) -> float:
    return amounts.fair_share(queue.allocated, queue.guaranteed, queue.fair_max)


def _is_larger(left: amounts.Amount, right: amounts.Amount) -> bool:
    return amounts.is_positive(amounts.minus(left, right))


def _compare(parent: Queue, left: Queue, right: Queue) -> float:
    """The rule as it is written: below 0 where the left one is first."""
    by_priority, by_share = right.priority - left.priority, _share(left) - _share(right)
    by_pending = _is_larger(right.pending, left.pending) - _is_larger(left.pending, right.pending)
    if parent.sort_policy is SortPolicy.FIFO:
        return by_priority if parent.priority_sorting else 0
    first, second = (by_priority, by_share) if parent.priority_sorting else (by_share, by_priority)
    return first or second or by_pending


def _served(parent: Queue) -> list[Queue]:
    return [
        child
        for child in parent.children.values()
        if child.state is not State.STOPPED and amounts.is_positive(child.pending)
    ]


class TestQueues:
    @hypothesis.given(st.lists(st.tuples(_shared, _alike), max_size=8), policies, st.booleans())
    def test_the_order_is_that_of_the_rule(self, children, policy: SortPolicy, by_priority: bool):
        """Stable, without those that are stopped or wait for nothing."""
        parent = _parent(children, QueueSettings(sort_policy=policy, priority_sorting=by_priority))
        expected = sorted(_served(parent), key=functools.cmp_to_key(functools.partial(_compare, parent)))
        assert names(orders.sorted_queues(parent)) == names(expected)

    @hypothesis.given(st.lists(st.tuples(st.just(_PLAIN) | _shared, _unlike), max_size=8), policies, st.booleans())
    def test_nobody_stands_before_one_that_is_ahead(self, children, policy: SortPolicy, by_priority: bool):
        """Next to each other, also where of two neither has more of everything pending."""
        parent = _parent(children, QueueSettings(sort_policy=policy, priority_sorting=by_priority))
        order = orders.sorted_queues(parent)
        assert sorted(names(order)) == sorted(names(_served(parent)))
        assert all(_compare(parent, left, right) <= 0 for left, right in itertools.pairwise(order))

    @hypothesis.given(st.lists(st.tuples(_shared, _unlike), min_size=1, max_size=6), policies, st.data())
    def test_a_remembered_order_is_that_of_a_new_tree(self, children, policy: SortPolicy, data: st.DataObject):
        """After any changes below, of the settings and of the size of the cluster."""
        parent = _parent(children, QueueSettings(sort_policy=policy))
        for _ in range(data.draw(st.integers(0, 5))):
            orders.sorted_queues(parent)
            child = data.draw(st.sampled_from(list(parent.children.values())))
            data.draw(st.sampled_from(_CHANGES))(child, data.draw(amounts_of_things))
        remembered = orders.sorted_queues(parent)
        parent.order = None
        for child in parent.children.values():
            child.rank = None
        assert names(orders.sorted_queues(parent)) == names(remembered)

    def test_a_priority_that_changes_below_the_highest_changes_the_order(self):
        """Of three the highest stays what it was; the other two change places."""
        parent = Queue("root", settings=QueueSettings(sort_policy=SortPolicy.FIFO))
        for name, priority in (("a", 3), ("b", 1), ("c", 0)):
            child = Queue(name, parent, leaf=True)
            child.add_pending({"vcore": 1})
            child.set_waiting(priority)
        assert names(orders.sorted_queues(parent)) == ["a", "b", "c"]
        parent.children["c"].set_waiting(2)
        assert names(orders.sorted_queues(parent)) == ["a", "c", "b"]

    def test_what_did_not_change_is_not_sorted_again(self):
        """The same answer until something changes below."""
        parent = _parent([(_PLAIN, {"vcore": 1})], QueueSettings())
        first = orders.sorted_queues(parent)
        assert orders.sorted_queues(parent) is first
        parent.children["q0"].allocate({"vcore": 1})
        assert orders.sorted_queues(parent) is not first

    def test_a_draining_queue_is_served(self):
        """Only nothing new is taken into it."""
        parent = _parent([(_PLAIN, {"vcore": 1})], QueueSettings())
        parent.children["q0"].turn(State.DRAINING)
        assert names(orders.sorted_queues(parent)) == ["q0"]


def _compare_apps(left: App, right: App, *, policy: SortPolicy, by_priority: bool, total: Known) -> float:
    """The rule as it is written."""
    fair = policy is SortPolicy.FAIR
    one, other = (amounts.share_key(amounts.shares(app.allocated, total)) for app in (left, right))
    first = (one > other) - (one < other) if fair else left.submitted - right.submitted
    second = right.priority - left.priority
    return (second or first) if by_priority else (first or second)


def _expected(some: list[App], leaf: Queue) -> list[App]:
    compare = functools.partial(
        _compare_apps, policy=leaf.sort_policy, by_priority=leaf.priority_sorting, total=leaf.guaranteed
    )
    return sorted((app for app in some if amounts.is_positive(app.pending)), key=functools.cmp_to_key(compare))


class TestApplications:
    @hypothesis.given(st.lists(apps, max_size=10), policies, st.booleans(), limits)
    def test_the_order_is_that_of_the_rule(self, some: list[App], policy: SortPolicy, by_priority: bool, total: Known):
        """Stable, without those for which nothing waits."""
        settings = QueueSettings(sort_policy=policy, priority_sorting=by_priority, guaranteed=total)
        leaf = Queue("leaf", leaf=True, settings=settings)
        order: Applications[App] = Applications(leaf)
        for app in some:
            order.put(app)
        assert list(order) == _expected(some, leaf)

    @hypothesis.given(st.lists(apps, min_size=1, max_size=3) | st.lists(apps, min_size=15, max_size=25), st.data())
    def test_what_is_kept_is_what_sorting_all_gives(self, some: list[App], data: st.DataObject):
        """After any changes of applications and settings, in the order in which they came where they are equal."""
        leaf = Queue("leaf", leaf=True)
        order: Applications[App] = Applications(leaf)
        there: list[App] = []
        for app in some:
            order.put(app)
            there.append(app)
        for _ in range(data.draw(st.integers(1, 6))):
            changed = data.draw(st.sampled_from(some))
            if data.draw(st.booleans()) and changed in there:
                there.remove(changed)
                order.drop(changed)
            else:
                changed.priority, changed.allocated = data.draw(st.integers(0, 3)), data.draw(amounts_of_things)
                changed.pending = data.draw(amounts_of_things)
                order.put(changed)
                there += [] if changed in there else [changed]
            if data.draw(st.booleans()):
                leaf.configure(QueueSettings(sort_policy=data.draw(policies), guaranteed=data.draw(limits)))
            assert list(order) == _expected(there, leaf)
            assert len(order) == len(there)

    def test_a_pass_may_change_what_it_goes_through(self):
        """It sees the order as it was when it began; the next one sees the changes."""
        order: Applications[App] = Applications(Queue("leaf", leaf=True))
        one, two, three = (App(name=name, submitted=place) for place, name in enumerate("abc"))
        for app in (one, two, three):
            order.put(app)
        seen = []
        for app in order:
            seen.append(app.name)
            order.drop(two)
            one.priority = 5
            order.put(one)
        assert seen == ["a", "b", "c"]
        assert names(order) == ["a", "c"]

    def test_asks_are_tried_by_priority_then_age(self):
        """Stable."""
        asks = [_Ask("a", 0, 1.0), _Ask("b", 2, 4.0), _Ask("c", 2, 3.0), _Ask("d", -1, 0.0), _Ask("e", 2, 3.0)]
        assert "".join(ask.name for ask in sorted(asks, key=orders.ask_key)) == "cebad"


class TestNodes:
    @pytest.mark.parametrize(
        ("text", "policy"),
        [
            ("fair", NodePolicy.FAIR),
            ("binpacking", NodePolicy.BINPACKING),
            ("", NodePolicy.FAIR),
            ("Fair", NodePolicy.FAIR),
            ("random", NodePolicy.FAIR),
        ],
    )
    def test_an_unknown_policy_is_fair(self, text: str, policy: NodePolicy):
        """So is none."""
        assert orders.node_policy(text) is policy

    def test_a_score_is_the_weighted_part_that_is_used(self):
        """Types without a weight, and those of which there is none, do not count."""
        capacity, used = {"vcore": 10, "memory": 4, "gpu": 0, "disk": 1}, {"vcore": 5, "memory": 1, "disk": 1}
        weights = {"vcore": 3.0, "memory": 1.0, "gpu": 9.0, "disk": 0.0, "pods": 2.0}
        assert orders.node_score(capacity, used, NodePolicy.FAIR, weights) == pytest.approx((3 * 0.5 + 0.25) / 4)
        assert orders.node_score(capacity, used, NodePolicy.FAIR) == pytest.approx((0.5 + 0.25) / 2)
        assert orders.node_score(capacity, used, NodePolicy.BINPACKING, {}) == pytest.approx(1 - 0.375)

    def test_nothing_that_counts_is_nothing_used(self):
        """The emptiest node for one policy, the last choice of the other."""
        assert orders.node_score({}, {}, NodePolicy.FAIR) == 0
        assert orders.node_score({"vcore": 0}, {}, NodePolicy.BINPACKING) == 1

    def test_a_node_that_shrank_to_nothing_while_in_use_is_over_full(self):
        """Fair scheduling leaves it for last."""
        assert orders.node_score({"vcore": 0}, {"vcore": 1}, NodePolicy.FAIR) == float("inf")

    def test_scores_that_hardly_differ_leave_it_to_the_name(self):
        """Those that differ do not."""
        scores = {"c": 0.3, "b": 0.1 + 0.2, "a": 0.31}
        assert sorted(scores, key=lambda name: orders.node_key(scores[name], name)) == ["b", "c", "a"]
