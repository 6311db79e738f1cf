"""What a whole configuration may not say, beyond the conformance cases: places, words, and rules beside each other."""

import pathlib
import re
from typing import Any

import pytest

from slurm_bridge.families.yunikorn.queues import config as config_room
from slurm_bridge.families.yunikorn.queues.config.problems import CODES
from tests.unit.families.yunikorn.queues.support_configs import codes, config, partition, problems, queue


def _resources(guaranteed: dict[str, Any] | None = None, most: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"guaranteed": guaranteed or {}, "max": most or {}}


def _limits(*limits: dict[str, Any]) -> dict[str, Any]:
    return config(partition(queue("a", limits=list(limits))))


def _rules(*rules: dict[str, Any]) -> dict[str, Any]:
    return config(partition(queue("leaf"), queue("top", parent=True), placementrules=list(rules)))


#: Names of fields that look like codes.
_NOT_CODES = {"max_applications", "max_resources"}

BELOW = "partitions[0].queues[0].queues[0]"


@pytest.mark.parametrize(
    ("wrong", "code", "field"),
    [
        (queue("a b"), "queue_name", "name"),
        (queue("a", submitacl="a b c"), "acl_fields", "submitacl"),
        (
            queue("a", resources=_resources({"vcore": 2}, {"vcore": 1})),
            "guaranteed_above_max",
            "resources.guaranteed.vcore",
        ),
        (
            queue("a", queue("b", resources=_resources(None, {"x": 2})), resources=_resources(None, {"x": 1})),
            "max_above_parent",
            "queues[0].resources.max.x",
        ),
        (
            queue("a", queue("b", resources=_resources({"x": 2})), resources=_resources({"x": 1})),
            "children_guaranteed_above_parent",
            "resources.guaranteed.x",
        ),
        (
            queue("a", queue("b", resources=_resources({"x": 2})), resources=_resources(None, {"x": 1})),
            "children_guaranteed_above_max",
            "resources.max.x",
        ),
        (
            queue("a", queue("b", maxapplications=2), maxapplications=1),
            "maxapplications_above_parent",
            "queues[0].maxapplications",
        ),
        (queue("a", queue("b"), maxapplications=1), "maxapplications_missing", "queues[0].maxapplications"),
    ],
)
def test_a_queue_that_breaks_a_rule_is_named_with_its_field(wrong: dict[str, Any], code: str, field: str) -> None:
    """Each rule once."""
    found = problems(config(partition(wrong)))
    assert [(problem.code, problem.field) for problem in found] == [(code, f"{BELOW}.{field}")]


@pytest.mark.parametrize(
    ("wrong", "code", "field"),
    [
        ({"queues": []}, "queues_missing", "queues"),
        ({"queues": [queue("Root", resources=_resources({"x": 1}))]}, "root_resources", "queues[0].resources"),
        ({"queues": [queue("a"), queue("A")]}, "duplicate_queue", "queues[1].name"),
        (
            {
                "queues": [queue("root", limits=[{"users": ["ann"], "maxapplications": 5}])],
                "limits": [{"users": ["ann"], "maxapplications": 6}],
            },
            "partition_and_root_limits_differ",
            "limits",
        ),
        (
            {"queues": [queue("root")], "nodesortpolicy": {"type": "random"}},
            "unknown_node_sort_policy",
            "nodesortpolicy.type",
        ),
        (
            {"queues": [queue("root")], "nodesortpolicy": {"resourceweights": {"a.b/c": -1}}},
            "negative_node_weight",
            'nodesortpolicy.resourceweights["a.b/c"]',
        ),
        (
            {"queues": [queue("root")], "nodesortpolicy": {"resourceweights": {"vcore": "2"}}},
            "wrong_type",
            "nodesortpolicy.resourceweights.vcore",
        ),
    ],
)
def test_a_partition_that_breaks_a_rule_is_named_with_its_field(wrong: dict[str, Any], code: str, field: str) -> None:
    """What is said of it as a whole."""
    found = problems(config(wrong))
    assert [(problem.code, problem.field) for problem in found] == [(code, f"partitions[0].{field}")]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("ann,system:serviceaccount:physics:default system:serviceaccounts:physics,dev", []),
        ("* any;thing", []),
        ("ann,bob;carl", ["user 'bob;carl'"]),
        ("1st,*,bob a.b,dev", ["user '1st'", "user '*'", "group 'a.b'"]),
        (" dev.ops ", ["group 'dev.ops'"]),
        ("ann, bob", ["user ''"]),
    ],
)
@pytest.mark.parametrize("field", ["submitacl", "adminacl"])
def test_each_name_of_an_access_list_can_be_read(field: str, text: str, names: list[str]) -> None:
    """A name that would count for nothing is told with its queue and its field."""
    found = problems(config(partition(queue("team", queue("a", **{field: text})))))
    assert [problem.code for problem in found] == ["acl_name"] * len(names)
    assert [problem.there for problem in found] == [f"of queue root.team.a has the {name}" for name in names]
    assert {problem.field for problem in found} <= {f"partitions[0].queues[0].queues[0].queues[0].{field}"}


