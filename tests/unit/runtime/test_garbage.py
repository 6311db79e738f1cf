"""A process that serves looks for garbage seldom, and still does."""

import gc
from collections.abc import Iterator

import pytest

from slurm_bridge.runtime import garbage


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_it_is_looked_for_less_often_than_by_default_and_not_never() -> None:
    """Objects that hold each other go sometime."""
    gc.set_threshold(700, 10, 10)
    garbage.collect_seldom()
    assert gc.isenabled()
    assert 700 < gc.get_threshold()[0] < 100_000
    assert all(0 < one <= 100 for one in gc.get_threshold()[1:])
