"""Node affinity that every pod has by configuration, beside its own."""

import re
from typing import Any

import pydantic
import pytest

from slurm_bridge.families.kube_scheduler.options import KubeSchedulerOptions
from slurm_bridge.families.kube_scheduler.predicates import reasons
from slurm_bridge.hooks.base import Deny
from slurm_bridge.model.pod import Pod
from tests.unit.families.kube_scheduler.kube_hook_scenes import chained, cluster, denied, hooked, scores
from tests.unit.families.kube_scheduler.scenes import ZONE, node, pod
from tests.unit.hooks.builders import Around, workload

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NODES = [
    node("fast", labels={"pool": "batch", ZONE: "1"}),
    node("slow", labels={"pool": "batch", ZONE: "2"}),
    node("web", labels={"pool": "web", ZONE: "1"}),
]


def row(key: str, *values: str, operator: str = "In") -> dict[str, Any]:
    """One condition."""
    return {"key": key, "operator": operator, "values": list(values)}


BATCH = {"required": [{"match_expressions": [row("pool", "batch")]}]}


def outside(around: Around, added: dict[str, Any], subject: Pod, predicate: str = "GeneralPredicates") -> Any:
    """The nodes that this keeps a pod from, with the reasons."""
    hook = hooked(predicates=[predicate], added_affinity=added)
    return dict(denied(chained(around, hook), hook, cluster(NODES), subject).nodes)


@pytest.mark.parametrize("predicate", ["GeneralPredicates", "MatchNodeSelector"])
def test_every_pod_has_it(around: Around, predicate: str) -> None:
    """Its own selector is asked about the nodes that are left."""
    enforced = {"web": (reasons.ENFORCED_AFFINITY,)}
    assert outside(around, BATCH, pod(), predicate) == enforced
    here = pod(node_selector={ZONE: "1"})
    assert outside(around, BATCH, here, predicate) == {**enforced, "slow": (reasons.NODE_SELECTOR,)}


@pytest.mark.parametrize(
    ("terms", "left"),
    [
        ([], {"fast", "slow", "web"}),
        (
            [{"matchExpressions": [row("pool", "web")]}, {"match_fields": [row("metadata.name", "slow")]}],
            {"slow", "web"},
        ),
        ([{"matchExpressions": [row("pool", "batch"), row(ZONE, "1")]}], {"fast"}),
        ([{"matchExpressions": [row("absent", operator="Exists")]}], set()),
        # As everywhere in Kubernetes, a term without conditions matches no node.
        ([{}], set()),
    ],
)
def test_terms_are_those_of_node_affinity(around: Around, terms: list[dict[str, Any]], left: set[str]) -> None:
    """In the spelling of manifests or of this configuration; one of them has to hold, with all its conditions."""
    assert {"fast", "slow", "web"} - outside(around, {"required": terms}, pod()).keys() == left


def test_preferences_are_added_to_those_of_the_pod(around: Around) -> None:
    """By weight."""
    added = {"preferred": [{"weight": 3, "preference": {"matchExpressions": [row("pool", "batch")]}}]}
    rating = [{"name": "NodeAffinity", "args": {"scale": 100}}]
    hook = hooked(priorities=rating, added_affinity=added)
    chain, snapshot = chained(around, hook), cluster(NODES)
    assert dict(scores(chain, hook, snapshot, pod()).nodes) == {"fast": 100, "slow": 100, "web": 0}
    wish = {"weight": 1, "preference": {"matchExpressions": [row(ZONE, "1")]}}
    wishing = pod(affinity={"nodeAffinity": {PREFERRED: [wish]}})
    assert dict(scores(chain, hook, snapshot, wishing).nodes) == {"fast": 100, "slow": 75, "web": 25}


def test_it_is_asked_about_once_more_after_the_allocation() -> None:
    """A node can have been labelled otherwise meanwhile."""
    hook = hooked(added_affinity=BATCH)
    found = chained(Around(), hook).verify(workload(pod("x")), {"uid-x": "web"}, cluster(NODES))
    assert isinstance(found, Deny)
    assert reasons.ENFORCED_AFFINITY in found.message


@pytest.mark.parametrize(
    ("added", "said"),
    [
        ({"required": [{"matchLabels": {"a": "b"}}]}, "added_affinity.required.0.matchLabels"),
        ({"required": [{"matchExpressions": [row("a", operator="Is")]}]}, "Input should be 'In'"),
        ({"required": [{"matchExpressions": [row("a")]}]}, "In needs values"),
        ({"required": [{"matchExpressions": [row("a", "b", operator="Exists")]}]}, "Exists takes no values"),
        ({"required": [{"matchExpressions": [row("a", "many", operator="Gt")]}]}, "Gt needs one whole number"),
        ({"required": [{"matchFields": [row("spec.x", "b")]}]}, "matchFields: the only field is metadata.name"),
        ({"required": [{"matchFields": [row("metadata.name", operator="Exists")]}]}, "matchFields: the operator is In"),
        ({"preferred": [{"weight": 0, "preference": {}}]}, "greater than or equal to 1"),
    ],
)
def test_terms_that_make_no_sense_are_refused(added: dict[str, Any], said: str) -> None:
    """Where the daemon starts, and not at the first pod."""
    with pytest.raises(pydantic.ValidationError, match=re.escape(said)):
        KubeSchedulerOptions.model_validate({"added_affinity": added})
