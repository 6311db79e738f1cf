"""The tree of queues: usage up the path, limits, priorities, applications."""

from collections.abc import Callable, Iterable

import hypothesis
import pytest
from hypothesis import strategies as st

from slurm_bridge.families.yunikorn.queues import amounts, priorities, tree
from slurm_bridge.families.yunikorn.queues.amounts import Known
from slurm_bridge.families.yunikorn.queues.priorities import NOTHING, PriorityPolicy
from slurm_bridge.families.yunikorn.queues.settings import QueueSettings, SortPolicy
from slurm_bridge.families.yunikorn.queues.tree import Queue, State
from tests.unit.families.yunikorn.queues.support_trees import amounts_of_things, at, known, limited, limits, root_of

_LEAVES = ("a.x", "a.y", "b.z", "c")
_PATHS = ("root", "root.a", "root.b", *(f"root.{leaf}" for leaf in _LEAVES))

_leaves = st.sampled_from([f"root.{leaf}" for leaf in _LEAVES])
_policies = st.sampled_from(list(PriorityPolicy))
_asked = st.just(NOTHING) | st.integers(-5, 5) | st.sampled_from([NOTHING + 1, priorities.HIGHEST])


def _total(own: dict[str, dict[str, int]], queue: Queue) -> dict[str, int]:
    """The sum of the leaves at or below the queue, from scratch."""
    below = [own[leaf.path] for leaf in tree.downward(queue) if leaf.path in own]
    total: dict[str, int] = {}
    for one in below:
        total = amounts.plus(total, one)
    return {kind: one for kind, one in total.items() if one}


def _highest(queue: Queue) -> int:
    """What the queue passes up, from scratch."""
    below = [_highest(child) for child in queue.children.values()]
    return priorities.passed_up(queue.waiting if queue.leaf else max(below), queue.offset, queue.priority_policy)


class TestUsage:
    @hypothesis.given(
        st.lists(st.tuples(_leaves, st.sampled_from(["allocated", "preempting", "pending"]), known), max_size=25)
    )
    def test_what_is_kept_is_what_the_leaves_sum_up_to(self, changes: list[tuple[str, str, Known]]):
        """On every level, after any changes, without zeros."""
        root = root_of(*_LEAVES)
        own: dict[str, dict[str, dict[str, int]]] = {"allocated": {}, "preempting": {}, "pending": {}}
        for path, usage, amount in changes:
            leaf = at(root, path)
            change = {"allocated": leaf.allocate, "preempting": leaf.mark_preempting, "pending": leaf.add_pending}
            change[usage](amount)
            own[usage][path] = amounts.plus(own[usage].get(path), amount)
        for queue in tree.downward(root):
            assert queue.allocated == _total(own["allocated"], queue)
            assert queue.preempting == _total(own["preempting"], queue)
            assert queue.pending == _total(own["pending"], queue)

    @pytest.mark.parametrize(
        ("do", "undo"),
        [
            (Queue.allocate, Queue.release),
            (Queue.mark_preempting, Queue.unmark_preempting),
            (Queue.add_pending, Queue.remove_pending),
        ],
    )
    def test_each_change_has_its_inverse(self, do: Callable[..., None], undo: Callable[..., None]):
        """After which nothing is left, up to the root."""
        root = root_of("a.x")
        do(at(root, "root.a.x"), {"vcore": 2})
        undo(at(root, "root.a.x"), {"vcore": 2})
        assert not any(queue.allocated or queue.preempting or queue.pending for queue in tree.downward(root))

    @hypothesis.given(_leaves, st.sampled_from([Queue.allocate, Queue.release, Queue.add_pending]))
    def test_a_change_counts_on_its_path_only(self, path: str, change: Callable[[Queue, Known], None]):
        """Whoever remembers something of a queue beside it may keep it."""
        root = root_of(*_LEAVES)
        before = {queue.path: queue.changes for queue in tree.downward(root)}
        change(at(root, path), {"vcore": 1})
        changed = {queue.path for queue in tree.downward(root) if queue.changes != before[queue.path]}
        assert changed == {queue.path for queue in at(root, path).lineage}


