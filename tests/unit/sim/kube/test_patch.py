"""The patch formats, by the tables of their standards."""

from typing import Any

import pytest

from slurm_bridge.sim.kube import ownership, patch, refusals, selectors


@pytest.mark.parametrize(
    ("target", "changes", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch(target: Any, changes: Any, expected: Any) -> None:
    """The examples of RFC 7386."""
    assert patch.merge(target, changes) == expected


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ({"op": "add", "path": "/b", "value": 1}, {"a": [1, 2], "b": 1}),
        ({"op": "add", "path": "/a/1", "value": 9}, {"a": [1, 9, 2]}),
        ({"op": "add", "path": "/a/-", "value": 9}, {"a": [1, 2, 9]}),
        ({"op": "remove", "path": "/a/0"}, {"a": [2]}),
        ({"op": "replace", "path": "/a/0", "value": 5}, {"a": [5, 2]}),
        ({"op": "move", "from": "/a/0", "path": "/c"}, {"a": [2], "c": 1}),
        ({"op": "copy", "from": "/a", "path": "/c"}, {"a": [1, 2], "c": [1, 2]}),
        ({"op": "test", "path": "/a/1", "value": 2}, {"a": [1, 2]}),
        ({"op": "replace", "path": "", "value": 3}, 3),
    ],
)
def test_json_patch(operation: dict[str, Any], expected: Any) -> None:
    """One of each kind; the original stays."""
    document = {"a": [1, 2]}
    assert patch.json_patch(document, [operation]) == expected
    assert document == {"a": [1, 2]}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a/0", "value": 7},
        {"op": "remove", "path": "/b"},
        {"op": "replace", "path": "/b", "value": 1},
        {"op": "add", "path": "/a/7", "value": 1},
        {"op": "add", "path": "/x/y", "value": 1},
        {"op": "add", "path": "/a/0/z", "value": 1},
        {"op": "shuffle", "path": "/a"},
    ],
)
def test_json_patch_that_does_not_fit(operation: dict[str, Any]) -> None:
    """Refused as a whole."""
    with pytest.raises(patch.Unpatchable):
        patch.json_patch({"a": [1, 2]}, [operation])


def test_strategic_merge_knows_keys_and_sets() -> None:
    """Conditions by type, finalizers as a set; items can be deleted."""
    old = {"conditions": [{"type": "A", "x": 1}, {"type": "B"}], "finalizers": ["f"], "other": [1]}
    changes = {
        "conditions": [{"type": "A", "y": 2}, {"type": "B", "$patch": "delete"}, {"type": "C"}],
        "finalizers": ["f", "g"],
        "other": [2],
        "$setElementOrder/conditions": [],
    }
    assert patch.strategic(old, changes) == {
        "conditions": [{"type": "A", "x": 1, "y": 2}, {"type": "C"}],
        "finalizers": ["f", "g"],
        "other": [2],
    }


def test_leaves_take_keyed_lists_apart() -> None:
    """And leave identity out."""
    manifest = {
        "metadata": {"name": "n", "labels": {"a": "b"}},
        "status": {"conditions": [{"type": "T", "status": "True"}]},
    }
    assert ownership.leaves(manifest) == {
        ("metadata", "labels", "a"): "b",
        ("status", "conditions", '[type="T"]', "type"): "T",
        ("status", "conditions", '[type="T"]', "status"): "True",
    }


def test_an_applied_condition_that_is_no_longer_named_goes() -> None:
    """With nothing of it left."""
    owned = ownership.Ownership()
    before: dict[str, Any] = {"metadata": {}, "status": {"phase": "Pending"}}
    line = {"status": {"conditions": [{"type": "T", "status": "True"}]}}
    applied = owned.apply("uid", "one", before, line)
    assert owned.apply("uid", "one", applied, {"status": {}}) == before


@pytest.mark.parametrize(
    ("selector", "labels", "matches"),
    [
        ({"matchLabels": {"a": "b"}}, {"a": "b", "c": "d"}, True),
        ({"matchLabels": {"a": "b"}}, {"a": "c"}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}, {"a": "b"}, True),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]}, {"a": "b"}, False),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {}, False),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, {}, True),
        ({}, {"a": "b"}, True),
        (None, {"a": "b"}, False),
    ],
)
def test_selector_objects(selector: dict[str, Any] | None, labels: dict[str, str], matches: bool) -> None:
    """An empty one selects everything, a missing one nothing."""
    assert selectors.matches_labels(selector, labels) is matches


def test_a_field_of_another_resource_is_refused() -> None:
    """Each resource has its own."""
    with pytest.raises(refusals.StatusError):
        selectors.parse("nodes", "", "spec.nodeName=a")