def test_a_limit_is_within_its_queue() -> None:
    """Of resources and of applications; of the types that the queue limits."""
    limit = {"users": ["ann"], "maxapplications": 6, "maxresources": {"x": 2, "y": 9}}
    found = problems(
        config(partition(queue("a", limits=[limit], maxapplications=5, resources=_resources(None, {"x": 1}))))
    )
    assert [(problem.code, problem.field) for problem in found] == [
        ("limit_applications_above_queue", f"{BELOW}.limits[0].maxapplications"),
        ("limit_resources_above_queue", f"{BELOW}.limits[0].maxresources.x"),
    ]


@pytest.mark.parametrize(
    ("limit", "code", "field"),
    [
        ({"maxapplications": 1}, "limit_without_subject", ""),
        ({"users": ["ann"]}, "limit_empty", ""),
        ({"users": ["ann", "1st"], "maxapplications": 1}, "limit_user_name", ".users[1]"),
        ({"groups": ["a/b"], "maxapplications": 1}, "limit_group_name", ".groups[0]"),
        ({"users": ["ann"], "maxresources": {"x": "-1", "y": 5}}, "limit_resources_not_positive", ".maxresources"),
        ({"users": ["ann", "ann"], "maxapplications": 1}, "limit_duplicate_user", ".users[1]"),
        ({"users": ["*", "*"], "maxapplications": 1}, "limit_duplicate_user", ".users[1]"),
        ({"groups": ["dev", "dev"], "maxapplications": 1}, "limit_duplicate_group", ".groups[1]"),
        ({"users": ["*", "ann"], "maxapplications": 1}, "limit_after_wildcard", ".users[1]"),
        ({"groups": ["*"], "maxapplications": 1}, "limit_only_wildcard_group", ".groups[0]"),
    ],
)
def test_a_limit_that_breaks_a_rule_is_named_with_its_field(limit: dict[str, Any], code: str, field: str) -> None:
    """Each rule for one limit once."""
    found = problems(_limits(limit))
    assert [(problem.code, problem.field) for problem in found] == [(code, f"{BELOW}.limits[0]{field}")]


@pytest.mark.parametrize(
    ("rule", "code", "field"),
    [
        ({"name": "a-b"}, "rule_name", ".name"),
        ({"name": "user", "create": True, "filter": {"type": "maybe"}}, "rule_filter_type", ".filter.type"),
        ({"name": "user", "create": True, "filter": {"users": ["("]}}, "rule_filter_list", ".filter.users[0]"),
        (
            {"name": "fixed", "value": "root.x", "parent": {"name": "fixed", "value": "top"}},
            "rule_qualified_fixed_under_parent",
            ".value",
        ),
        ({"name": "fixed", "value": "top.x"}, "rule_queue_missing", ""),
        ({"name": "fixed", "value": "leaf.x", "create": True}, "rule_last_queue_is_leaf", ""),
        ({"name": "fixed", "value": "top"}, "rule_queue_not_leaf", ""),
        ({"name": "user", "create": True, "parent": {"name": "fixed", "value": "LEAF"}}, "rule_queue_not_parent", ""),
        ({"name": "teapot"}, "rule_unknown", ".name"),
        ({"name": "tag"}, "rule_value", ".value"),
    ],
)
def test_a_placement_rule_that_breaks_a_rule_is_named_with_its_field(
    rule: dict[str, Any], code: str, field: str
) -> None:
    """Names, filters, and the queues of fixed rules."""
    found = [problem for problem in problems(_rules(rule)) if problem.code != "rule_unknown" or code == "rule_unknown"]
    assert [(problem.code, problem.field) for problem in found] == [(code, f"partitions[0].placementrules[0]{field}")]


@pytest.mark.parametrize("users", [["a.*"], ["^ann$"], ["ann"], ["1", "2"]])
def test_one_entry_of_a_filter_is_a_name_or_an_expression(users: list[str]) -> None:
    """Of several each is a name, and those that are none match nobody."""
    assert codes(_rules({"name": "user", "create": True, "filter": {"users": users}})) == []


def test_what_is_beyond_yunikorn_is_checked_only_when_asked_for() -> None:
    """A dry run by YuniKorn's own rules."""
    mapping = _rules({"name": "teapot"})
    assert (codes(mapping), codes(mapping, ours=False)) == (["rule_unknown"], [])


