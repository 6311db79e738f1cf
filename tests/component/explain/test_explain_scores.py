"""The score matrix: the score of each hook for each node, the best first."""

import dataclasses
import json

from slurm_bridge.explain import scores, text
from slurm_bridge.hooks.base import Matrix, Row
from tests.component.explain.test_explain_text import explanation

MATRIX = Matrix(
    rows=(
        Row(name="LeastRequested", weight=1, scores={"n1": 3.0, "n2": 10.0}),
        Row(name="ImageLocality", weight=2.5, scores={"n1": 0.25}),
    ),
    combined={"n1": 3.625, "n2": 10.0, "n3": 0.0},
)


def test_a_row_for_each_priority_and_the_best_nodes_first() -> None:
    """A node that a priority says nothing of has 0 there; what does not fit is counted."""
    assert list(scores.lines(MATRIX, most=2)) == [
        "priority (weight)    n2    n1",
        "LeastRequested (1)   10     3",
        "ImageLocality (2.5)   0  0.25",
        "combined             10  3.62",
        "and 1 more nodes with lower or equal scores",
    ]


def test_people_and_machines_are_shown_the_same() -> None:
    """The table under the name of its hook; every node in the document."""
    found = dataclasses.replace(explanation(), matrices={"kube-scheduler": MATRIX})
    assert "scores of kube-scheduler\n  priority (weight)    n2    n1  n3\n" in text.render(found, verbose=False)
    document = json.loads(json.dumps(text.document(found, verbose=False)))
    assert document["scores"]["kube-scheduler"] == {
        "priorities": [
            {"priority": "LeastRequested", "weight": 1, "scores": {"n1": 3.0, "n2": 10.0}},
            {"priority": "ImageLocality", "weight": 2.5, "scores": {"n1": 0.25}},
        ],
        "combined": {"n1": 3.625, "n2": 10.0, "n3": 0.0},
    }
