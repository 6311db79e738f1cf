"""The sampling queue and its order."""

import threading
from collections.abc import Iterable

import hypothesis
import pytest
from hypothesis import strategies as st

from slurm_bridge.families.vela import sample_order
from slurm_bridge.families.vela.queue import Empty, Entry, SamplingQueue


def queue_of(*entries: Entry[int]) -> SamplingQueue[int]:
    """A queue in which these wait."""
    queue: SamplingQueue[int] = SamplingQueue(sample_order.PrioritySort())
    for entry in entries:
        queue.enqueue(entry)
    return queue


def entry(key: str, priority: int | None = 0, created: int = 0, item: int = 0) -> Entry[int]:
    """One that waits."""
    return Entry(key=key, priority=priority, created=created, item=item)


def emptied(queue: SamplingQueue[int]) -> Iterable[Entry[int]]:
    """Everything that waits, in turn."""
    while len(queue):
        taken = queue.dequeue(seconds=0)
        assert taken is not None
        yield taken


class TestQueue:
    @hypothesis.given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(-2, 2), st.integers(0, 3))))
    def test_gives_the_last_of_each_key_in_the_order_of_the_sort_plugin(self, waiting: list[tuple[str, int, int]]):
        """Whatever was replaced is gone, and the rest is sorted."""
        last = {key: (-priority, created) for key, priority, created in waiting}
        given = list(emptied(queue_of(*(entry(*one) for one in waiting))))
        assert sorted(one.key for one in given) == sorted(last)
        keys = [last[one.key] for one in given]
        assert keys == sorted(keys)

    def test_a_replaced_entry_brings_its_new_item(self):
        """The older one is never given out."""
        queue = queue_of(entry("ns.a", 9, item=1), entry("ns.a", 0, item=2))
        assert [one.item for one in emptied(queue)] == [2]

    def test_equal_entries_come_in_the_order_in_which_they_came(self):
        """First come, first served where nothing else tells them apart."""
        assert [one.key for one in emptied(queue_of(entry("x.b"), entry("x.a")))] == ["x.b", "x.a"]

    def test_an_empty_queue_is_waited_for(self):
        """For so long as one likes, and then it is told."""
        with pytest.raises(Empty):
            queue_of().dequeue(seconds=0)

    def test_who_waits_gets_what_comes(self):
        """From another thread."""
        queue, taken = queue_of(), []
        waiting = threading.Thread(target=lambda: taken.append(queue.dequeue(seconds=30)))
        waiting.start()
        queue.enqueue(entry("ns.a"))
        waiting.join(30)
        assert [one.key for one in taken if one] == ["ns.a"]

    def test_close_frees_who_waits_and_takes_nothing_more(self):
        """None at once, also for those who come later."""
        queue, taken = queue_of(), []
        waiting = threading.Thread(target=lambda: taken.append(queue.dequeue(seconds=30)))
        waiting.start()
        queue.close()
        waiting.join(30)
        queue.enqueue(entry("ns.a"))
        assert taken == [None]
        assert (queue.dequeue(), len(queue)) == (None, 0)


class TestSort:
    def test_age_sort_does_not_look_at_priorities(self):
        """Older first."""
        sort = sample_order.AgeSort()
        assert sort.key(1, "2026-01-01") < sort.key(9, "2026-01-02")

    def test_two_plugins_are_an_error_that_names_both(self):
        """And says what there is."""
        with pytest.raises(ValueError, match="sort plugins PrioritySort and AgeSort: exactly one"):
            sample_order.only("sort", ("PrioritySort", "AgeSort"), sample_order.SORTS)

    def test_none_is_an_error_too(self):
        """There is always exactly one."""
        with pytest.raises(ValueError, match="sort plugins none: exactly one"):
            sample_order.only("sort", (), sample_order.SORTS)

    def test_an_unknown_plugin_is_named(self):
        """With those that are known."""
        with pytest.raises(ValueError, match="'Fastest' is not known; there are PrioritySort, AgeSort"):
            sample_order.only("sort", ("Fastest",), sample_order.SORTS)