@pytest.mark.parametrize(("text", "clear"), [("  ann dev ", True), (" dev", True), ("ann ", True), ("  dev", False)])
def test_spaces_of_an_access_list_must_not_leave_open_who_is_meant(text: str, clear: bool) -> None:
    """One name with several spaces before it may be a user or a group."""
    assert codes(config(partition(queue("a", adminacl=text)))) == ([] if clear else ["acl_spaces"])


def test_a_template_stands_where_children_can_come_to_be() -> None:
    """Not on a leaf."""
    template = {"childtemplate": {"maxapplications": 1}}
    assert codes(config(partition(queue("a", **template)))) == ["template_on_leaf"]
    assert codes(config(partition(queue("a", parent=True, **template)))) == []


def test_a_template_guarantees_no_more_than_its_maximum() -> None:
    """As a queue does."""
    template = {"resources": _resources({"x": 2}, {"x": 1})}
    (found,) = problems(config(partition(queue("a", parent=True, childtemplate=template))))
    assert (found.code, found.field) == (
        "guaranteed_above_max",
        f"{BELOW}.childtemplate.resources.guaranteed.x",
    )


def test_a_maximum_is_measured_by_the_smallest_above_it() -> None:
    """Type by type, over levels that say nothing."""
    low = queue("c", resources=_resources(None, {"x": 4, "y": 9}))
    tree = queue("a", queue("b", low, resources=_resources(None, {"y": 9})), resources=_resources(None, {"x": 3}))
    (found,) = problems(config(partition(tree)))
    assert (found.field, found.allowed) == (
        f"{BELOW}.queues[0].queues[0].resources.max.x",
        "use at most what the queues above it allow, 3",
    )


def test_a_queue_without_a_guarantee_counts_with_those_of_its_children() -> None:
    """Also when its own is zero."""
    low = queue("b", queue("c", resources=_resources({"x": 3})), resources=_resources({"x": 0}))
    assert codes(config(partition(queue("a", low, resources=_resources({"x": 2}))))) == [
        "children_guaranteed_above_parent",
        "children_guaranteed_above_parent",
    ]


def test_a_named_limit_is_measured_by_every_ancestor_that_names_it() -> None:
    """And not by a wildcard in between."""
    low = queue("c", limits=[{"users": ["ann"], "maxresources": {"x": 5}}])
    middle = queue("b", low, limits=[{"users": ["*"], "maxresources": {"x": 1}}])
    top = queue("a", middle, limits=[{"users": ["ann"], "maxresources": {"x": 4}}])
    (found,) = problems(config(partition(top)))
    assert (found.code, found.allowed) == ("limit_above_ancestor", "use at most what user ann in root.a has, 4")


def test_no_number_of_applications_is_above_any() -> None:
    """A limit of resources alone allows any number."""
    low = queue("b", limits=[{"groups": ["dev"], "maxresources": {"x": 5}}])
    assert codes(config(partition(queue("a", low, limits=[{"groups": ["dev"], "maxapplications": 4}])))) == [
        "limit_applications_above_ancestor"
    ]


def test_limits_of_the_partition_count_as_those_of_the_root() -> None:
    """What is below is measured by them."""
    low = queue("a", limits=[{"users": ["ann"], "maxapplications": 6}])
    assert codes(config(partition(low, limits=[{"users": ["*"], "maxapplications": 5}]))) == [
        "limit_applications_above_ancestor_wildcard"
    ]


def test_amounts_of_processors_are_told_in_thousandths() -> None:
    """As they could be written."""
    (found,) = problems(config(partition(queue("a", resources=_resources({"vcore": "1500m"}, {"vcore": 1})))))
    assert (found.there, found.allowed) == ("is 1500m", "use at most its maximum, 1000m")


def test_two_partitions_need_two_names() -> None:
    """A partition without one is called default."""
    found = problems(config(partition(name="Default"), {"queues": [queue("root")]}))
    assert [(one.code, one.field) for one in found] == [("duplicate_partition", "partitions[1].name")]


def test_every_code_that_is_told_is_in_the_table() -> None:
    """Whatever may be wrong is documented by it: the modules name no other code."""
    sources = [path.read_text() for path in pathlib.Path(config_room.__path__[0]).rglob("*.py")]
    named = {code for source in sources for code in re.findall(r'"((?:[a-z]+_)+[a-z]+)"', source)}
    told = {code for code in named if code.partition("_")[0] in {known.partition("_")[0] for known in CODES}}
    assert told - _NOT_CODES <= set(CODES)
