"""Amounts by type: arithmetic, fit tests and shares."""

import functools
import itertools

import hypothesis
import pytest
from hypothesis import strategies as st

from slurm_bridge.families.yunikorn.queues import amounts
from slurm_bridge.families.yunikorn.queues.amounts import Known
from tests.unit.families.yunikorn.queues.support_trees import (
    TYPES,
    amounts_of_any_sign,
    amounts_of_things,
    known,
    limits,
)

_ascending = st.lists(st.integers(-2, 2) | st.sampled_from([-0.5, 0.0, 0.25, 1.5]), max_size=6).map(sorted)


def _of(amount: Known, kind: str) -> int:
    return (amount or {}).get(kind, 0)


class TestArithmetic:
    @hypothesis.given(known, known)
    def test_sum_and_difference_are_taken_by_type(self, left: Known, right: Known):
        """Where a type that one side does not define counts as 0, and no other types appear."""
        total, rest = amounts.plus(left, right), amounts.minus(left, right)
        assert total == {kind: _of(left, kind) + _of(right, kind) for kind in total}
        assert rest == {kind: _of(left, kind) - _of(right, kind) for kind in rest}
        assert total.keys() == rest.keys() == (left or {}).keys() | (right or {}).keys()

    @hypothesis.given(known, known)
    def test_nothing_that_is_given_is_changed(self, left: Known, right: Known):
        """Even where a result equals one side."""
        before = (left and dict(left)), (right and dict(right))
        for operation in (amounts.plus, amounts.minus, amounts.smaller):
            operation(left, right)
        assert (left, right) == before

    @hypothesis.given(amounts_of_any_sign, known)
    def test_adding_in_place_leaves_no_zeros(self, total: dict[str, int], amount: Known):
        """It is the sum, without the types that this brought to 0."""
        there = {kind: one for kind, one in total.items() if one}
        expected = {kind: one for kind, one in amounts.plus(there, amount).items() if one}
        amounts.add(there, amount)
        assert there == expected

    @hypothesis.given(known, st.integers(-3, 3))
    def test_a_multiple_is_a_repeated_sum(self, amount: Known, factor: int):
        """Also less often than never."""
        step = amounts.plus if factor > 0 else amounts.minus
        repeated = functools.reduce(lambda total, _: step(total, amount), range(abs(factor)), {})
        assert amounts.same(amounts.times(amount, factor), repeated)

    @hypothesis.given(known, known, known)
    def test_the_smaller_one_does_not_depend_on_the_order(self, one: Known, other: Known, third: Known):
        """Neither of two nor of three."""
        smaller = amounts.smaller
        assert smaller(one, other) == smaller(other, one)
        assert smaller(smaller(one, other), third) == smaller(one, smaller(other, third))

    def test_the_smaller_one_takes_over_what_one_side_alone_defines(self):
        """And nothing limits nothing."""
        assert amounts.smaller({"a": 3, "b": 1}, {"a": 2, "c": 0}) == {"a": 2, "b": 1, "c": 0}
        assert amounts.smaller(None, {"a": 2}) == {"a": 2}
        assert amounts.smaller(None, None) is None

    @pytest.mark.parametrize(
        ("amount", "positive", "empty"),
        [
            (None, False, True),
            ({}, False, True),
            ({"a": 0}, False, True),
            ({"a": 1, "b": 0}, True, False),
            ({"a": 1, "b": -1}, False, False),
            ({"a": -1}, False, False),
        ],
    )
    def test_positive_is_something_and_less_than_nothing_of_none(self, amount: Known, positive: bool, empty: bool):
        """Empty is nothing of anything."""
        assert (amounts.is_positive(amount), amounts.is_empty(amount)) == (positive, empty)