class TestLimits:
    @hypothesis.given(st.tuples(limits, limits, limits), st.tuples(amounts_of_things, amounts_of_things))
    def test_what_fits_the_headroom_breaks_no_maximum(
        self, maxima: tuple[Known, Known, Known], used: tuple[dict[str, int], dict[str, int]]
    ):
        """And what does not fit would break one of those above."""
        settings = {
            path: QueueSettings(max=one) for path, one in zip(("root", "root.a", "root.a.x"), maxima, strict=True)
        }
        root = root_of("a.x", "b.z", settings=settings)
        leaf = at(root, "root.a.x")
        leaf.allocate(used[0])
        at(root, "root.b.z").allocate(used[1])
        for ask in ({"vcore": 1}, {"memory": 7, "gpu": 1}):
            within = all(
                above.allocated.get(kind, 0) + one <= (above.max or {}).get(kind, 10**9)
                for above in leaf.lineage
                for kind, one in ask.items()
            )
            assert amounts.fit_in_max_undefined(ask, tree.headroom(leaf)) is within

    def test_headroom_is_exactly_what_is_left_of_defined_types(self):
        """Less than nothing where a maximum was lowered below the usage."""
        root = root_of("a.x", settings={"root": limited(vcore=10), "root.a": limited(memory=5)})
        at(root, "root.a.x").allocate({"vcore": 3, "memory": 6, "gpu": 1})
        assert tree.headroom(at(root, "root.a.x")) == {"vcore": 7, "memory": -1}
        assert tree.max_headroom(at(root, "root.a.x")) == {"memory": -1}
        assert tree.max_headroom(root) is None

    def test_without_any_maximum_there_is_no_limit(self):
        """None, which differs from nothing left."""
        leaf = at(root_of("a.x"), "root.a.x")
        assert tree.headroom(leaf) is tree.max_headroom(leaf) is tree.effective_max(leaf) is leaf.fair_max is None

    def test_the_effective_maximum_is_the_smallest_by_type(self):
        """Of all on the path."""
        settings = {"root": limited(vcore=10, gpu=1), "root.a": limited(vcore=4), "root.a.x": limited(vcore=8, pods=2)}
        assert tree.effective_max(at(root_of("a.x", settings=settings), "root.a.x")) == {
            "vcore": 4,
            "gpu": 1,
            "pods": 2,
        }

    @hypothesis.given(st.lists(st.tuples(st.sampled_from(_PATHS), st.booleans(), limits), max_size=12))
    def test_the_fair_maximum_follows_every_change_of_a_maximum(self, changes: list[tuple[str, bool, Known]]):
        """The child's own replaces what it inherits, by type; nothing to inherit or to replace leaves it as it is."""
        root = root_of(*_LEAVES)
        for path, configured, maximum in changes:
            queue = at(root, path)
            queue.configure(QueueSettings(max=maximum)) if configured else queue.resize(maximum)
        for queue in tree.downward(root):
            above = queue.parent.fair_max if queue.parent else None
            inherited = {**above, **queue.max} if above and queue.max else above
            assert queue.fair_max == (inherited if queue.parent else queue.max)


class TestPriorities:
    @hypothesis.given(
        st.lists(st.tuples(_leaves, _asked), max_size=15),
        st.lists(st.tuples(st.sampled_from(_PATHS), st.integers(-3, 3), _policies), max_size=6),
    )
    def test_what_is_passed_up_is_what_follows_from_the_leaves(
        self, asked: list[tuple[str, int]], configured: list[tuple[str, int, PriorityPolicy]]
    ):
        """Whichever way priorities and offsets changed."""
        root = root_of(*_LEAVES)
        for path, highest in asked:
            at(root, path).set_waiting(highest)
        for path, offset, policy in configured:
            at(root, path).configure(QueueSettings(offset=offset, priority_policy=policy))
        for path, highest in asked[::-1]:
            at(root, path).set_waiting(highest)
        assert all(queue.priority == _highest(queue) for queue in tree.downward(root))

    @pytest.mark.parametrize(
        ("highest", "offset", "policy", "passed"),
        [
            (3, 4, PriorityPolicy.DEFAULT, 7),
            (3, 4, PriorityPolicy.FENCE, 4),
            (NOTHING, 4, PriorityPolicy.DEFAULT, NOTHING),
            (NOTHING, 4, PriorityPolicy.FENCE, NOTHING),
            (priorities.HIGHEST, 4, PriorityPolicy.DEFAULT, priorities.HIGHEST),
            (NOTHING + 2, -4, PriorityPolicy.DEFAULT, NOTHING),
        ],
    )
    def test_an_offset_is_added_and_a_fence_stands_for_its_own(
        self, highest: int, offset: int, policy: PriorityPolicy, passed: int
    ):
        """Within 32 bits; nothing stays nothing."""
        assert priorities.passed_up(highest, offset, policy) == passed

    def test_nothing_is_the_highest_of_none(self):
        """It sorts behind all priorities that are asked for."""
        assert priorities.highest([]) == NOTHING
        assert priorities.highest([3, -7]) == 3


