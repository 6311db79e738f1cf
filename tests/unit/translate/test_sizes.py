"""Pods with an absurd number of terms are refused in words, before any node is looked at."""

from typing import Any

import pytest

from slurm_bridge.model import names
from slurm_bridge.model.pod import Pod, PodSpec, Toleration
from slurm_bridge.translate import annotations, sizes, translator
from tests.effort import Work
from tests.unit.hooks.builders import pod, workload
from tests.unit.translate.translating import configured

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def terms(count: int) -> list[dict[str, Any]]:
    """So many terms, each of a key of its own."""
    return [{"matchExpressions": [{"key": f"k{one}", "operator": "Exists"}]} for one in range(count)]


def asking(**spec: Any) -> Pod:
    """A pod that says this of nodes."""
    return Pod(metadata=pod("a").metadata, spec=PodSpec(**spec))


ABSURD = {
    "nodeSelectorTerms": {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms(101)}}}},
    PREFERRED: {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": {}}] * 101}}},
    "podAntiAffinity": {"affinity": {"podAntiAffinity": {REQUIRED: [{"topologyKey": "zone"}] * 101}}},
    "spec.nodeSelector": {"node_selector": {f"k{one}": "v" for one in range(101)}},
    "spec.tolerations": {"tolerations": tuple(Toleration(key=f"k{one}") for one in range(101))},
    "spec.resourceClaims": {"resource_claims": ({"name": "gpu", "resourceClaimName": "mine"},) * 101},
    "spec.topologySpreadConstraints": {"topology_spread_constraints": ({"topologyKey": "zone"},) * 101},
    "the label selectors of spec.affinity.podAffinity": {
        "affinity": {"podAffinity": {REQUIRED: [{"labelSelector": {"matchExpressions": [{"key": "a"}] * 501}}]}}
    },
    "the label selectors of spec.affinity.podAntiAffinity": {
        "affinity": {
            "podAntiAffinity": {
                PREFERRED: [
                    {"podAffinityTerm": {"namespaceSelector": {"matchLabels": {f"k{n}": "v" for n in range(501)}}}}
                ]
            }
        }
    },
    "the values of spec.topologySpreadConstraints": {
        "topology_spread_constraints": (
            {"labelSelector": {"matchExpressions": [{"key": "a", "values": ["v"] * 10_001}]}},
        )
    },
    "matchExpressions": {
        "affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a"}] * 501}]}}}
    },
    "values": {
        "affinity": {
            "nodeAffinity": {
                REQUIRED: {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "values": ["n"] * 10_001}]}]}
            }
        }
    },
}


@pytest.mark.security("fairness")
@pytest.mark.parametrize("field", ABSURD)
def test_absurd_sizes_are_refused(field: str) -> None:
    """A pod with more than 100 terms or tolerations is refused with a message, without a pass over the nodes."""
    one = asking(**ABSURD[field])
    problem = sizes.problem([one])
    assert problem.startswith("Pod team/a: ")
    assert field in problem
    assert "are allowed" in problem
    refused = translator.translate(workload(one), configured())
    assert getattr(refused, "reason", "") == "TooManyTerms"


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms(100)}}}},
        {"affinity": {"nodeAffinity": "nonsense", "podAffinity": {REQUIRED: "nonsense"}}},
        {"tolerations": tuple(Toleration(key=f"k{one}") for one in range(100))},
    ],
)
def test_what_people_write_is_not_absurd(spec: dict[str, Any]) -> None:
    """Neither a hundred terms, nor a manifest that says nothing that can be counted."""
    assert sizes.problem([asking(**spec)]) == ""


@pytest.mark.security("fairness")
def test_thousands_of_unknown_annotations_cost_little() -> None:
    """A pod with thousands of unknown annotation keys is refused after the first fifty of them."""
    given = {f"{names.JOB_PREFIX}tymelimit{number}": "1" for number in range(5000)}
    with Work() as work:
        said, problems = annotations.read("Pod a/b", given)
    assert said == ()
    assert len(problems) == annotations.MOST_PROBLEMS + 1
    assert problems[-1] == "Pod a/b: 4950 further annotations were not read"
    assert sum("did you mean timelimit?" in one for one in problems) == annotations.MOST_HINTS
    assert work.total < 3 * len(given)
