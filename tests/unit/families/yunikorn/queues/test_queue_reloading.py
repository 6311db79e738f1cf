"""A tree in use follows a new configuration."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.families.yunikorn.queues import tree
from slurm_bridge.families.yunikorn.queues.config import reload, tree_builder, validation
from slurm_bridge.families.yunikorn.queues.config.problems import ConfigurationRefused
from slurm_bridge.families.yunikorn.queues.config.reload import TreeChanges
from slurm_bridge.families.yunikorn.queues.config.tree_builder import Plan
from slurm_bridge.families.yunikorn.queues.tree import State
from tests.unit.families.yunikorn.queues.support_configs import config, paths, planned, queue
from tests.unit.families.yunikorn.queues.support_trees import at

TEMPLATE = {"resources": {"max": {"x": 9}}}


def _limited(name: str, most: int) -> dict[str, object]:
    return queue(name, resources={"max": {"x": most}})


def test_changed_limits_apply_in_place_and_usage_stays() -> None:
    """It is the same queue; what it uses may now be too much."""
    root = tree_builder.build(planned(_limited("a", 5)))
    kept = at(root, "root.a")
    kept.allocate({"x": 4})
    changes, gone = reload.reload(root, planned(_limited("a", 3)))
    assert at(root, "root.a") is kept
    assert (kept.max, kept.allocated, root.allocated) == ({"x": 3}, {"x": 4}, {"x": 4})
    assert (changes, gone) == (TreeChanges(changed=("root.a",), lowered=("root.a",)), ())


@pytest.mark.parametrize(
    ("old", "new", "lowered"),
    [({"x": 5}, {"x": 6}, False), ({"x": 5}, {}, False), ({}, {"x": 5}, True), ({"x": 5}, {"x": 5, "y": 1}, True)],
)
def test_a_maximum_is_lowered_when_it_allows_less_of_some_type(
    old: dict[str, int], new: dict[str, int], lowered: bool
) -> None:
    """Also of a type that was not limited before."""
    root = tree_builder.build(planned(queue("a", resources={"max": old})))
    changes = reload.diff(root, planned(queue("a", resources={"max": new})))
    assert changes.lowered == (("root.a",) if lowered else ())


def test_the_root_keeps_its_maximum() -> None:
    """It is the size of the cluster, which no configuration knows."""
    root = tree_builder.build(planned(queue("a")))
    root.resize({"x": 100})
    root_of_all = queue("root", queue("a"), maxapplications=0, adminacl="ann")
    plan = tree_builder.plan(validation.load(config({"queues": [root_of_all]})).partitions[0])
    assert reload.reload(root, plan)[0].changed == ("root",)
    assert root.max == {"x": 100}


def test_a_removed_queue_drains_until_it_is_empty() -> None:
    """With all that is below it; then it goes, and its parent after it."""
    root = tree_builder.build(planned(queue("a", queue("b")), queue("c")))
    leaf = at(root, "root.a.b")
    leaf.allocate({"x": 1})
    changes, gone = reload.reload(root, planned(queue("c")))
    assert (changes.removed, gone) == (("root.a", "root.a.b"), ())
    assert [at(root, path).state for path in ("root.a", "root.a.b", "root.c")] == [
        State.DRAINING,
        State.DRAINING,
        State.ACTIVE,
    ]
    assert reload.retire(leaf) == ()
    leaf.release({"x": 1})
    assert [one.path for one in reload.retire(leaf)] == ["root.a.b", "root.a"]
    assert paths(root) == ["root", "root.c"]


def test_an_empty_queue_that_is_removed_goes_at_once() -> None:
    """There is nothing to wait for."""
    root = tree_builder.build(planned(queue("a"), queue("b")))
    _, gone = reload.reload(root, planned(queue("b")))
    assert [one.path for one in gone] == ["root.a"]


@pytest.mark.parametrize("use", ["allocated", "pending", "preempting", "running", "busy"])
def test_whatever_is_in_a_queue_keeps_it(use: str) -> None:
    """Also an application that has asked for nothing yet, which the tree does not see."""
    root = tree_builder.build(planned(queue("a"), queue("b")))
    leaf = at(root, "root.a")
    fill = {
        "allocated": lambda: leaf.allocate({"x": 1}),
        "pending": lambda: leaf.add_pending({"x": 1}),
        "preempting": lambda: leaf.mark_preempting({"x": 1}),
        "running": leaf.start,
        "busy": lambda: None,
    }
    fill[use]()
    reload.reload(root, planned(queue("b")), busy={"root.a"} if use == "busy" else ())
    assert at(root, "root.a").state is State.DRAINING


def test_a_queue_that_returns_while_it_drains_is_active_again() -> None:
    """With the usage that it has."""
    root = tree_builder.build(planned(queue("a"), queue("b")))
    at(root, "root.a").allocate({"x": 1})
    reload.reload(root, planned(queue("b")))
    changes, _ = reload.reload(root, planned(queue("a"), queue("b")))
    assert changes.returned == ("root.a",)
    assert (at(root, "root.a").state, at(root, "root.a").allocated) == (State.ACTIVE, {"x": 1})


def test_a_stopped_queue_stays_stopped() -> None:
    """No configuration stopped it, and none starts it."""
    root = tree_builder.build(planned(queue("a")))
    at(root, "root.a").turn(State.STOPPED)
    reload.reload(root, planned(_limited("a", 5)))
    assert at(root, "root.a").state is State.STOPPED


def test_new_queues_come_in_the_configured_order() -> None:
    """Those that were there move to their places."""
    root = tree_builder.build(planned(queue("b"), queue("d")))
    changes, _ = reload.reload(root, planned(queue("a"), queue("d"), queue("c"), queue("b")))
    assert changes.added == ("root.a", "root.c")
    assert list(root.children) == ["a", "d", "c", "b"]


def test_a_made_queue_stays_while_it_is_used_and_goes_when_empty() -> None:
    """With the parents that were made for it."""
    plan = planned(queue("a", parent=True))
    root = tree_builder.build(plan)
    made = tree_builder.create(root, plan, "root.a.dev.joe")
    made.allocate({"x": 1})
    reload.reload(root, plan)
    assert made.state is State.ACTIVE
    made.release({"x": 1})
    assert [one.path for one in reload.retire(made, busy={"root.a.dev.joe"})] == []
    assert [one.path for one in reload.retire(made)] == ["root.a.dev.joe", "root.a.dev"]


def test_a_made_queue_follows_its_template() -> None:
    """In place, as configured ones follow the configuration."""
    plan = planned(queue("a", parent=True, childtemplate=TEMPLATE))
    root = tree_builder.build(plan)
    made = tree_builder.create(root, plan, "root.a.joe")
    reload.reload(root, planned(queue("a", parent=True)), busy={made.path})
    assert (made.max, made.managed) == (None, False)


def test_a_made_queue_drains_and_returns_with_its_parent() -> None:
    """Nothing new is taken below a queue that goes."""
    plan = planned(queue("a", parent=True), queue("b"))
    root = tree_builder.build(plan)
    made = tree_builder.create(root, plan, "root.a.joe")
    reload.reload(root, planned(queue("b")), busy={made.path})
    assert made.state is State.DRAINING
    reload.reload(root, plan, busy={made.path})
    assert made.state is State.ACTIVE


def test_a_made_queue_may_become_a_configured_one() -> None:
    """It stays when it is empty."""
    root = tree_builder.build(planned(queue("a", parent=True)))
    made = tree_builder.create(root, planned(queue("a", parent=True)), "root.a.joe")
    made.allocate({"x": 1})
    changes, _ = reload.reload(root, planned(queue("a", _limited("joe", 5))))
    made.release({"x": 1})
    assert (changes.changed, reload.retire(made), made.managed, made.max) == (("root.a.joe",), (), True, {"x": 5})


@pytest.mark.parametrize("busy", [False, True])
def test_a_queue_changes_its_kind_only_when_nothing_is_in_it(busy: bool) -> None:
    """A leaf in use as a parent would have applications beside queues."""
    root = tree_builder.build(planned(queue("a")))
    new = planned(queue("a", queue("b")))
    if not busy:
        _, gone = reload.reload(root, new)
        assert ([one.path for one in gone], paths(root)) == (["root.a"], ["root", "root.a", "root.a.b"])
        return
    with pytest.raises(ConfigurationRefused) as refused:
        reload.reload(root, new, busy={"root.a"})
    (problem,) = refused.value.problems
    assert (problem.code, problem.field) == ("queue_kind", "partitions[0].queues[0].queues[0]")
    assert paths(root) == ["root", "root.a"]


def test_a_parent_in_use_does_not_become_a_leaf() -> None:
    """While one of its queues has something."""
    root = tree_builder.build(planned(queue("a", queue("b"))))
    at(root, "root.a.b").allocate({"x": 1})
    with pytest.raises(ConfigurationRefused, match=r"root\.a a leaf"):
        reload.diff(root, planned(queue("a")))


def test_the_same_configuration_changes_nothing() -> None:
    """Neither by itself, nor to what is shown."""
    plan = planned(_limited("a", 5), queue("b", parent=True))
    root = tree_builder.build(plan)
    assert reload.reload(root, plan) == (TreeChanges(), ())


_PLANS: tuple[Plan, ...] = (
    planned(queue("a", queue("b"), queue("c"))),
    planned(queue("a", queue("c"), _limited("d", 3))),
    planned(_limited("e", 3), queue("a", queue("b", resources={"max": {"x": 2}}))),
    planned(queue("e")),
)


@given(st.lists(st.tuples(st.sampled_from(_PLANS), st.sampled_from("bcde"), st.integers(1, 9)), max_size=12))
def test_usage_is_never_lost(steps: list[tuple[Plan, str, int]]) -> None:
    """However often the configuration changes under it: a parent has what its children have, and the root has all."""
    root = tree_builder.build(_PLANS[0])
    total = 0
    for plan, name, amount in steps:
        reload.reload(root, plan)
        leaf = next((one for one in tree.downward(root) if one.name == name and one.leaf), None)
        if leaf is not None:
            leaf.allocate({"x": amount})
            total += amount
        for one in tree.downward(root):
            if not one.leaf:
                assert one.allocated.get("x", 0) == sum(child.allocated.get("x", 0) for child in one.children.values())
    assert root.allocated.get("x", 0) == total
