"""When a result is the expected one: the rules that all case files share."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conformance import comparing

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.floats(allow_nan=False))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)),
    max_leaves=10,
)


def same(actual: Any, expected: Any) -> bool:
    """Whether a result passes."""
    return not comparing.differences({"x": actual}, {"x": expected}, "expect")


@given(VALUES)
def test_every_value_is_what_it_is(value: Any) -> None:
    """Comparing anything with itself finds nothing."""
    assert same(value, value)


@given(st.integers(), st.integers())
def test_whole_numbers_are_compared_exactly(one: int, other: int) -> None:
    """A rounding is a defect."""
    assert same(one, other) is (one == other)


@pytest.mark.parametrize(
    ("actual", "expected", "passes"),
    [
        (0.1 + 0.2, 0.3, True),
        (1.0000001, 1.0, False),
        (float("inf"), float("inf"), True),
        (3, 3.0, True),
        (3.5, 3, False),
        (True, 1, False),
        (1, True, False),
        (None, False, False),
        (0, None, False),
        ("1", 1, False),
        ((1, 2), [1, 2], True),
        ([2, 1], [1, 2], False),
        ([1, 2, 3], [1, 2], False),
        ("ab", ["a", "b"], False),
        ({"a": 1, "more": 2}, {"a": 1}, True),
        ({}, {"a": 1}, False),
        (1, {"a": 1}, False),
    ],
)
def test_the_rules_of_comparing(actual: Any, expected: Any, *, passes: bool) -> None:
    """Floats nearly, everything else exactly, lists in order, and more keys in a result are no harm."""
    assert same(actual, expected) is passes


def test_one_of_several_results_is_enough() -> None:
    """Of none, only nothing."""
    assert not comparing.differences({"host": "b"}, {"host_one_of": ["a", "b"]}, "expect")
    assert not comparing.differences({"node": None}, {"node_one_of": []}, "expect")
    assert comparing.differences({"host": "c"}, {"host_one_of": ["a", "b"]}, "expect") == [
        "expect.host_one_of: is 'c', expected one of ['a', 'b']"
    ]
    assert comparing.differences({"node": "a"}, {"node_one_of": []}, "expect")


@pytest.mark.parametrize(
    ("names", "passes"),
    [
        (["a", "b", "c"], True),
        (["b", "a", "d"], True),
        (["a", "c", "b"], False),
        (["a", "b"], False),
        (["a", "a", "c"], False),
        (["a", "b", "c", "d"], False),
    ],
)
def test_tiers_leave_the_order_of_equals_open(names: list[str], *, passes: bool) -> None:
    """First as many of the first group, then of the next, and no more."""
    tiers = [{"from": ["a", "b"], "count": 2}, {"from": ["c", "d"], "count": 1}]
    assert (not comparing.differences({"tiers": names}, {"tiers": tiers}, "expect")) is passes


def test_a_tier_has_no_other_fields() -> None:
    """They would be read by nobody."""
    (told,) = comparing.differences({"tiers": []}, {"tiers": [{"from": [], "count": 0, "colour": 1}]}, "expect")
    assert told == "expect.tiers[0]: has from, count, colour; a tier has 'from' and 'count'"


def test_a_field_that_no_result_has_is_told_with_what_there_is() -> None:
    """A new field of a case must not pass for fulfilled."""
    assert comparing.differences({"fits": True}, {"why": "x"}, "expect") == [
        "expect.why: is not a result that anything gives; there are fits"
    ]


def test_every_difference_is_told_with_its_path() -> None:
    """One run shows all that is wrong with a case."""
    found = comparing.differences({"s": {"a": 1, "b": [1, 2]}}, {"s": {"a": 2, "b": [1, 3]}}, "expect")
    assert found == ["expect.s.a: is 1, expected 2", "expect.s.b[1]: is 2, expected 3"]
