"""Which queue an application is put into, and what it is told where none takes it."""

import pytest

from slurm_bridge.families.yunikorn.queues import acl, placement, tree
from slurm_bridge.families.yunikorn.queues.acl import Acl
from slurm_bridge.families.yunikorn.queues.config.documents import PlacementRule, UserFilter
from slurm_bridge.families.yunikorn.queues.placement import ApplicationCandidate, Placed, Rejected
from slurm_bridge.families.yunikorn.queues.settings import QueueSettings
from tests.unit.families.yunikorn.queues.support_trees import at, root_of

EVERYBODY = QueueSettings(submit_acl=Acl(everybody=True))


def _open(*leaves: str) -> tree.Queue:
    """A tree in which everybody may submit."""
    return root_of(*leaves, settings={"root": EVERYBODY})


def _path(root: tree.Queue, *rules: PlacementRule, **candidate: object) -> str:
    result = placement.place(root, rules, ApplicationCandidate(**({"user": "ann"} | candidate)))
    assert isinstance(result, Placed), result
    return result.path


def _rejected(root: tree.Queue, *rules: PlacementRule, **candidate: object) -> Rejected:
    result = placement.place(root, rules, ApplicationCandidate(**({"user": "ann"} | candidate)))
    assert isinstance(result, Rejected), result
    return result


def test_a_queue_that_exists_is_given_itself() -> None:
    """One that has to be made is given as a path alone."""
    root = _open("a")
    rules = (PlacementRule(name="provided", create=True),)
    assert placement.place(root, rules, ApplicationCandidate(user="ann", queue="root.a")) == Placed(
        path="root.a", queue=at(root, "root.a")
    )
    assert placement.place(root, rules, ApplicationCandidate(user="ann", queue="root.b")) == Placed(path="root.b")


def test_a_queue_is_found_in_any_case_of_letters() -> None:
    """Names in the tree are lower case."""
    assert _path(_open("a"), queue="root.A") == "root.a"


def test_names_of_rules_are_read_in_any_case_of_letters() -> None:
    """As YuniKorn reads them."""
    assert _path(_open("a"), PlacementRule(name="Fixed", value="Root.A")) == "root.a"


def test_the_name_of_a_tag_is_lower_case() -> None:
    """However the rule writes it."""
    assert _path(_open("dev"), PlacementRule(name="tag", value="Namespace"), tags={"namespace": "dev"}) == "root.dev"


def test_a_user_is_one_name_even_with_dots() -> None:
    """Also one that looks like a path."""
    assert _path(_open(), PlacementRule(name="user", create=True), user="root.ann") == "root.root_dot_ann"


def test_a_fixed_value_may_be_a_path_without_root() -> None:
    """Its dots part queues."""
    assert _path(_open("a.b"), PlacementRule(name="fixed", value="a.b")) == "root.a.b"


def test_a_qualified_value_does_not_ask_the_parent_rule() -> None:
    """Which would fail here."""
    rule = PlacementRule(name="provided", create=True, parent=PlacementRule(name="fixed", value="a"))
    assert _path(_open("a"), rule, queue="root.b.c") == "root.b.c"


def test_a_parent_rule_that_finds_nothing_makes_the_rule_find_nothing() -> None:
    """The next one is asked."""
    first = PlacementRule(name="user", create=True, parent=PlacementRule(name="tag", value="namespace", create=True))
    assert _path(_open("b"), first, PlacementRule(name="fixed", value="b")) == "root.b"


@pytest.mark.parametrize("state", [tree.State.DRAINING, tree.State.STOPPED])
def test_only_an_active_queue_takes_applications(state: tree.State) -> None:
    """The next rule is asked."""
    root = _open("a", "b")
    at(root, "root.a").turn(state)
    assert _path(root, PlacementRule(name="fixed", value="a"), PlacementRule(name="fixed", value="b")) == "root.b"


def test_the_recovery_queue_cannot_be_asked_for() -> None:
    """Not even where it does not exist and root might be submitted to."""
    found = _rejected(_open("a"), PlacementRule(name="provided", create=True), queue=acl.RECOVERY)
    assert "no user may submit to root.@recovery@" in found.why


def test_a_forced_application_is_recovered_where_no_rule_has_a_queue() -> None:
    """It is running already."""
    assert _path(_open("a"), queue="root.none", forced=True) == acl.RECOVERY


