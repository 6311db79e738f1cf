"""The record of the creator of a workload."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.model import creator
from slurm_bridge.model.creator import Creator


@given(user=st.text(min_size=1, max_size=600), groups=st.lists(st.text(max_size=300), max_size=40))
def test_a_record_is_read_as_it_was_written(user: str, groups: list[str]) -> None:
    """Groups that do not fit are missing at the end; a name that cannot be shown is not recorded."""
    text = creator.write(user, groups)
    assert len(text.encode()) <= creator.MOST_BYTES
    found = creator.read(text)
    if found is None:
        assert text == ""
        assert len(user) > creator.MOST_OF_NAME or not user.isprintable()
    else:
        assert (found.user, list(found.groups)) == (user, groups[: len(found.groups)])


@pytest.mark.parametrize(
    "text",
    [None, "", "alice", "{}", '{"user":""}', '{"user":7}', '{"user":"a","groups":"b"}', '{"user":"a","admin":true}'],
)
def test_any_other_text_names_no_user(text: str | None) -> None:
    """It is no record."""
    assert creator.read(text) is None


def test_a_long_text_is_not_read() -> None:
    """A user may write any annotation where no webhook refuses it."""
    assert creator.read('{"user":"alice","groups":[' + '"g",' * 2000 + '"g"]}') is None
    assert creator.read('{"user":"alice"}') == Creator(user="alice")
