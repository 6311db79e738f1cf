"""A memory that forgets in time and never grows too large."""

from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.runtime.caches import AnswerCache


def test_an_answer_is_recalled_until_its_time() -> None:
    """At that very moment it is no answer any more, and takes no room."""
    memory: AnswerCache[str, int] = AnswerCache(most=5)
    memory.keep("a", 1, until=10)
    assert memory.recall("a", now=9.9) == 1
    assert memory.recall("a", now=10) is None
    assert len(memory) == 0


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=60))
def test_it_behaves_as_a_bounded_list_of_last_uses(steps: list[tuple[int, bool]]) -> None:
    """Whatever is asked in whatever order, the three used last are known."""
    memory: AnswerCache[int, int] = AnswerCache(most=3)
    used: list[int] = []
    for key, writes in steps:
        if writes:
            memory.keep(key, key, until=1)
        assert memory.recall(key, now=0) == (key if writes or key in used[-3:] else None)
        if writes or key in used:
            used = [*(other for other in used if other != key), key][-3:]
    assert len(memory) == len(used)
