"""The owner record proves whose a placeholder is; nothing else does."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.model import marks

NAME = st.text(min_size=1, max_size=60)
OWNERS = st.builds(
    marks.Owner,
    cluster=NAME,
    kind=NAME,
    namespace=NAME,
    name=NAME,
    uid=NAME,
    members=NAME,
    attempt=st.integers(0, 100),
    note=st.text(max_size=100),
)


def owner(**changes: object) -> marks.Owner:
    """An owner like any other."""
    usual = marks.Owner(cluster="east", kind="Pod", namespace="team", name="train", uid="u-1", attempt=1)
    return msgspec.structs.replace(usual, **changes)


@given(OWNERS)
def test_a_record_reads_back_as_written(record: marks.Owner) -> None:
    """Whatever the names contain, the record survives."""
    assert marks.read(marks.write(record)) == record


@pytest.mark.security("neighbours")
@given(OWNERS)
def test_no_record_is_json(record: marks.Owner) -> None:
    """Another bridge that claims every `admin_comment` in JSON never claims a placeholder of this one."""
    text = marks.write(record)
    assert text.startswith("slurm-bridge/1 ")
    with pytest.raises(ValueError, match="Expecting value"):
        json.loads(text)


@given(OWNERS)
def test_records_of_the_earlier_form_are_understood(record: marks.Owner) -> None:
    """A placeholder that an earlier version has submitted stays ours after an upgrade."""
    before = {"mark": "slurm-bridge/1", "owner": msgspec.to_builtins(record)}
    assert marks.read(json.dumps(before, separators=(",", ":"))) == record


@pytest.mark.parametrize(
    "text",
    [
        "slurm-bridge/1",
        "slurm-bridge/1 ",
        "slurm-bridge/1 {}",
        "slurm-bridge/1 a note",
        'slurm-bridge/2 {"cluster":"c","kind":"Pod","namespace":"n","name":"x","uid":"u"}',
        'slurm-bridge/1{"cluster":"c","kind":"Pod","namespace":"n","name":"x","uid":"u"}',
        ' slurm-bridge/1 {"cluster":"c","kind":"Pod","namespace":"n","name":"x","uid":"u"}',
        'slurm-bridge/1 {"cluster":"c","kind":"Pod","namespace":"n","name":"x","uid":"u","more":1}',
        'slurm-bridge/1 {"cluster":"c","kind":"Pod","namespace":"n","name":"x","uid":"u"} and more',
        '{"cluster":"c","kind":"Pod","namespace":"n","name":"x","uid":"u"}',
        '{"pods":["team/train"]}',
        "",
        "{}",
        "[]",
        "null",
        "a note of an administrator",
        '{"owner":{"cluster":"east"}}',
        '{"mark":"somebody-else/1","owner":{"cluster":"c","kind":"Pod","namespace":"n","name":"x","uid":"u"}}',
        '{"mark":"slurm-bridge/1","owner":{"cluster":"c","kind":"Pod","namespace":"n","name":"x","uid":"u"},"more":1}',
        '{"mark":"slurm-bridge/1","owner":{"cluster":"c","kind":"Pod","namespace":"n","name":"x"}}',
    ],
)
def test_what_merely_looks_similar_is_not_ours(text: str) -> None:
    """JSON of another program in admin_comment never makes a job ours."""
    assert marks.read(text) is None


def test_a_record_that_would_not_fit_is_refused_with_the_workload_named() -> None:
    """Slurm would cut it, and a cut record proves nothing."""
    with pytest.raises(ValueError, match=r"Pod team/train .* 2048 bytes"):
        marks.write(owner(members="x" * 3000))


def test_the_mark_counts_towards_the_size_of_a_record() -> None:
    """The whole text is at most as long as promised."""
    spare = marks.MOST_BYTES - len(marks.write(owner(note="x"))) + 1
    assert len(marks.write(owner(note="x" * spare))) == marks.MOST_BYTES


@pytest.mark.parametrize("letter", ["x", "ü", "\U0001f600", '"', "\n", "\x01"])
def test_a_note_that_does_not_fit_is_cut_off(letter: str) -> None:
    """The job is given back all the same, and says as much of why as there is room for."""
    spare = marks.MOST_BYTES - len(marks.write(owner(members="x"))) + 1
    longest = owner(members="x" * (spare - marks.ROOM_FOR_NOTE), note=letter * 200)
    text = marks.write(longest)
    read = marks.read(text)
    assert read is not None
    assert len(text.encode()) <= marks.MOST_BYTES
    assert read.note == letter * len(read.note) != ""
    with pytest.raises(ValueError, match="2048 bytes"):
        marks.write(owner(members="x" * (spare - marks.ROOM_FOR_NOTE + 1)))


def test_another_attempt_is_the_same_workload_and_another_uid_is_not() -> None:
    """A pod recreated under the same name is another pod."""
    assert owner(attempt=2).same_workload(owner())
    assert not owner(uid="u-2").same_workload(owner())
    assert not owner(cluster="west").same_workload(owner())
