"""A token bucket never gives more than its rate and its burst."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.status.token_bucket import TokenBucket


def test_a_full_bucket_gives_its_burst_and_then_its_rate() -> None:
    """Two at once, then one each half second."""
    bucket = TokenBucket(per_second=2, burst=2, now=0)
    for _ in range(2):
        assert bucket.ready_in(0) == 0
        bucket.take()
    assert bucket.ready_in(0) == pytest.approx(0.5)
    assert bucket.ready_in(0.25) == pytest.approx(0.25)
    assert bucket.ready_in(0.5) == 0


@given(st.lists(st.floats(0, 3), max_size=50))
def test_it_gives_no_more_than_rate_and_burst(pauses: list[float]) -> None:
    """Whatever the times at which somebody asks."""
    bucket, now, taken = TokenBucket(per_second=1, burst=3, now=0), 0.0, 0
    for pause in pauses:
        now += pause
        if bucket.ready_in(now) == 0:
            bucket.take()
            taken += 1
    assert taken <= 3 + now + 0.001
