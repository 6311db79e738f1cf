"""2-Smart's numbers, the sampling loop, scores."""

import itertools

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from slurm_bridge.families.vela import commit, loop, smart
from slurm_bridge.families.vela import scores as scoring
from slurm_bridge.families.vela.dice import Places
from slurm_bridge.families.vela.loop import LoopStatus
from slurm_bridge.families.vela.scores import Weighted
from slurm_bridge.families.vela.smart import AgentFailure
from tests.unit.families.vela.support_vela import response, scripted, whole

_scores = st.lists(st.integers(-1000, 1000), max_size=30)


class TestSmart:
    @hypothesis.given(st.integers(1, 500), st.integers(1, 150))
    def test_the_count_is_the_smallest_that_is_enough(self, clusters: int, percent: int):
        """In exact numbers, and never more than there are."""
        count = smart.cluster_count(clusters, percent)
        assert count * 100 >= min(percent, 100) * clusters > (count - 1) * 100
        assert 1 <= count <= clusters

    @hypothesis.given(st.integers(1, 100_000), st.integers(1, 20_000))
    def test_the_sample_is_the_largest_that_is_not_too_much(self, nodes: int, points: int):
        """At least one, at most all."""
        size = smart.sample_size(nodes, points)
        assert size == 1 or size * 10_000 <= min(points, 10_000) * nodes < (size + 1) * 10_000
        assert 1 <= size <= nodes

    def test_where_all_are_needed_nothing_is_drawn(self):
        """They keep their order."""
        assert smart.choose_clusters("abc", 67, scripted()) == ("a", "b", "c")

    def test_some_come_in_the_order_in_which_they_were_drawn(self):
        """Each once."""
        assert smart.choose_clusters("abcd", 50, scripted(3, 3, 1)) == ("d", "b")

    def test_answers_follow_each_other_with_their_scores(self):
        """Place by place."""
        merged = smart.merge(
            {"x": response("x", "a", scores=(3,)), "y": AgentFailure(why="late"), "z": response("z", "b", "c")}
        )
        assert (merged.qualified, merged.accumulated.tolist()) == (["x/a", "z/b", "z/c"], [3, 0, 0])
        assert (merged.answered, merged.failed) == (("x", "z"), {"y": "late"})

    def test_nobody_is_no_answer(self):
        """Which is not the same as an answer without nodes."""
        merged = smart.merge({"x": AgentFailure(why="late")})
        assert (merged.answered, merged.status) == ((), LoopStatus.UNSCHEDULABLE)


def places(*numbers: int) -> Places:
    """An array."""
    return np.array(numbers, np.intp)


class TestLoop:
    @hypothesis.given(st.integers(1, 20), st.integers(1, 6), st.sets(st.integers(0, 60)))
    def test_asks_for_what_is_missing_and_never_too_often(self, size: int, rounds: int, rejected: set[int]):
        """Each round asks for the size without what was found before."""
        nodes = itertools.count()
        found = loop.collect(
            lambda missing: places(*itertools.islice(nodes, missing)),
            lambda drawn: drawn[~np.isin(drawn, list(rejected))],
            size,
            max_rounds=rounds,
        )
        assert found.asked[0] == size
        assert len(found.asked) <= rounds
        assert len(found.found) == size or len(found.asked) == rounds
        assert not rejected & set(found.found.tolist())

    def test_nodes_that_come_again_are_taken_once(self):
        """And count once."""
        found = loop.collect(lambda _: places(7, 2), lambda drawn: drawn, 3, max_rounds=2)
        assert (found.asked, found.found.tolist()) == ((3, 1), [7, 2])

    def test_after_the_time_no_further_round_begins(self):
        """What was found by then is the answer, and one round there always is."""
        found = loop.collect(lambda _: places(5), lambda drawn: drawn, 3, expired=lambda: True)
        assert (found.asked, found.found.tolist(), found.status) == ((3,), [5], LoopStatus.SUCCESS)

    def test_a_strategy_that_raises_ends_it(self):
        """The reason says what it was."""

        def draw(_missing: int) -> Places:
            raise OSError("gone")

        found = loop.collect(draw, lambda drawn: drawn, 1)
        assert (found.status, found.reason, len(found.found)) == (LoopStatus.INTERNAL_ERROR, "OSError: gone", 0)


class TestScores:
    @hypothesis.given(_scores)
    def test_normalized_scores_keep_their_order(self, scores: list[int]):
        """The highest has 100 when it is above 0."""
        found = scoring.normalized(whole(*scores)).tolist()
        assert all(a <= b for (_, a), (_, b) in itertools.pairwise(sorted(zip(scores, found, strict=True))))
        if scores and max(scores) > 0:
            assert max(found) == 100

    @hypothesis.given(_scores, st.integers(0, 10))
    def test_the_picked_are_the_highest(self, scores: list[int], count: int):
        """Best first, and among equal ones the first."""
        picked = scoring.picked(whole(*scores), count).tolist()
        expected = sorted(range(len(scores)), key=lambda place: (-scores[place], place))
        assert picked == expected[:count]

    def test_division_is_toward_zero(self):
        """Also below it, and through nothing it is 0."""
        assert scoring.divided(whole(-7, 7, 5), whole(2, 2, 0)).tolist() == [-3, 3, 0]

    def test_the_divisor_counts_plugins_and_not_weights(self):
        """Those of the agent and those of the decision."""
        said = [Weighted(weight=3, scores=whole(50, 10))]
        assert scoring.combined(whole(100, 0), whole(1, 0), said).tolist() == [125, 30]

    def test_nobody_is_scored_without_nodes(self):
        """Empty samples are samples."""
        assert scoring.combined(np.zeros(0, np.int64), np.zeros(0, np.int64), []).tolist() == []


class TestCommit:
    @hypothesis.given(st.lists(st.integers(0, 5), unique=True), st.sets(st.integers(0, 5)), st.integers(1, 6))
    def test_the_first_that_accepts_is_bound(self, offered: list[int], accepting: set[int], most: int):
        """All before it have refused."""
        found = commit.multibind(offered, accepting.__contains__, most)
        first = next((one for one in offered[:most] if one in accepting), None)
        assert found.bound == first
        assert found.retries == sum(one not in accepting for one in found.tried)

    @pytest.mark.parametrize(("retries", "again"), [(0, True), (9, True), (10, False), (11, False)])
    def test_ten_retries_are_the_budget(self, retries: int, again: bool):
        """Then it is parked, which its user hears."""
        assert commit.requeued(retries) is again
        assert commit.event(requeued=again) == (None if again else "FailedScheduling")

    def test_what_is_refused_takes_nothing(self):
        """So a smaller one after it still fits."""
        ledger = commit.NodeLedger({"cpu": 5})
        results = [ledger.commit({"cpu": amount}) for amount in (3, 3, 2)]
        assert [one.value for one in results] == ["committed", "Unschedulable", "committed"]
        assert ledger.available == {"cpu": 0}
