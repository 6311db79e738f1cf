"""Selectors over columns say of every node and pod what the rules say of each."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.cluster import selection
from slurm_bridge.cluster.columns import NodeColumns
from slurm_bridge.cluster.rules import neighbours
from slurm_bridge.families.kube_scheduler.predicates import attributes
from slurm_bridge.model.selectors import Requirement
from tests.unit import affinity_oracle
from tests.unit.families.kube_scheduler.scenes import node, pod, seen, term

OPERATORS = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Sometimes"]
#: More nodes, and so more values of the host's label, than are compared in turn.
MANY = [node(f"n{number}", labels={"n": str(number % 7)} if number % 5 else {}) for number in range(200)]
COLUMNS: NodeColumns = seen(pod(), MANY).columns

names = st.sampled_from(["n1", "n5", "n199", "n200", "1", "3"])
rows = st.fixed_dictionaries(
    {
        "key": st.sampled_from(["n", "kubernetes.io/hostname", "absent"]),
        "operator": st.sampled_from(OPERATORS),
        "values": st.lists(names, max_size=5),
    }
)
fields = st.fixed_dictionaries(
    {
        "key": st.sampled_from(["metadata.name", "metadata.uid"]),
        "operator": st.sampled_from(OPERATORS),
        "values": st.lists(names, max_size=2),
    }
)
terms = st.fixed_dictionaries(
    {}, optional={"matchExpressions": st.lists(rows, max_size=2), "matchFields": st.lists(fields, max_size=2)}
)


@given(st.lists(terms, max_size=3))
def test_node_selectors(chosen: list[dict[str, Any]]) -> None:
    """Terms, expressions and fields mean over all nodes what they mean on one."""
    selector = {"nodeSelectorTerms": chosen}
    expected = [affinity_oracle.selects(selector, one) for one in MANY]
    assert selection.selected(COLUMNS, selector).tolist() == expected


@given(
    st.dictionaries(st.sampled_from(["n", "kubernetes.io/hostname"]), names), st.none() | st.lists(terms, max_size=2)
)
def test_pods_on_nodes(selector: dict[str, str], chosen: list[dict[str, Any]] | None) -> None:
    """A pod's selector and required affinity accept the same nodes either way."""
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": chosen}}
    subject = pod(node_selector=selector, affinity=None if chosen is None else {"nodeAffinity": required})
    expected = [affinity_oracle.accepts(subject, one) for one in MANY]
    assert selection.accepting(COLUMNS, subject).tolist() == expected


@given(rows)
def test_requirements(row: dict[str, Any]) -> None:
    """Each operator, for labels of few values and of many."""
    wanted = Requirement(row["key"], row["operator"], tuple(row["values"]))
    expected = [wanted.holds(one.metadata.labels) for one in MANY]
    assert selection.all_met(COLUMNS, [wanted]).tolist() == expected


RUNNING = [
    pod("a", on="n1", labels={"app": "web"}),
    pod("b", on="n1", labels={"app": "web"}, namespace="other"),
    pod("c", on="n2", labels={"app": "db"}),
    pod("d", on="n2"),
]
NAMESPACES = {"team": {"kind": "mine"}, "other": {}}


@given(
    st.none() | st.dictionaries(st.just("app"), st.sampled_from(["web", "db"])),
    st.lists(st.sampled_from(["team", "other"]), max_size=2),
    st.none() | st.dictionaries(st.just("kind"), st.just("mine")),
)
def test_affinity_terms(labels: dict[str, str] | None, named: list[str], among: dict[str, str] | None) -> None:
    """A term means the same pods, whether they are looked at together or one by one."""
    written = term("zone", labels or {}, namespaces=named)
    written |= {"labelSelector": None} if labels is None else {}
    written |= {} if among is None else {"namespaceSelector": {"matchLabels": among}}
    one = neighbours.term(written, "team")
    pods = seen(pod(), MANY, RUNNING).columns.pods
    found = attributes.meant(pods, one, NAMESPACES.get)
    expected = {each.metadata.name for each in RUNNING if one.selects(each, NAMESPACES.get)}
    assert {each.metadata.name for each, meant in zip(pods.pods, found, strict=True) if meant and each} == expected
