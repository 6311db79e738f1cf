"""What users read about a placeholder: Slurm's word, ours beside it, and nothing twice."""

import dataclasses

import msgspec
import pytest

from slurm_bridge.model.job import BASE_STATES, Phase
from slurm_bridge.scheduler import words
from tests.unit.mirror.watching import gone, placeholder, view


def pending(**fields: object) -> str:
    """What is said of a job that pends."""
    return words.waiting(placeholder(view=view(**fields)))


def test_a_job_that_was_never_read_is_pending_and_no_more() -> None:
    """Nothing is made up."""
    assert words.waiting(placeholder()) == "Slurm job 1 is pending"


def test_slurms_reason_is_explained_where_it_is_known() -> None:
    """The word itself stays, for those who search for it."""
    assert pending(reason="Resources").startswith("Slurm job 1 is pending (Resources: the cluster is full")
    assert pending(reason="SomethingNew") == "Slurm job 1 is pending (SomethingNew)"


@pytest.mark.parametrize("reason", ["", "None"])
def test_no_reason_is_no_text(reason: str) -> None:
    """Slurm writes None for nothing."""
    assert pending(reason=reason) == "Slurm job 1 is pending"


def test_the_estimated_start_is_told_in_universal_time() -> None:
    """A container's own time zone is nobody's."""
    assert pending(start_time=1_700_000_000).endswith(", estimated start 2023-11-14 22:13 UTC")


def test_nodes_that_are_kept_are_named_with_their_end() -> None:
    """A few of them; it is worth a write when they are others."""
    few, many = ("1700000000 n1", "1700000000 n[1-6]")
    one, other, none = (
        dataclasses.replace(known, owner=msgspec.structs.replace(known.owner, reserved=text))
        for known in (placeholder(view=view(reason="Priority")),)
        for text in (few, many, "")
    )
    assert words.waiting(one).endswith("; node n1 is kept for it until 22:13 UTC")
    assert words.waiting(other).endswith("; nodes n1, n2, n3, n4 and 2 more are kept for it until 22:13 UTC")
    assert len({words.key(known) for known in (one, other, none)}) == 3


def test_a_job_that_no_longer_pends_has_no_pending_reason() -> None:
    """The reading may be older than the state."""
    starting = placeholder(words="RUNNING CONFIGURING", view=view(reason="Resources"))
    assert words.waiting(starting) == "Slurm job 1 is starting"


def test_the_estimate_alone_is_no_reason_to_write_again() -> None:
    """Job, phase and reason are."""
    one, later = (placeholder(view=view(reason="Priority", start_time=time)) for time in (5, 50_000))
    other = placeholder(view=view(reason="Resources"))
    assert words.key(one) == words.key(later) != words.key(other)
    assert words.key(placeholder(2)) != words.key(placeholder(1)) != words.key(placeholder(1, words="RUNNING"))


def test_every_end_that_slurm_has_is_in_words() -> None:
    """A state that ends a job and has no sentence would be told as an unknown job."""
    assert set(words.ENDS) == {word for word, phase in BASE_STATES.items() if phase is Phase.ENDED}


@pytest.mark.parametrize(("word", "text"), words.ENDS.items())
def test_an_end_is_told_in_words_and_with_slurms_own(word: str, text: str) -> None:
    """For people and for those who search."""
    ended = placeholder(words=word, view=view(word, reason="AssocLimit"))
    assert words.end_word(ended) == word
    assert words.ended(ended) == f"Slurm job 1 {text} ({word}: AssocLimit)"
    assert words.ended(placeholder(words=word)) == f"Slurm job 1 {text} ({word})"


def test_a_job_that_slurm_forgot_is_told_as_that() -> None:
    """Why it ended nobody can say."""
    assert words.ended(gone(words="")) == "Slurm no longer knows job 1"
