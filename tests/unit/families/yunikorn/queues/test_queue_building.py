"""The tree of a configuration, and the queues that placement makes in it."""

import pytest

from slurm_bridge.families.yunikorn.queues import acl, tree
from slurm_bridge.families.yunikorn.queues.acl import Acl
from slurm_bridge.families.yunikorn.queues.config import tree_builder
from slurm_bridge.families.yunikorn.queues.settings import PreemptionPolicy, QueueSettings, SortPolicy
from tests.unit.families.yunikorn.queues.support_configs import paths, planned, queue
from tests.unit.families.yunikorn.queues.support_trees import at

TEMPLATE = {"maxapplications": 4, "resources": {"guaranteed": {"x": 1}, "max": {"x": 9}}}


def test_the_tree_has_the_queues_of_the_configuration_in_its_order() -> None:
    """With lower case names; leaves are those without children that are no parents."""
    root = tree_builder.build(planned(queue("B", queue("c"), queue("A")), queue("d", parent=True)))
    assert paths(root) == ["root", "root.b", "root.b.c", "root.b.a", "root.d"]
    assert [one.path for one in tree.downward(root) if one.leaf] == ["root.b.c", "root.b.a"]


def test_a_queue_has_the_settings_that_are_configured() -> None:
    """Amounts, lists, numbers and properties."""
    written = queue(
        "a",
        submitacl=" dev",
        adminacl=" ann ops ",
        maxapplications=3,
        resources={"guaranteed": {"x": 1}, "max": {"x": 2}},
        properties={"priority.offset": "5", "application.unschedasks.backoff": 7},
    )
    assert at(tree_builder.build(planned(written)), "root.a").settings == QueueSettings(
        guaranteed={"x": 1},
        max={"x": 2},
        max_applications=3,
        submit_acl=Acl(groups=frozenset({"dev"})),
        admin_acl=Acl(users=frozenset({"ann"}), groups=frozenset({"ops"})),
        offset=5,
        backoff=7,
    )


def test_properties_are_inherited_but_for_offset_and_fences() -> None:
    """The nearest queue that states one wins."""
    above = {"preemption.delay": "5s", "preemption.policy": "disabled", "priority.offset": "3"}
    root = tree_builder.build(
        planned(queue("a", queue("b"), queue("c", properties={"preemption.delay": "6s"}), properties=above))
    )
    assert at(root, "root.a.b").settings == QueueSettings(
        preemption_delay=5.0, preemption_policy=PreemptionPolicy.DISABLED
    )
    assert at(root, "root.a.c").preemption_delay == 6.0


def test_a_parent_hands_its_order_down_to_leaves_only() -> None:
    """Its own children are in the order that it states; a parent below stays fair, as YuniKorn's are."""
    root = tree_builder.build(
        planned(queue("a", queue("b", queue("c")), properties={"application.sort.policy": "fifo"}))
    )
    assert [at(root, path).sort_policy for path in ("root", "root.a", "root.a.b", "root.a.b.c")] == [
        SortPolicy.FAIR,
        SortPolicy.FIFO,
        SortPolicy.FAIR,
        SortPolicy.FIFO,
    ]


def test_a_made_leaf_has_the_template_of_the_nearest_queue_with_one() -> None:
    """Parents that are made above it have none of it, and hand it on."""
    plan = planned(queue("a", queue("b", parent=True), childtemplate=TEMPLATE), queue("c", parent=True))
    root = tree_builder.build(plan)
    made = tree_builder.create(root, plan, "root.a.b.Dev.Joe")
    assert (made.path, made.leaf, made.managed) == ("root.a.b.dev.joe", True, False)
    assert (made.guaranteed, made.max, made.max_applications) == ({"x": 1}, {"x": 9}, 4)
    above = at(root, "root.a.b.dev")
    assert (above.leaf, above.managed, above.max, above.max_applications) == (False, False, None, 0)
    assert tree_builder.create(root, plan, "root.c.joe").max is None


def test_a_template_states_properties_over_inherited_ones() -> None:
    """What it leaves out is inherited."""
    own = {"preemption.delay": "5s", "application.sort.policy": "fair"}
    plan = planned(
        queue("a", parent=True, properties=own, childtemplate={"properties": {"preemption.delay": "6s"}}),
        queue("b", parent=True, properties=own),
    )
    root = tree_builder.build(plan)
    one, other = tree_builder.create(root, plan, "root.a.x"), tree_builder.create(root, plan, "root.b.y")
    assert (one.preemption_delay, other.preemption_delay) == (6.0, 5.0)
    assert one.sort_policy is other.sort_policy is SortPolicy.FAIR


def test_the_recovery_queue_has_no_limits() -> None:
    """It takes whoever was running already."""
    plan = planned(queue("a"))
    root = tree_builder.build(plan)
    assert tree_builder.create(root, plan, acl.RECOVERY).settings == QueueSettings()


def test_made_queues_on_one_path_may_have_one_name() -> None:
    """Only configured names have one place: users and namespaces are called as they are."""
    plan = planned(queue("p", parent=True))
    root = tree_builder.build(plan)
    assert tree_builder.create(root, plan, "root.p.a.a").leaf
    assert not at(root, "root.p.a").leaf


def test_a_leaf_that_is_there_is_not_made_again() -> None:
    """Whoever comes second gets it."""
    plan = planned(queue("a", parent=True))
    root = tree_builder.build(plan)
    assert tree_builder.create(root, plan, "root.a.x") is tree_builder.create(root, plan, "root.a.x")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("root.leaf.x", "root.leaf is a leaf"),
        ("root.parent", "root.parent is a parent"),
        ("root.old.x.y", "root.old is draining"),
    ],
)
def test_where_a_queue_cannot_be_made_nothing_is(path: str, words: str) -> None:
    """Below a leaf, in place of a parent, below one that drains."""
    plan = planned(queue("leaf"), queue("parent", parent=True), queue("old", parent=True))
    root = tree_builder.build(plan)
    at(root, "root.old").turn(tree.State.DRAINING)
    before = paths(root)
    with pytest.raises(ValueError, match=words):
        tree_builder.create(root, plan, path)
    assert paths(root) == before
