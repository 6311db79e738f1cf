"""The record of the other bridge, and everything that is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.model import marks
from slurm_bridge.takeover import record


def test_a_record_is_read_as_it_was_written() -> None:
    """In the bytes that the other bridge writes."""
    text = record.write(["default/a", "team-a/job-1-x2"])
    assert text == '{"pods":["default/a","team-a/job-1-x2"]}'
    assert record.read(text) == ("default/a", "team-a/job-1-x2")


@pytest.mark.security("input")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "null",
        '{"pods":null}',
        '{"pods":[]}',
        '{"pods":["a"]}',
        '{"pods":["a/b/c"]}',
        '{"pods":["A/b"]}',
        '{"pods":["a/b","a/b"]}',
        '{"pods":["a/b"],"more":1}',
        '{"pods":"a/b"}',
        '[{"pods":["a/b"]}]',
        '{"pods":["a/../b"]}x',
        '{"pods":["../b"]}',
        "[" * 100_000,
        '{"pods":["a/b' + "x" * 300 + '"]}',
    ],
)
def test_what_is_not_exactly_a_record_is_none(text: str) -> None:
    """Another program's text, an odd form, a forged or a huge one."""
    assert record.read(text) is None


@given(st.text() | st.binary().map(lambda raw: raw.decode("latin-1")))
def test_no_text_is_too_odd_to_be_looked_at(text: str) -> None:
    """Reading never fails, and our own records are never taken for theirs."""
    found = record.read(text)
    assert found is None or record.write(found)
    record.resembles(text)
    owner = marks.Owner(cluster=text[:50], kind="Pod", namespace="a", name="b", uid="c")
    assert not record.resembles(marks.write(owner))
