"""Which adapter reads a file is settled by the file's name, and an unknown one is no one's."""

import pytest

from tests.conformance import adapters
from tests.conformance.fields import Fields, Malformed


def check(given: Fields, expect: Fields) -> None:
    """A check that nothing can fail."""


def test_further_files_of_a_form_need_no_code() -> None:
    """They are named like the form, and more."""
    known = {"schedule": 1, "schedule_many": 2, "priorities_0_10": 3}
    assert adapters.form_of("schedule", known) == "schedule"
    assert adapters.form_of("schedule-large", known) == "schedule"
    assert adapters.form_of("schedule_many.more", known) == "schedule_many"
    assert adapters.form_of("priorities_0_100", known) is None
    assert adapters.form_of("scheduled", known) is None


def test_two_adapters_for_one_form_are_refused() -> None:
    """Both would believe that they were asked."""
    with pytest.raises(Malformed, match=r"one and other both read a\.yaml"):
        adapters.merged({"one": {"a": check}, "other": {"b": check, "a": check}})


def test_an_unknown_family_or_file_is_told_with_those_that_are_known() -> None:
    """It fails; it is not skipped."""
    with pytest.raises(Malformed, match=r"volcano/a\.yaml: the family volcano is unknown; there are kai, kube"):
        adapters.check("volcano", "a")
    with pytest.raises(Malformed, match=r"kube/gangs\.yaml: no adapter reads it; kube has "):
        adapters.check("kube", "gangs")
