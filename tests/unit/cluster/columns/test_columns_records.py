"""Records that never change: a few replaced at a time, everything else shared."""

import hypothesis
import pytest
from hypothesis import strategies as st

from slurm_bridge.cluster.columns.records import Records

_lengths = st.sampled_from([0, 1, 5, 127, 128, 129, 256, 300])


@hypothesis.given(
    _lengths, st.lists(st.tuples(_lengths, st.dictionaries(st.integers(0, 299), st.integers())), max_size=5)
)
def test_are_what_a_list_would_be(length: int, steps: list[tuple[int, dict[int, int]]]) -> None:
    """However often some are replaced, and however long they become; what was there before stays as it was."""
    kept = [(Records.of(range(length)), [*range(length)])]
    for size, changes in steps:
        records, expected = kept[-1]
        inside = {row: value for row, value in changes.items() if row < size}
        listed = [*expected[:size], *[-1] * (size - len(expected))]
        for row, value in inside.items():
            listed[row] = value
        kept.append((records.replaced(inside, size, -1), listed))
    for records, expected in kept:
        assert (list(records), len(records)) == (expected, len(expected))
        assert [records[row] for row in range(-len(expected), len(expected))] == expected + expected
        assert records[1:130:2] == expected[1:130:2]


def test_have_no_row_beyond_the_last() -> None:
    """Nor before the first."""
    for row in (2, -3):
        with pytest.raises(IndexError, match=f"row {row} of 2"):
            Records.of("ab")[row]


def test_share_what_stays() -> None:
    """One change among thousands copies no more than the part that it is in."""
    before = Records.of(range(1000))
    after = before.replaced({500: -1}, 1000, 0)
    parts = zip(before._parts, after._parts, strict=True)
    assert [one is other for one, other in parts].count(False) == 1
