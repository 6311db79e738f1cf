"""EvenPodsSpread: no domain gets too many more pods than the emptiest one has."""

from typing import Any

import pytest

from slurm_bridge.families.kube_scheduler.predicates import reasons
from slurm_bridge.model.node import Taint
from slurm_bridge.model.pod import Pod, Toleration
from tests.unit.families.kube_scheduler.scenes import HOST, ZONE, node, pod, said, seen, spread

WEB = {"app": "web"}
NODES = [
    node("a1", labels={ZONE: "a"}),
    node("a2", labels={ZONE: "a"}),
    node("b1", labels={ZONE: "b"}),
    node("none"),
]


def denied(subject: Pod, *running: Pod, nodes: Any = NODES) -> dict[str, tuple[str, ...]]:
    """What the predicate says with these pods there."""
    return said("EvenPodsSpread", seen(subject, nodes, running))


def web(name: str, on: str, **others: Any) -> Pod:
    """A pod that counts."""
    return pod(name, on=on, labels=WEB, **others)


def wants(*constraints: dict[str, Any], **others: Any) -> Pod:
    """A pod that counts itself, with these constraints."""
    return pod(labels=WEB, topology_spread_constraints=constraints, **others)


MISSING = {"none": (reasons.SPREAD_LABEL,)}


def test_the_fuller_domain_is_out() -> None:
    """One more there would be two more than in the other; nodes without the label are out for that."""
    skewed = dict.fromkeys(["a1", "a2"], (reasons.SPREAD,))
    assert denied(wants(spread(ZONE, WEB)), web("w", "a1")) == {**skewed, **MISSING}


def test_a_wider_skew_lets_it_in() -> None:
    """Two more are two, not more."""
    assert denied(wants(spread(ZONE, WEB, skew=2)), web("w", "a1")) == MISSING


def test_a_pod_that_does_not_count_itself() -> None:
    """It does not make the domain fuller."""
    subject = pod(topology_spread_constraints=(spread(ZONE, WEB),))
    assert denied(subject, web("w", "a1")) == MISSING


def test_a_constraint_that_selects_every_pod_counts_none() -> None:
    """As kube-scheduler, which takes an empty selector for one that has nothing to count. The pod itself counts."""
    every = {**spread(ZONE, WEB), "labelSelector": {}}
    assert denied(wants(every), web("w", "a1"), web("v", "a2")) == MISSING


@pytest.mark.parametrize("other", [{"namespace": "other"}, {"leaving": True}])
def test_some_pods_do_not_count(other: dict[str, Any]) -> None:
    """Those of other namespaces, and those on their way out."""
    assert denied(wants(spread(ZONE, WEB)), web("w", "a1", **other)) == MISSING


def test_too_few_domains_count_as_an_empty_one() -> None:
    """With minDomains the cluster is expected to grow a domain that is empty yet."""
    everywhere = [web("w1", "a1"), web("w2", "b1")]
    assert denied(wants(spread(ZONE, WEB)), *everywhere) == MISSING
    assert denied(wants(spread(ZONE, WEB, minDomains=3)), *everywhere).keys() == {"a1", "a2", "b1", "none"}


def test_nodes_that_the_pod_cannot_use_are_no_domain() -> None:
    """An empty zone that node affinity rules out does not make the others too full, unless that is to be ignored."""
    only_a = {"node_selector": {ZONE: "a"}}
    assert "a1" not in denied(wants(spread(ZONE, WEB), **only_a), web("w", "a1"))
    ignoring = spread(ZONE, WEB, nodeAffinityPolicy="Ignore")
    assert denied(wants(ignoring, **only_a), web("w", "a1"))["a1"] == (reasons.SPREAD,)


def test_tainted_nodes_count_unless_taints_are_honoured() -> None:
    """By default a taint makes no difference to what a domain is."""
    tainted = [*NODES[:2], node("b1", labels={ZONE: "b"}, taints=(Taint(key="x", effect="NoSchedule"),))]
    honouring = spread(ZONE, WEB, nodeTaintsPolicy="Honor")
    assert denied(wants(spread(ZONE, WEB)), web("w", "a1"), nodes=tainted).keys() == {"a1", "a2"}
    assert denied(wants(honouring), web("w", "a1"), nodes=tainted) == {}
    tolerating = wants(honouring, tolerations=(Toleration(operator="Exists"),))
    assert denied(tolerating, web("w", "a1"), nodes=tainted).keys() == {"a1", "a2"}


def test_every_constraint_has_to_hold() -> None:
    """Even over zones and even over nodes: the first that fails gives the reason, once."""
    subject = wants(spread(ZONE, WEB, skew=5), spread(HOST, WEB))
    assert denied(subject, web("w", "a1")) == {"a1": (reasons.SPREAD,), **MISSING}


def test_wishes_deny_nothing() -> None:
    """ScheduleAnyway is for scores."""
    assert denied(wants(spread(ZONE, WEB, whenUnsatisfiable="ScheduleAnyway")), web("w", "a1")) == {}


def test_own_values_of_label_keys() -> None:
    """Pods of another revision do not count."""
    by_revision = spread(ZONE, WEB, matchLabelKeys=["revision"])
    subject = pod(labels={**WEB, "revision": "2"}, topology_spread_constraints=(by_revision,))
    assert denied(subject, pod("w", on="a1", labels={**WEB, "revision": "1"})) == MISSING
    assert "a1" in denied(subject, pod("w", on="a1", labels={**WEB, "revision": "2"}))


def test_a_constraint_without_a_selector_counts_nobody() -> None:
    """It holds wherever there is a domain."""
    assert denied(wants({**spread(ZONE, WEB), "labelSelector": None}), web("w", "a1")) == MISSING
