"""Orders of many threads: alone at once, together while another one is under way."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from slurm_bridge.runtime.batches import Batches
from tests.wait import until

PATIENCE = 5.0


class Counter:
    """Doubles numbers; the first order waits until it is let go."""

    def __init__(self, numbers: int) -> None:
        self.orders: list[list[int]] = []
        self.time = 0.0
        self.failure: Exception | None = None
        self._begun, self._go = threading.Event(), threading.Event()
        self.batches: Batches[int, str] = Batches(
            self._give, lambda key: f"late {key}", lambda: self.time, patience=PATIENCE
        )
        self._pool = ThreadPoolExecutor(numbers)

    def _give(self, keys: Sequence[int]) -> Mapping[int, str]:
        self.orders.append(list(keys))
        if keys == [0]:
            self._begun.set()
            assert self._go.wait(10)
        elif self.failure is not None:
            raise self.failure
        return {key: f"did {key}" for key in keys}

    def while_busy(self, keys: Sequence[int], then: Callable[[], None] = lambda: None) -> list[Future[str]]:
        """What came of these keys, which come while an order for 0 is under way; `then` happens before it ends."""
        first = self._pool.submit(self.batches.one, 0)
        assert self._begun.wait(10)
        others = [self._pool.submit(self.batches.one, key) for key in keys]
        until(lambda: len(self.batches) == len(keys), "all keys in line")
        then()
        self._go.set()
        assert first.result(10) == "did 0"
        return others


def test_a_lone_order_is_given_at_once() -> None:
    """In the thread of its caller, one by one."""
    counter = Counter(1)
    assert [counter.batches.one(key) for key in (3, 4)] == ["did 3", "did 4"]
    assert counter.orders == [[3], [4]]


def test_what_comes_meanwhile_is_one_order() -> None:
    """And every caller gets the answer for its own key."""
    counter = Counter(9)
    answers = counter.while_busy(range(1, 9))
    assert [one.result(10) for one in answers] == [f"did {key}" for key in range(1, 9)]
    assert [sorted(order) for order in counter.orders] == [[0], list(range(1, 9))]


def test_what_an_order_raises_is_raised_for_each_of_it() -> None:
    """None waits for ever, and the next order is given as if nothing had happened."""
    counter = Counter(4)
    counter.failure = ZeroDivisionError()
    answers = counter.while_busy([1, 2, 3])
    for one in answers:
        with pytest.raises(ZeroDivisionError):
            one.result(10)
    counter.failure = None
    assert counter.batches.one(7) == "did 7"


def test_a_key_without_an_answer_is_an_error_of_its_own() -> None:
    """The callers of the others have theirs."""
    given: Batches[int, int] = Batches(lambda _keys: {}, lambda key: key, lambda: 0.0, patience=PATIENCE)
    with pytest.raises(KeyError):
        given.one(1)


def test_after_too_long_in_line_nothing_is_ordered() -> None:
    """What its caller has looked at before may not be true any more."""
    counter = Counter(3)

    def pass_time() -> None:
        counter.time += PATIENCE + 1

    answers = counter.while_busy([1, 2], pass_time)
    assert [one.result(10) for one in answers] == ["late 1", "late 2"]
    assert counter.orders == [[0]]
