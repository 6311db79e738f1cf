"""Which nodes are the best of those that have room, whatever form their scores have."""

import itertools
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.cluster.columns import Numbers
from slurm_bridge.hooks import rating
from slurm_bridge.hooks.base import Scores, Tiers
from slurm_bridge.hooks.rating import Ranking
from tests.unit.hooks.builders import cluster, node

NAMES = [f"n{number:02}" for number in range(12)]
EVERY = frozenset(NAMES)
SEEN = cluster([node(name) for name in NAMES])

_scores = st.dictionaries(st.sampled_from(NAMES), st.integers(-3, 3).map(float))
_nodes = st.frozensets(st.sampled_from(NAMES), min_size=1)
_sizes = st.lists(st.integers(1, 14), min_size=1, max_size=3).map(sorted)


def array(scores: Mapping[str, float]) -> Numbers:
    """The same scores by rows."""
    names = [str(name) for name in SEEN.columns.names]
    values = np.array([scores.get(name, 99.0) for name in names])
    return Numbers(SEEN.columns, lambda: (values, np.array([name in scores for name in names])))


def ranking(scores: Mapping[str, float], roomy: frozenset[str] | None = None, turn: int = 0) -> Ranking:
    """Of the nodes of this cluster."""
    mask = None if roomy is None else SEEN.columns.mask(roomy)
    return Ranking(scores=Scores(nodes=scores), columns=SEEN.columns, roomy=mask, turn=turn)


@given(_scores, _nodes, st.none() | st.frozensets(st.sampled_from(NAMES)), st.integers(0, 40), _sizes)
def test_the_best_are_the_best(
    scores: dict[str, float], nodes: frozenset[str], roomy: frozenset[str] | None, turn: int, sizes: list[int]
) -> None:
    """Nobody left out is better than one that is in; a node without a score has 0; the forms of scores agree."""
    among = nodes if roomy is None or not nodes & roomy else nodes & roomy
    found = ranking(scores, roomy, turn).best(nodes, sizes)
    for size, best in zip(sizes, found, strict=True):
        assert best == nodes if size >= len(nodes) else len(best) == min(size, len(among))
        rest = among - best
        least = min(scores.get(name, 0.0) for name in best)
        assert not rest or max(scores.get(name, 0.0) for name in rest) <= least
    assert all(small <= large for small, large in itertools.pairwise(found))
    assert ranking(array(scores), roomy, turn).best(nodes, sizes) == found


@given(_scores, _nodes)
def test_scores_differ_or_not(scores: dict[str, float], nodes: frozenset[str]) -> None:
    """Among these nodes, whatever others have."""
    expected = bool(scores) and len({scores.get(name, 0.0) for name in nodes}) > 1
    assert ranking(scores).differ(nodes) == expected
    assert ranking(array(scores)).differ(nodes) == (expected and bool(scores))


def test_of_equal_nodes_others_get_others() -> None:
    """A burst of workloads is spread, though the same nodes are the best for all of them."""
    chosen = [ranking(dict.fromkeys(NAMES, 5.0), turn=turn).best(EVERY, [3])[0] for turn in range(len(NAMES))]
    assert len(set(chosen)) == len(NAMES)
    assert all(sum(name in one for one in chosen) == 3 for name in NAMES)


def test_who_is_full_is_not_preferred() -> None:
    """However well it is rated; where all are full, the best of them are waited for."""
    scores = {name: float(place) for place, name in enumerate(NAMES)}
    assert ranking(scores, frozenset({"n01", "n02"})).best(EVERY, [1, 4]) == [{"n02"}, {"n01", "n02"}]
    assert ranking(scores, frozenset()).best(EVERY, [2]) == [{"n10", "n11"}]
    assert not ranking({"n01": 5.0}, frozenset({"n02", "n03"})).differ(EVERY)


@given(_scores, _scores, _nodes)
def test_scores_of_several_hooks_are_added(
    one: dict[str, float], other: dict[str, float], nodes: frozenset[str]
) -> None:
    """In whichever form, and in any order."""
    said = [Scores(nodes=one), Scores(nodes=array(other))]
    total = rating.added(said, nodes).nodes
    assert all(total.get(name, 0.0) == one.get(name, 0.0) + other.get(name, 0.0) for name in nodes)
    back = rating.added(said[::-1], nodes).nodes
    assert all(total.get(name, 0.0) == back.get(name, 0.0) for name in nodes)


def test_the_first_that_cares_says_how_scores_are_used() -> None:
    """And what each noted is kept."""
    said = [
        Scores(nodes={}, note="a"),
        Scores(nodes={}, tiers=Tiers(count=5), note="b"),
        Scores(nodes={}, tiers=Tiers()),
    ]
    added = rating.added(said, EVERY)
    assert (added.tiers, added.note) == (Tiers(count=5), "a; b")


@pytest.mark.parametrize("nodes", [EVERY, frozenset()])
def test_nobody_scores(nodes: frozenset[str]) -> None:
    """Then nothing is preferred."""
    assert not rating.added([], nodes).nodes
    assert not ranking({}).differ(nodes)
