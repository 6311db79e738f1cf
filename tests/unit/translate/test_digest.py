"""A digest changes exactly when something has to be done about it."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.model.job import Gres, GresPer, JobRequest, Memory, MemoryPer
from slurm_bridge.model.marks import Owner
from slurm_bridge.slurm import fields
from slurm_bridge.translate import digest
from tests.unit.translate.translating import request

OTHER: dict[str, Any] = {
    "name": "other",
    "owner": Owner(cluster="x", kind="Pod", namespace="n", name="n", uid="u", attempt=3),
    "job_id": 7,
    "partition": "p",
    "account": "a",
    "qos": "q",
    "reservation": "r",
    "wckey": "w",
    "licenses": "l:1",
    "constraints": "c",
    "user": "u",
    "group": "g",
    "priority": 5,
    "nice": 5,
    "hold": True,
    "time_limit_minutes": 5,
    "minimum_nodes": 1,
    "maximum_nodes": 2,
    "tasks": 2,
    "cpus_per_task": 2,
    "memory": Memory(mib=512, per=MemoryPer.CPU),
    "gres": (Gres(name="gpu", count=1),),
    "gres_per": GresPer.TASK,
    "exclusive": True,
    "required_nodes": ("a", "b"),
    "excluded_nodes": ("c", "d"),
    "mcs_label": "m",
    "comment": "other",
}


def halves(found: JobRequest) -> tuple[str, str]:
    """What is fixed, and the shape."""
    fixed, shape = digest.digest(found).split(":")
    assert (len(fixed), len(shape)) == (8, 8)
    return fixed, shape


def changed(field: str) -> tuple[bool, bool, bool]:
    """Whether another value of the field changes the fixed half, the shape, the intent."""
    before = request()
    after = dataclasses.replace(before, **{field: OTHER[field]})
    (fixed, shape), (fixed_after, shape_after) = halves(before), halves(after)
    return fixed != fixed_after, shape != shape_after, digest.intent(before, "") != digest.intent(after, "")


def test_every_field_of_a_request_is_in_one_place() -> None:
    """A new field has to be filed, or its changes would go unnoticed."""
    filed = [*digest.IDENTITY, *digest.FIXED, *digest.SHAPE]
    assert sorted(filed) == sorted(field.name for field in dataclasses.fields(JobRequest)) == sorted(OTHER)


def test_what_an_update_does_not_carry_is_fixed() -> None:
    """The adapter's own table says what it carries."""
    nothing = {field.name for field in fields.FIELDS if field.update is fields._nothing}
    assert nothing - {"job_id", "gres_per"} == set(digest.FIXED)


@pytest.mark.parametrize("field", digest.IDENTITY)
def test_whose_job_it_is_changes_no_digest(field: str) -> None:
    """The owner record holds the digest itself."""
    assert changed(field) == (False, False, False)


@pytest.mark.parametrize("field", digest.FIXED)
def test_what_cannot_be_updated_changes_the_first_half(field: str) -> None:
    """A new job has to be submitted."""
    assert changed(field) == (True, False, True)


@pytest.mark.parametrize(
    "field", [field for field in digest.SHAPE if field not in (*digest.NOT_REMOVABLE, *digest.NODES)]
)
def test_what_can_be_updated_changes_the_second_half(field: str) -> None:
    """The job keeps its place in the queue."""
    assert changed(field) == (False, True, True)


@pytest.mark.parametrize("field", digest.NODES)
def test_nodes_are_shape_but_not_intent(field: str) -> None:
    """The cluster changes them, not the user; their order says nothing."""
    assert changed(field) == (False, True, False)
    one, two = (dataclasses.replace(request(), **{field: names}) for names in (("a", "b"), ("b", "a")))
    assert digest.digest(one) == digest.digest(two)


@pytest.mark.parametrize("field", digest.NOT_REMOVABLE)
def test_what_cannot_be_taken_away_again_is_fixed_in_its_absence(field: str) -> None:
    """Another value is an update; none where there was one, or the other way round, is a new job."""
    assert changed(field) == (True, True, True)
    one, two = (dataclasses.replace(request(), **{field: value}) for value in (3, 4))
    assert halves(one)[0] == halves(two)[0]
    assert halves(one)[1] != halves(two)[1]


@given(st.sampled_from(sorted(OTHER)), st.sampled_from(sorted(OTHER)))
def test_equal_requests_have_equal_digests_however_they_came_about(first: str, second: str) -> None:
    """The order of changes leaves no trace."""
    one = dataclasses.replace(dataclasses.replace(request(), **{first: OTHER[first]}), **{second: OTHER[second]})
    two = dataclasses.replace(dataclasses.replace(request(), **{second: OTHER[second]}), **{first: OTHER[first]})
    assert digest.digest(one) == digest.digest(two)
    assert digest.intent(one, "x") == digest.intent(two, "x")


def test_a_digest_is_the_same_in_every_process() -> None:
    """It is kept in the owner record: were this to change, every waiting placeholder would be submitted anew."""
    assert digest.digest(request(None, partition="debug")) == "d4e82417:4fb9ec93"
    assert digest.intent(request(None, partition="debug"), "") == "5e47aaf756a5"


def test_the_users_word_changes_the_intent() -> None:
    """Asking for another try of the same."""
    assert digest.intent(request(), "") != digest.intent(request(), "again")
    assert len(digest.intent(request(), "again")) == 12