class TestApplications:
    def test_no_more_applications_run_than_a_queue_above_allows(self):
        """One that ends makes a place for the next one."""
        root = root_of("a.x", settings={"root.a": QueueSettings(max_applications=2)})
        leaf = at(root, "root.a.x")
        leaf.start()
        assert tree.can_run(leaf)
        leaf.start()
        assert not tree.can_run(leaf)
        leaf.finish()
        assert tree.can_run(leaf)

    def test_counts_go_up_the_path_and_back(self):
        """A queue beside is not concerned."""
        root = root_of("a.x", "b.z")
        leaf = at(root, "root.a.x")
        leaf.start()
        assert [queue.running for queue in leaf.lineage] == [1, 1, 1]
        assert at(root, "root.b.z").running == 0
        leaf.finish()
        assert all(queue.running == 0 for queue in tree.downward(root))


class TestShape:
    def test_paths_name_every_queue(self):
        """A path of no queue finds none."""
        root = root_of(*_LEAVES)
        assert {queue.path for queue in tree.downward(root)} == set(_PATHS)
        assert repr(at(root, "root.b.z")) == "Queue(root.b.z)"
        assert [tree.find(root, path) for path in ("other", "root.q", "root.c.d", "roota", "")] == [None] * 5

    def test_a_leaf_has_no_children_and_a_name_one_place(self):
        """The message says which queue it is about."""
        root = root_of("a", "b.z")
        with pytest.raises(ValueError, match=r"root\.a\.x: root\.a is a leaf"):
            Queue("x", at(root, "root.a"), leaf=True)
        with pytest.raises(ValueError, match=r"root\.b: root is a leaf, or has a child of this name"):
            Queue("b", root)

    def test_queues_are_fair_and_leaves_fifo_unless_it_is_said(self):
        """As YuniKorn has it."""
        root = root_of("a", settings={"root": QueueSettings(sort_policy=SortPolicy.FIFO)})
        assert (root.sort_policy, at(root, "root.a").sort_policy) == (SortPolicy.FIFO, SortPolicy.FIFO)
        root.configure(QueueSettings())
        assert root.sort_policy is SortPolicy.FAIR

    def test_only_an_empty_queue_can_be_removed(self):
        """What it passed up goes with it."""
        root = root_of("a", "b")
        queue = at(root, "root.a")
        queue.set_waiting(7)
        queue.add_pending({"vcore": 1})
        for kept in (root, queue):
            with pytest.raises(ValueError, match="cannot be removed"):
                kept.remove()
        queue.remove_pending({"vcore": 1})
        queue.remove()
        assert (list(root.children), root.priority) == (["b"], NOTHING)

    @pytest.mark.parametrize(
        ("wanted", "order"), [(["c", "a", "b"], "c a b"), (["b"], "b a c"), (["z", "c"], "c a b"), ([], "a b c")]
    )
    def test_children_are_arranged_as_named(self, wanted: Iterable[str], order: str):
        """The others follow as they were."""
        root = root_of("a", "b", "c")
        root.arrange(wanted)
        assert list(root.children) == order.split()

    def test_a_state_is_a_change(self):
        """Whoever remembers an order learns of it."""
        root = root_of("a")
        before = root.changes
        at(root, "root.a").turn(State.STOPPED)
        assert root.changes > before
