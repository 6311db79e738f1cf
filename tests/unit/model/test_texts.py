"""Texts of users are bounded where they are kept, compared or shown."""

import pytest

from slurm_bridge.model import texts
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.translate import limits
from tests.unit.translate.translating import facts, keys, translated


@pytest.mark.security("fairness")
def test_a_message_of_an_obstacle_is_bounded_where_it_is_made() -> None:
    """No message about a pod is longer than 1 KiB, however long the values are that its user wrote."""
    for made in (Wait(reason="A", message="x" * 300_000), Reject(reason="A", message="y" * 300_000)):
        assert len(made.message) == texts.MOST


@pytest.mark.security("fairness")
def test_an_unknown_partition_repeats_neither_all_names_nor_long_ones() -> None:
    """A list of thousands of unknown partitions is refused in a short message that still says which there are."""
    asked = translated(annotations=keys(partition=",".join(f"p{number:05}" for number in range(20_000))))
    refused = limits.settle(asked, facts())
    assert isinstance(refused, Reject)
    assert "and 19992 more does not exist in Slurm, which has debug" in refused.message
    assert len(refused.message) <= texts.MOST


def test_a_digest_tells_long_texts_apart_and_leaves_short_ones() -> None:
    """Short keys stay readable."""
    assert texts.digest("SlurmQueueFull") == "SlurmQueueFull"
    one, other = texts.digest("x" * 1000), texts.digest("x" * 1001)
    assert one != other
    assert len(one) == len(other) == 32


def test_a_list_of_names_is_short() -> None:
    """The first eight, and how many more there are."""
    assert texts.listed("abc") == "a, b, c"
    assert texts.listed("abcdefghij") == "a, b, c, d, e, f, g, h and 2 more"
    assert len(texts.listed(["n" * 5000])) == 64


def test_a_counted_word_is_plural_unless_there_is_one() -> None:
    """None are several."""
    assert [texts.counted(number, "placeholder") for number in (0, 1, 2)] == [
        "0 placeholders",
        "1 placeholder",
        "2 placeholders",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"), [(5, "5s"), (65, "1m 05s"), (3660, "1h 01m"), (90_000, "1d 1h"), (-3, "0s")]
)
def test_spans_are_short(seconds: float, text: str) -> None:
    """Two units at most."""
    assert texts.span(seconds) == text