class TestFits:
    @hypothesis.given(known, known)
    def test_what_fits_leaves_nothing_below_zero(self, smaller: Known, larger: Known):
        """By the definition of each test, type by type."""
        types = smaller or {}
        room = larger or {}
        assert amounts.fit_in(smaller, larger) is all(one <= max(0, room.get(kind, 0)) for kind, one in types.items())
        defined = {kind: one for kind, one in types.items() if kind in room}
        assert amounts.fit_in_max_undefined(smaller, larger) is amounts.fit_in(defined, room)
        assert amounts.fit_in_actual(smaller, larger) is all(one <= room[kind] for kind, one in defined.items())

    @hypothesis.given(amounts_of_things, known)
    def test_the_score_is_zero_where_it_fits(self, fit: dict[str, int], available: Known):
        """And grows to the number of types that are there but not available."""
        score = amounts.fit_in_score(fit, available or {})
        assert (score == 0) is amounts.fit_in(fit, available)
        assert score <= sum(one > 0 for one in fit.values())

    def test_the_score_counts_the_part_that_is_missing(self):
        """Of each type on its own; of an unknown room all types count."""
        assert amounts.fit_in_score({"a": 20, "b": 4, "c": 1}, {"a": 5, "b": 4}) == pytest.approx(0.75 + 0 + 1)
        assert amounts.fit_in_score({"a": 0, "b": 4}, None) == 2


def compare(left: list[float], right: list[float]) -> int:
    """The rule as it is written: the largest shares first, and what one side has beyond the other against nothing."""
    for one, other in itertools.zip_longest(reversed(left), reversed(right), fillvalue=0):
        if one != other:
            return 1 if one > other else -1
    return 0


def by_keys(left: list[float], right: list[float]) -> int:
    """1 where the left one is larger, -1 where the right one is, else 0."""
    one, other = amounts.share_key(left), amounts.share_key(right)
    return (one > other) - (one < other)


class TestShares:
    @hypothesis.given(_ascending, _ascending)
    def test_the_key_sorts_as_shares_compare(self, left: list[float], right: list[float]):
        """Exactly: what compares equal has equal keys."""
        assert by_keys(left, right) == compare(left, right)

    @hypothesis.given(st.lists(_ascending, max_size=8))
    def test_the_key_puts_many_into_the_order_of_comparing(self, lists: list[list[float]]):
        """Stable in the same way."""
        assert sorted(lists, key=amounts.share_key) == sorted(lists, key=functools.cmp_to_key(compare))

    @pytest.mark.parametrize(
        ("left", "right", "result"),
        [
            ([1, 2], [0, 2], 1),
            ([], [], 0),
            ([], [0, 0], 0),
            ([0, 1], [1], 0),
            ([1], [0, 0.5, 1], -1),
            ([-1, 0, 1], [1], -1),
            ([-1], [], -1),
        ],
    )
    def test_the_largest_share_decides_first(self, left: list[float], right: list[float], result: int):
        """Further zeros decide nothing, a further negative share is less than none."""
        assert by_keys(left, right) == result
        assert by_keys(right, left) == -result

    def test_shares_are_raw_amounts_without_a_total(self):
        """Ascending; of a type that is 0 in the total as well."""
        assert amounts.shares({"a": 6, "b": 1, "c": 0}, {"a": 4, "b": 0}) == [0, 1, 1.5]
        assert amounts.shares(None, {"a": 4}) == []

    @hypothesis.given(amounts_of_things, amounts_of_things, limits)
    def test_all_types_are_as_good_as_no_choice(self, left: dict[str, int], right: dict[str, int], total: Known):
        """Because what there is nothing of decides nothing, where nobody has less than that."""
        chosen = by_keys(*(amounts.shares_of_types(side, total, TYPES) for side in (left, right)))
        assert chosen == by_keys(*(amounts.shares(side, total) for side in (left, right)))

    def test_of_chosen_types_nothing_is_as_good_as_not_said(self):
        """Among all types it is more than less than nothing."""
        left, right = {"a": 0, "b": -1}, {"b": -1}
        assert by_keys(*(amounts.shares_of_types(side, None, TYPES) for side in (left, right))) == 0
        assert by_keys(*(amounts.shares_of_types(side, None, None) for side in (left, right))) == 1

    def test_a_fair_share_is_measured_against_the_guarantee_first(self):
        """Then against the fair maximum; a type with neither does not count."""
        assert amounts.fair_share({"a": 2, "b": 3, "c": 9}, {"a": 4}, {"a": 1, "b": 4}) == 0.75
        assert amounts.fair_share({"a": 2}, {"a": 0}, None) == 1
        assert amounts.fair_share({"a": -2, "b": 0}, None, {"a": 1, "b": 0}) == 0

    def test_types_match_in_percent_of_the_own_ones(self):
        """Without the fraction, and not at all with nothing."""
        assert amounts.type_matching({"a": 1, "b": 1, "c": 0}, {"a": 1, "z": 1}) == 33
        assert amounts.type_matching({}, {"a": 1}) == amounts.type_matching({"a": 1}, None) == 0
