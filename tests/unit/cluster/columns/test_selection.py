"""Selectors over columns say of every node what the rules say of that one node."""

from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from slurm_bridge.cluster import selection
from slurm_bridge.cluster.cluster_cache import ClusterCache
from slurm_bridge.cluster.columns import NodeColumns
from slurm_bridge.cluster.facts import NodeFacts
from slurm_bridge.translate import resources
from tests.unit import affinity_oracle
from tests.unit.hooks.builders import node, pod

_key = st.sampled_from("ab")
_value = st.sampled_from(["1", "2", "30", "x"])
_labels = st.dictionaries(_key, _value)
_operator = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Odd"])


def _rows(key: st.SearchStrategy[str], value: st.SearchStrategy[str]) -> st.SearchStrategy[list[dict[str, Any]]]:
    row = st.fixed_dictionaries({"key": key, "operator": _operator, "values": st.lists(value, max_size=2)})
    return st.lists(row, max_size=2)


_term = st.fixed_dictionaries(
    {},
    optional={
        "matchExpressions": _rows(_key, _value),
        "matchFields": _rows(st.sampled_from(["metadata.name", "spec.x"]), st.sampled_from(["n0", "n1", "gone"])),
    },
)
_required = st.none() | st.fixed_dictionaries({}, optional={"nodeSelectorTerms": st.lists(_term, max_size=2)})


@hypothesis.given(st.lists(_labels, max_size=4), _labels, _required)
def test_as_the_rules_say(labels: list[dict[str, str]], selector: dict[str, str], required: Any) -> None:
    """Node selector and required affinity, of any form."""
    nodes = {f"n{number}": node(f"n{number}", labels=one) for number, one in enumerate(labels)}
    columns = NodeColumns.of({name: _facts(name, one) for name, one in nodes.items()})
    terms = None if required is None else {"requiredDuringSchedulingIgnoredDuringExecution": required}
    asking = pod(node_selector=selector, affinity=None if terms is None else {"nodeAffinity": terms})
    accepted = columns.nodes(selection.accepting(columns, asking))
    assert accepted == {name for name, one in nodes.items() if affinity_oracle.accepts(asking, one)}


def _facts(name: str, one: Any) -> NodeFacts:
    return NodeFacts(name=name, slurm_name=name, node=one, slurm=None, allocatable={}, used={}, placed={})


@pytest.mark.parametrize("operator", ["NotIn", "Exists", "DoesNotExist", "In", "Gt", "Odd"])
def test_holes_meet_nothing(operator: str) -> None:
    """A row without a node is never selected."""
    whole = NodeColumns.of({name: _facts(name, node(name)) for name in "ab"})
    holed = whole.after({"a": _facts("a", node("a"))}, frozenset("a"), ["b"])
    for rows in ("matchExpressions", "matchFields"):
        term = {rows: [{"key": "metadata.name", "operator": operator, "values": ["x"]}]}
        assert not selection.selected(holed, {"nodeSelectorTerms": [term]})[1]


@pytest.mark.security("fairness")
def test_label_keys_that_no_node_has_share_one_column() -> None:
    """Node selectors with thousands of labels that no node has are evaluated without a pass over the nodes for each."""
    keeper = ClusterCache(resources.requests_of)
    for number in range(3):
        keeper.on_node(None, node(f"n{number}", labels={"zone": "a"}))
    columns = keeper.snapshot().columns
    assert columns.label("absent-1") is columns.label("absent-2")
    assert columns.label("absent-1").values == (None,)
    assert columns.label("zone").values == ("a",)
    keeper.on_node(node("n0", labels={"zone": "a"}), node("n0", labels={"zone": "a", "absent-1": "b"}, version="2"))
    columns = keeper.snapshot().columns
    assert set(columns.label("absent-1").values) == {None, "b"}
    assert columns.label_keys == {"zone", "absent-1"}
