"""Several calls at once, and one after the other: the same answers."""

import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.runtime.hands import Hands, in_turn


@pytest.fixture(scope="module")
def hands() -> Iterator[Hands]:
    """Three of them."""
    made = Hands(3)
    yield made
    made.close()


@given(st.lists(st.integers(), max_size=20))
def test_the_answers_are_those_of_one_after_the_other(hands: Hands, things: list[int]) -> None:
    """In the order of what was asked."""
    assert hands.each(lambda one: one * 2, things) == in_turn(lambda one: one * 2, things)


def test_they_work_at_the_same_time(hands: Hands) -> None:
    """Three that wait for each other come to an end."""
    barrier = threading.Barrier(3, timeout=10)
    assert len(hands.each(lambda _: barrier.wait(), [1, 2, 3])) == 3


def test_after_an_exception_nothing_more_is_begun(hands: Hands) -> None:
    """It is raised when all that was begun is over: the others wait until it has happened."""
    begun: list[int] = []
    failed = threading.Event()

    def work(number: int) -> None:
        begun.append(number)
        if number == 0:
            failed.set()
            raise KeyError(number)
        failed.wait(10)

    with pytest.raises(KeyError):
        hands.each(work, list(range(5_000)))
    counted = len(begun)
    assert counted < 5_000
    assert hands.each(lambda one: one, [7]) == [7]
    assert len(begun) == counted


def test_in_turn_stops_at_the_first_exception() -> None:
    """Like a loop."""
    begun: list[int] = []

    def work(number: int) -> None:
        begun.append(number)
        raise KeyError(number)

    with pytest.raises(KeyError):
        in_turn(work, [1, 2, 3])
    assert begun == [1]
