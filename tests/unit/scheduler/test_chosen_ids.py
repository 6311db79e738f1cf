"""Chosen job ids: the same for the same attempt, in the range, and different where they have to be."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.model import marks
from slurm_bridge.scheduler.ids import IdRange
from tests.unit.mirror.watching import owner

RANGE = IdRange(first=50_000_000, last=66_999_999)


@given(st.uuids(), st.integers(0, 50))
def test_an_attempt_has_one_id_whoever_asks(uid: object, attempt: int) -> None:
    """What else the record says does not matter: a restart or another replica asks for the same id."""
    mine = owner(str(uid), attempt=attempt)
    theirs = marks.Owner(
        cluster="here", kind="Pod", namespace="x", name="y", uid=str(uid), attempt=attempt, request="r", note="n"
    )
    assert RANGE.choose(mine) == RANGE.choose(theirs)
    assert RANGE.first <= RANGE.choose(mine) <= RANGE.last


def test_another_attempt_pod_or_cluster_has_another_id() -> None:
    """An attempt that failed must not find its own remains in the way."""
    every = [owner(), owner(attempt=1), owner("v"), owner(cluster="there")]
    assert len({RANGE.choose(one) for one in every}) == len(every)


def test_the_whole_range_is_used_evenly() -> None:
    """Else collisions would be far more frequent than they have to be."""
    small = IdRange(first=100, last=109)
    found = Counter(small.choose(owner(f"u{number}")) for number in range(2000))
    assert set(found) == set(range(100, 110))
    assert min(found.values()) > 140


def test_a_range_of_one_is_a_range() -> None:
    """Silly, and correct."""
    assert IdRange(first=7, last=7).choose(owner()) == 7
