"""The seed's rule: a queue's name has one place. Its four drawings, and what follows from them."""

from tests.unit.families.yunikorn.queues.support_configs import Mapping, codes, config, partition, problems, queue


def _x(*below_root: Mapping) -> Mapping:
    return partition(*below_root, name="x")


def _y(*below_root: Mapping) -> Mapping:
    return partition(*below_root, name="y")


def test_good_the_same_hierarchy_in_both_partitions() -> None:
    """Drawing 1: a with b and c, twice."""
    both = queue("a", queue("b"), queue("c"))
    assert codes(config(_x(both), _y(both))) == []


def test_good_a_queue_that_a_partition_does_not_have() -> None:
    """Drawing 2: y has no c, as if nobody might submit to it there."""
    assert codes(config(_x(queue("a", queue("b"), queue("c"))), _y(queue("a", queue("b"))))) == []


def test_bad_a_queue_in_another_hierarchy() -> None:
    """Drawing 3: c below a in x, and below b in y. Both paths are named."""
    (found,) = problems(
        config(_x(queue("a", queue("b"), queue("c"))), _y(queue("a", queue("b", queue("c")), queue("d"))))
    )
    assert (found.code, found.field) == ("queue_place", "partitions[1].queues[0].queues[0].queues[0].queues[0].name")
    assert "root.a.b.c in partition y" in found.there
    assert "root.a.c in partition x" in found.allowed


def test_bad_a_queue_twice_in_one_partition() -> None:
    """Drawing 4: c below b and below a."""
    (found,) = problems(config(_x(queue("a", queue("b", queue("c")), queue("c")))))
    assert found.code == "queue_place"
    assert "root.a.c in partition x" in found.there
    assert "root.a.b.c in partition x" in found.allowed


def test_names_are_compared_ignoring_case() -> None:
    """As YuniKorn compares them."""
    assert codes(config(_x(queue("Prod")), _y(queue("a", queue("prod"))))) == ["queue_place"]


def test_no_queue_below_the_root_is_called_root() -> None:
    """That name has its place already."""
    assert codes(config(_x(queue("a", queue("root"))))) == ["queue_place"]


def test_only_the_topmost_of_a_moved_subtree_is_told() -> None:
    """Those below it are where they are because of it."""
    moved = queue("b", queue("c", queue("d")))
    (found,) = problems(config(_x(queue("a", moved)), _y(moved)))
    assert found.there == "b is root.b in partition y"


def test_the_rule_can_be_switched_off() -> None:
    """YuniKorn's own documents have such names; all other rules hold."""
    written = config(_x(queue("testqueue"), queue("parent", queue("testqueue"), queue("b d"))))
    assert codes(written, one_place=False) == ["queue_name"]
    assert codes(written) == ["queue_name", "queue_place"]


def test_a_name_with_two_places_is_told_with_the_option_that_allows_it() -> None:
    """The hook has it."""
    (found,) = problems(config(_x(queue("a", queue("c")), queue("c"))))
    assert found.allowed.endswith("; `one_place: false` of the hook allows several")


def test_yunikorns_own_rules_allow_it() -> None:
    """The rule comes on top of them."""
    assert codes(config(_x(queue("a", queue("c")), queue("c"))), ours=False) == []
