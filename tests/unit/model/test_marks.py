"""The owner record proves whose a placeholder is; nothing else does."""

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


@pytest.mark.parametrize(
    "text",
    [
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
    """JSON of somebody else in admin_comment never makes a job ours."""
    assert marks.read(text) is None


def test_a_record_that_would_not_fit_is_refused_with_the_workload_named() -> None:
    """Slurm would cut it, and a cut record proves nothing."""
    with pytest.raises(ValueError, match=r"Pod team/train .* 2048 bytes"):
        marks.write(owner(note="x" * 3000))


def test_another_attempt_is_the_same_workload_and_another_uid_is_not() -> None:
    """A pod recreated under the same name is somebody new."""
    assert owner(attempt=2).same_workload(owner())
    assert not owner(uid="u-2").same_workload(owner())
    assert not owner(cluster="west").same_workload(owner())