def test_the_default_queue_must_take_it_too() -> None:
    """By the same checks."""
    root = root_of("default")
    assert "may not submit to root.default" in _rejected(root).why


def test_what_no_rule_takes_goes_to_the_default_queue() -> None:
    """If there is one."""
    root = _open("default")
    assert placement.place(root, (), ApplicationCandidate(user="ann", queue="root.none")) == Placed(
        path="root.default", queue=at(root, "root.default")
    )


def test_to_a_queue_that_does_not_exist_those_submit_who_may_to_the_nearest_above() -> None:
    """Over any number of levels that do not exist either."""
    root = root_of("a.b", settings={"root.a": QueueSettings(submit_acl=Acl(users=frozenset({"ann"})))})
    rules = (PlacementRule(name="provided", create=True),)
    assert _path(root, *rules, queue="root.a.x.y") == "root.a.x.y"
    assert "user ann may not submit to root;" in _rejected(root, *rules, queue="root.x.y").why


def test_a_parent_rule_must_not_find_a_leaf() -> None:
    """Nothing is below it."""
    rule = PlacementRule(name="user", create=True, parent=PlacementRule(name="fixed", value="a"))
    found = _rejected(_open("a"), rule)
    assert (found.error, found.why) == (placement.LEAF_ABOVE, "rule user: parent rule returned a leaf queue, root.a")


def test_a_rejection_names_what_every_rule_said() -> None:
    """So that a user can see which rule was meant for the application."""
    rules = (
        PlacementRule(name="provided"),
        PlacementRule(name="fixed", value="a", filter=UserFilter(kind="allow", users=("bob",))),
        PlacementRule(name="fixed", value="a"),
        PlacementRule(name="tag", value="namespace"),
    )
    assert _rejected(root_of("a.b"), *rules, queue="x").why == (
        "no queue for user ann: rule provided: root.x does not exist; "
        "rule fixed a: its filter does not let user ann pass; "
        "rule fixed a: root.a is a parent, and applications go into leaves; "
        "rule tag namespace: the application has no value for it; "
        "root.default does not exist; "
        "queues that take workloads of this user: none"
    )


def test_a_rejection_lists_the_queues_that_an_application_may_name() -> None:
    """Leaves that admit the user; the first ten, and how many more."""
    many = _open(*(f"a.q{number}" for number in range(12)), "x.closed")
    closed = at(many, "root")
    closed.submit_acl = Acl()
    at(many, "root.a").submit_acl = Acl(users=frozenset({"ann"}))
    named = ", ".join(f"root.a.q{number}" for number in range(10))
    assert _rejected(many, queue="root.none").why.endswith(
        f"; queues that take workloads of this user: {named} and 2 more"
    )


def test_where_no_application_names_its_queue_none_is_listed() -> None:
    """It would not help."""
    assert "queues that take" not in _rejected(root_of("a"), PlacementRule(name="tag", value="x")).why


def test_an_error_names_the_rule_and_the_value() -> None:
    """And ends the search."""
    found = _rejected(
        _open("a"), PlacementRule(name="user", create=True), PlacementRule(name="fixed", value="a"), user="ann lee"
    )
    assert found.error == placement.INVALID_NAME
    assert found.why == ("rule user: invalid queue name 'ann lee': use 1 to 64 letters, digits and _ : # / @ -")


@pytest.mark.parametrize(
    ("chosen", "passes"),
    [
        (UserFilter(), True),
        (UserFilter(kind="deny"), False),
        (UserFilter(users=("an+",)), True),
        (UserFilter(users=("an",)), False),
        (UserFilter(users=("^n",)), False),
        (UserFilter(users=("an+", "bob")), False),
        (UserFilter(kind="DENY", users=("an+",)), False),
        (UserFilter(groups=("o.*",)), True),
        (UserFilter(kind="deny", groups=("dev",)), True),
        (UserFilter(users=("bob",), groups=("ops",)), True),
    ],
)
def test_a_filter_lists_names_or_is_one_expression(chosen: UserFilter, passes: bool) -> None:
    """An expression is searched for, and only where it is alone in its list."""
    result = placement.place(
        _open("a"),
        (PlacementRule(name="fixed", value="a", filter=chosen),),
        ApplicationCandidate(user="ann", groups=("ops",)),
    )
    assert isinstance(result, Placed) == passes
