"""Answers that are kept while the cluster changes."""

import random

import hypothesis
import numpy as np
from hypothesis import strategies as st

from slurm_bridge.cluster.cluster_cache import ClusterCache
from slurm_bridge.cluster.columns import NodeColumns, QuestionCache, Whole
from slurm_bridge.cluster.facts import NodeFacts
from slurm_bridge.translate import resources
from tests.examples import examples
from tests.unit.hooks.builders import node, pod

NODES = 300


def whole(columns: NodeColumns) -> Whole:
    """Of all nodes at once."""
    return np.array([0 if facts is None else one(facts) for facts in columns.facts], np.int64)


def one(facts: NodeFacts) -> int:
    """Of a single one."""
    return len(facts.pods) + 10 * len(facts.node.metadata.labels)


def cluster(size: int = NODES) -> ClusterCache:
    """Nodes without labels and pods."""
    keeper = ClusterCache(resources.requests_of)
    for number in range(size):
        keeper.on_node(None, node(f"n{number}"))
    return keeper


def change(keeper: ClusterCache, dice: random.Random) -> None:
    """A node comes, changes or goes, or a pod comes."""
    name = f"n{dice.randrange(NODES + 5)}"
    match dice.randrange(3):
        case 0:
            keeper.on_node(None, node(name, labels={"a": "b"} if dice.random() < 0.5 else {}))
        case 1:
            keeper.on_node(node(name), None)
        case _:
            keeper.on_pod(None, pod(f"p{dice.randrange(9)}", node_name=name, phase="Running"))


@hypothesis.given(st.integers(0, 10_000), st.lists(st.integers(0, 4), max_size=12))
@hypothesis.settings(max_examples=examples(30))
def test_an_answer_is_what_would_be_said_now(seed: int, back: list[int]) -> None:
    """Of whichever snapshot, and however much has changed."""
    dice, keeper, kept = random.Random(seed), cluster(), QuestionCache[str](2)
    taken: list[NodeColumns] = []
    for step in back:
        for _ in range(dice.choice((0, 1, 2, 9, 40))):
            change(keeper, dice)
        taken.append(keeper.snapshot().columns)
        for columns in (taken[-1], taken[-1 - step % len(taken)]):
            found = kept.get("key", columns, lambda columns=columns: whole(columns), one)
            assert found.tolist() == whole(columns).tolist()


def test_only_what_changed_is_asked() -> None:
    """And where nothing of it differs the answer is the very same, so that what was made of it holds."""
    keeper, kept, asked = cluster(), QuestionCache[str](2), list[str]()

    def told(facts: NodeFacts) -> int:
        asked.append(facts.name)
        return one(facts)

    first = keeper.snapshot().columns
    before = kept.get("key", first, lambda: whole(first), told)
    keeper.on_node(None, node("n7", unschedulable=True))
    second = keeper.snapshot().columns
    assert kept.get("key", second, lambda: whole(second), told) is before
    keeper.on_pod(None, pod("p", node_name="n9", phase="Running"))
    third = keeper.snapshot().columns
    assert kept.get("key", third, lambda: whole(third), told).tolist() == whole(third).tolist()
    assert asked == ["n7", "n9"]


def test_of_another_cluster_nothing_is_known() -> None:
    """It is asked as a whole."""
    kept, one_, other = QuestionCache[str](2), cluster(3).snapshot().columns, cluster(4).snapshot().columns
    assert len(kept.get("key", one_, lambda: whole(one_), one)) == 3
    assert len(kept.get("key", other, lambda: whole(other), one)) == 4
