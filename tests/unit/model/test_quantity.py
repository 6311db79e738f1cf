"""Amounts are read as Kubernetes reads them, exactly, and rounded up only at the end."""

import decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.model import quantity

SUFFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
WHOLE = st.integers(0, 10**6)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0", 0),
        ("1", 1),
        ("500m", Fraction(1, 2)),
        ("1u", Fraction(1, 10**6)),
        ("1n", Fraction(1, 10**9)),
        ("1.5", Fraction(3, 2)),
        ("1.", 1),
        (".5", Fraction(1, 2)),
        ("+2", 2),
        ("-2", -2),
        ("1E", 10**18),
        ("1E2", 100),
        ("1e2", 100),
        ("1e-2", Fraction(1, 100)),
        ("1Ei", 2**60),
        ("0.1Ki", Fraction(1024, 10)),
        ("5P", 5 * 10**15),
    ],
)
def test_every_notation_of_kubernetes_is_read_exactly(text: str, amount: Fraction | int) -> None:
    """Signs, points at either end, decimal and binary suffixes, exponents."""
    assert quantity.parse(text) == amount


@pytest.mark.parametrize("number", [2, 0.5, 1e16])
def test_plain_json_numbers_are_quantities_too(number: float) -> None:
    """A manifest may say `cpu: 2` without quotes."""
    assert quantity.parse(number) == Fraction(str(number))


@pytest.mark.parametrize(
    "text",
    ["", " 1", "1 ", "abc", "1K", "1ki", "1KI", "1e", "1.2.3", "--1", "1,5", "0x10", "1_000", "\u0661", "1mi", "nan"],
)
def test_anything_else_is_an_error_that_shows_it(text: str) -> None:
    """The message repeats what was written."""
    with pytest.raises(ValueError, match="not a Kubernetes quantity"):
        quantity.parse(text)


@pytest.mark.parametrize("text", ["1e999999999", "9" * 5000, "0." + "1" * 5000])
def test_absurd_texts_cost_nothing(text: str) -> None:
    """Annotations bring text that no server has read: its length is bounded before anything is calculated."""
    with pytest.raises(ValueError, match="not a Kubernetes quantity"):
        quantity.parse(text)


def test_amounts_above_what_kubernetes_keeps_are_lowered_to_it() -> None:
    """As its servers do."""
    assert quantity.parse("1e99") == quantity.parse("8Ei") == 2**63 - 1


@given(WHOLE, st.sampled_from(sorted(SUFFIXES)))
def test_a_suffix_multiplies(number: int, suffix: str) -> None:
    """Whatever the number."""
    assert quantity.parse(f"{number}{suffix}") == number * SUFFIXES[suffix]


@given(st.decimals(min_value=0, max_value=10**9, places=6))
def test_decimals_lose_nothing(number: decimal.Decimal) -> None:
    """No binary fraction comes between."""
    assert quantity.parse(f"{number:f}") == Fraction(number)


@given(st.integers(0, 2**62))
def test_memory_is_rounded_up_and_never_to_nothing(amount: int) -> None:
    """Slurm takes 0 for all memory of a node."""
    mib = quantity.mebibytes(Fraction(amount))
    assert (mib - 1) * quantity.MIB < amount <= mib * quantity.MIB


def test_t03_half_a_mebibyte_is_one() -> None:
    """512Ki must not become 0."""
    assert quantity.mebibytes(quantity.parse("512Ki")) == 1


@pytest.mark.parametrize(("text", "count"), [("1m", 1), ("1", 1), ("1001m", 2), ("0", 0)])
def test_a_part_of_a_thing_takes_the_thing(text: str, count: int) -> None:
    """Slurm counts whole cpus."""
    assert quantity.whole(quantity.parse(text)) == count
