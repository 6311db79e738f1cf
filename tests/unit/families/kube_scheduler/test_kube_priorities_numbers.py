"""The arithmetic of scores: normalising, shapes, how many nodes are enough, who is taken."""

import collections

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.families.kube_scheduler import matrix, selection
from slurm_bridge.families.kube_scheduler.priorities import allocation, numbers, shape
from slurm_bridge.families.kube_scheduler.priorities.rule import HostPriority
from tests.conformance.kube_cycle import host as hosts
from tests.conformance.kube_cycle.host import HostTurns

RAW = st.lists(st.integers(0, 10**6), min_size=1, max_size=20)
SCALE = st.sampled_from([10, 100])


@st.composite
def shapes(draw: st.DrawFn) -> shape.UtilizationShape:
    """Any function that an administrator may draw."""
    places = sorted(draw(st.sets(st.integers(0, 100), min_size=1, max_size=6)))
    return shape.checked([(place, draw(st.integers(0, 10))) for place in places])


def every(values: list[int]) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """All are candidates."""
    return np.ones(len(values), np.bool_)


@given(RAW, SCALE)
def test_normalised_scores_keep_the_order(raw: list[int], scale: int) -> None:
    """Between 0 and the scale, the highest at its end."""
    found = numbers.normalized(np.array(raw), every(raw), scale, reverse=False).tolist()
    assert all(0 <= one <= scale for one in found)
    assert max(found) == (scale if max(raw) else 0)
    assert all(found[i] <= found[j] for i in range(len(raw)) for j in range(len(raw)) if raw[i] <= raw[j])


@given(RAW, SCALE)
def test_reversed_scores_mirror_the_plain_ones(raw: list[int], scale: int) -> None:
    """Together they are the whole scale, unless there is nothing to share."""
    plain, mirrored = (numbers.normalized(np.array(raw), every(raw), scale, reverse=way) for way in (False, True))
    total = plain + mirrored
    assert set(total.tolist()) == {scale}


@given(RAW, st.integers(0, 10**7))
def test_nodes_that_are_no_candidates_do_not_matter(raw: list[int], other: int) -> None:
    """However good they are."""
    alone = numbers.normalized(np.array(raw), every(raw), 10, reverse=False)
    beside = numbers.normalized(np.array([*raw, other]), np.array([True] * len(raw) + [False]), 10, reverse=False)
    assert beside[:-1].tolist() == alone.tolist()


@given(st.integers(-100, 100), st.integers(1, 30))
def test_a_quotient_is_rounded_toward_zero(above: int, below: int) -> None:
    """As in Go and C, and unlike in Python."""
    assert numbers.quotient(np.array([above]), below).tolist() == [int(above / below)]


@given(shapes(), st.integers(-20, 130))
def test_a_shape_stays_between_its_points(drawn: shape.UtilizationShape, place: int) -> None:
    """Never above the highest or below the lowest score."""
    scores = [score for _, score in drawn.points]
    assert min(scores) <= drawn.at(place) <= max(scores)


@given(shapes())
def test_a_shape_goes_through_its_points(drawn: shape.UtilizationShape) -> None:
    """Whatever lies between."""
    assert [drawn.at(place) for place, _ in drawn.points] == [score for _, score in drawn.points]


@given(shapes())
def test_a_table_says_the_same_as_the_shape(drawn: shape.UtilizationShape) -> None:
    """For every percentage."""
    assert drawn.table().tolist() == [drawn.at(place) for place in range(101)]


@pytest.mark.parametrize(
    ("points", "said"),
    [
        ([], "at least one point must be specified"),
        ([(5, 1), (5, 2)], "utilization values must be sorted"),
        ([(0, 1), (101, 2)], "utilization above 100"),
        ([(0, 11)], "score above 10"),
        ([(-1, -1)], "utilization below 0"),
    ],
)
def test_what_is_wrong_with_a_shape_is_told(points: list[tuple[int, int]], said: str) -> None:
    """The first thing, in kube-scheduler's words."""
    with pytest.raises(shape.BadShape, match=said):
        shape.checked(points)


@given(st.lists(st.tuples(st.text(min_size=1), st.integers(-5, 200)), max_size=5))
def test_weights_of_resources_are_from_1_to_100(resources: list[tuple[str, int]]) -> None:
    """Each that is not is named by its place."""
    wrong = {
        f"scoringStrategy.resources[{i}].weight"
        for i, (_, weight) in enumerate(resources)
        if weight not in range(1, 101)
    }
    assert set(allocation.invalid(resources)) == wrong


@given(st.lists(st.tuples(RAW.map(lambda raw: (raw * 5)[:5]), st.integers(1, 100), st.booleans()), max_size=5))
def test_the_combined_row_is_the_weighted_sum(rows: list[tuple[list[int], int, bool]]) -> None:
    """Constant rows, which are kept as one number, included."""
    scored, total = [], [0] * 5
    for number, (raw, weight, constant) in enumerate(rows):
        values = numbers.constant(5, raw[0]) if constant else np.array(raw)
        scored.append(matrix.Scored(name=str(number), weight=weight, values=values))
        total = [one + weight * int(value) for one, value in zip(total, values, strict=True)]
    assert matrix.combine(scored, 5).tolist() == total


@given(st.integers(-5, 130), st.integers(0, 20000))
def test_enough_nodes_are_between_100_and_all(percentage: int, number: int) -> None:
    """A small cluster is searched wholly."""
    enough = selection.num_feasible_nodes(percentage, number)
    assert min(number, 100) <= enough <= number


@given(st.lists(st.booleans(), min_size=1, max_size=40), st.integers(0, 40), st.data())
def test_some_nodes_are_feasible_ones(feasible: list[bool], number: int, data: st.DataObject) -> None:
    """As many as are wanted and there are."""
    start = data.draw(st.integers(0, len(feasible)))
    chosen = selection.some(np.array(feasible), number, start)
    assert not (chosen & ~np.array(feasible)).any()
    assert chosen.sum() == min(number, sum(feasible))


def test_where_the_search_starts_decides_who_is_searched() -> None:
    """From that row on, and around."""
    assert selection.some(np.array([True, False, True, True]), 2, 3).tolist() == [True, False, False, True]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.integers(0, 1000))
def test_turns_take_all_best_nodes_equally_often(scores: list[int], start: int) -> None:
    """And no other."""
    scored = [HostPriority(f"n{number}", score) for number, score in enumerate(scores)]
    best = {one.host for one in scored if one.score == max(scores)}
    turns = HostTurns(start)
    taken = collections.Counter(hosts.select_host(scored, turns) for _ in range(3 * len(best)))
    assert taken == dict.fromkeys(best, 3)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_dice_take_one_of_the_best(scores: list[int], dice: object) -> None:
    """Whatever they show."""
    scored = [HostPriority(f"n{number}", score) for number, score in enumerate(scores)]
    host = hosts.select_host(scored, dice.randrange)  # type: ignore[attr-defined]
    assert scored[int(host[1:])].score == max(scores)


def test_nothing_can_be_chosen_from_nothing() -> None:
    """In kube-scheduler's words."""
    with pytest.raises(hosts.NothingToSelect, match="empty priority list"):
        hosts.select_host([], HostTurns())


@given(st.integers(1, 2**50), st.integers(0, 10), st.integers(-2, 2))
def test_shares_are_exact(below: int, times: int, beside: int) -> None:
    """Also right below and above a whole quotient, and where floating point could not tell."""
    above = min(max(0, below * times + beside), 10 * below)
    found = numbers.shares(np.array([above, 0, 7]), np.array([below, 0, 0]))
    assert found.tolist() == [above // below, 0, 7]
