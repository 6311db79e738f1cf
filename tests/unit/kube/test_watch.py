import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge import errors
from slurm_bridge.kube import watch


@given(st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b"") + b"\n")), st.data())
def test_any_cut_gives_the_same_lines(lines: list[bytes], data: st.DataObject) -> None:
    """However the bytes arrive, what comes out are whole lines, all of them, in order."""
    whole = b"".join(lines)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(whole)))))
    pieces = [whole[start:end] for start, end in itertools.pairwise([0, *cuts, len(whole)])]
    blocks = list(watch.whole_lines(pieces))
    assert b"".join(blocks) == whole
    assert all(block.endswith(b"\n") for block in blocks)


def test_lines_come_as_soon_as_they_are_whole() -> None:
    """A finished line is not held back until the next one."""
    pieces = iter([b"a", b"b\nc", b"d\n"])
    blocks = watch.whole_lines(pieces)
    assert next(blocks) == b"ab\n"
    assert next(pieces) == b"d\n"


def test_end_within_a_line() -> None:
    """Half a line at the end is a broken stream, after the whole ones were given."""
    blocks = watch.whole_lines([b"a\nb"])
    assert next(blocks) == b"a\n"
    with pytest.raises(errors.BadAnswer, match="within a line"):
        next(blocks)


def test_endless_line() -> None:
    """A line without end is refused before it fills the memory."""
    with pytest.raises(errors.BadAnswer, match="more than 10 bytes"):
        list(watch.whole_lines([b"x" * 6, b"x" * 6], most=10))
