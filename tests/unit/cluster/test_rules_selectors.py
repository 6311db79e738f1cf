"""Selectors and affinity mean what Kubernetes means by them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.cluster import selection
from slurm_bridge.cluster.rules import affinity
from slurm_bridge.model import selectors
from tests.unit.hooks.builders import cluster, node, pod

LABELS = {"zone": "a", "cores": "16", "ssd": ""}
COLUMNS = cluster([node("n", labels=LABELS)]).columns


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("", True),
        ("zone=a", True),
        ("zone==a", True),
        ("zone=b", False),
        ("zone!=b", True),
        ("absent!=b", True),
        ("zone in (a, b)", True),
        ("zone in (b)", False),
        ("zone notin (b,c)", True),
        ("absent notin (b)", True),
        ("ssd", True),
        ("!ssd", False),
        ("!absent", True),
        ("ssd=", True),
        ("zone=a,cores=16", True),
        ("zone=a,cores=17", False),
        ("zone in (a,b),!absent", True),
    ],
)
def test_a_selector_in_one_line(text: str, holds: bool) -> None:
    """Commas separate requirements, except inside parentheses."""
    assert selectors.all_hold(selectors.parse(text), LABELS) is holds


@pytest.mark.parametrize("text", ["zone>3", "zone in a", "=a", "a b", "zone in (a", "a,,b"])
def test_what_is_no_selector_is_named(text: str) -> None:
    """The message shows the part that is wrong and what would be right."""
    with pytest.raises(ValueError, match="is not a label requirement such as"):
        selectors.parse(text)


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    """One row of matchExpressions."""
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("row", "holds"),
    [
        (expression("zone", "In", "a", "b"), True),
        (expression("zone", "In"), False),
        (expression("absent", "In", "a"), False),
        (expression("zone", "NotIn", "a"), False),
        (expression("absent", "NotIn", "a"), True),
        (expression("ssd", "Exists"), True),
        (expression("absent", "Exists"), False),
        (expression("absent", "DoesNotExist"), True),
        (expression("cores", "Gt", "15"), True),
        (expression("cores", "Gt", "16"), False),
        (expression("cores", "Lt", "17"), True),
        (expression("zone", "Lt", "17"), False),
        (expression("cores", "Gt", "many"), False),
        (expression("cores", "Gt", "1", "2"), False),
        (expression("absent", "Gt", "1"), False),
        (expression("zone", "Like", "a"), False),
    ],
)
def test_operators(row: dict[str, Any], holds: bool) -> None:
    """Every operator, on labels that are there, are missing, or are no numbers."""
    selector = {"nodeSelectorTerms": [{"matchExpressions": [row]}]}
    assert selection.selected(COLUMNS, selector).tolist() == [holds]


def name_row(operator: str, *values: str) -> dict[str, Any]:
    """A term that matches by the node's name."""
    return {"matchFields": [expression("metadata.name", operator, *values)]}


@pytest.mark.parametrize(
    ("terms", "holds"),
    [
        ([], False),
        ([{}], False),
        ([{}, {"matchExpressions": [expression("zone", "In", "a")]}], True),
        ([{"matchExpressions": [expression("zone", "In", "a"), expression("zone", "In", "b")]}], False),
        ([name_row("In", "n")], True),
        ([name_row("In", "m")], False),
        ([name_row("NotIn", "m")], True),
        ([name_row("Exists")], False),
        ([{**name_row("In", "n"), "matchExpressions": [expression("zone", "In", "b")]}], False),
    ],
)
def test_terms(terms: list[dict[str, Any]], holds: bool) -> None:
    """Terms are alternatives, their rows all hold; an empty term holds nowhere."""
    assert selection.selected(COLUMNS, {"nodeSelectorTerms": terms}).tolist() == [holds]


@pytest.mark.parametrize(
    ("selector", "required", "holds"),
    [
        ({}, None, True),
        ({"zone": "a"}, None, True),
        ({"zone": "b"}, None, False),
        ({}, {"nodeSelectorTerms": [{"matchExpressions": [expression("zone", "In", "a")]}]}, True),
        ({"zone": "a"}, {"nodeSelectorTerms": [{"matchExpressions": [expression("zone", "In", "b")]}]}, False),
        ({"absent": ""}, None, False),
    ],
)
def test_a_pod_says_where(selector: dict[str, str], required: dict[str, Any] | None, holds: bool) -> None:
    """Node selector and required affinity both have to hold; preferred affinity is no matter here."""
    of_node = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}
    if required is not None:
        of_node["requiredDuringSchedulingIgnoredDuringExecution"] = required
    asking = pod(node_selector=selector, affinity={"nodeAffinity": of_node, "podAffinity": {}})
    assert selection.accepting(COLUMNS, asking).tolist() == [holds]


def test_no_affinity() -> None:
    """A pod without affinity, or with affinity to pods alone, runs anywhere."""
    assert affinity.required(pod()) is None
    assert affinity.required(pod(affinity={"podAffinity": {}})) is None


@pytest.mark.security("input")
@pytest.mark.parametrize(
    "selector",
    [
        True,
        [1],
        "zone",
        {"matchLabels": ["zone"]},
        {"matchLabels": {"zone": ["a"]}},
        {"matchExpressions": True},
        {"matchExpressions": ["zone"]},
        {"matchExpressions": {"key": "zone", "operator": "Exists"}},
        {"matchExpressions": [{"key": ["zone"], "operator": "Exists"}]},
        {"matchExpressions": [{"key": "zone", "operator": ["Exists"]}]},
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": 7}]},
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": "abc"}]},
        {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": [["b"]]}]},
    ],
)
def test_a_label_selector_that_makes_no_sense_selects_nothing(selector: object) -> None:
    """A label selector with a value of the wrong type selects no pod."""
    assert selectors.read(selector) is None


_labels = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz"))


@given(_labels, st.sampled_from("abc"), st.lists(st.sampled_from("xyz"), min_size=1))
def test_not_in_is_the_opposite_of_in(labels: dict[str, str], key: str, values: list[str]) -> None:
    """For every key and every set of values, exactly one of the two holds."""
    rows = [selectors.Requirement(key, operator, tuple(values)) for operator in ("In", "NotIn")]
    assert [row.holds(labels) for row in rows].count(True) == 1
