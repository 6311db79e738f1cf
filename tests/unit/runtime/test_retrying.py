"""Idempotent reads are tried again, a few times; nothing else is."""

import itertools

import pytest

from slurm_bridge import errors
from slurm_bridge.runtime import retrying


class Source:
    """Answers with these, one after the other; an exception is raised."""

    def __init__(self, *answers: object) -> None:
        self._answers = itertools.chain(answers, itertools.repeat("later"))
        self.asked = 0

    def __call__(self) -> object:
        self.asked += 1
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_a_read_is_repeated_until_it_answers() -> None:
    """A passing fault is not seen by the caller, and the pauses are the caller's own."""
    pauses: list[float] = []
    source = Source(errors.Unavailable("down"), errors.Unanswered("late"), "here")
    assert retrying.read(source, retrying.Retries(), pause=pauses.append) == "here"
    assert len(pauses) == 2
    assert all(0 <= pause <= 2 for pause in pauses)


def test_a_lasting_fault_is_raised_as_it_is() -> None:
    """After the last try the caller sees the last error and not a wrapper."""
    source = Source(*[errors.BadAnswer(str(number)) for number in range(5)])
    with pytest.raises(errors.BadAnswer, match="2"):
        retrying.read(source, retrying.Retries(), pause=lambda _: None)
    assert source.asked == 3


@pytest.mark.parametrize("error", [errors.NotAuthenticated("who"), errors.NotFound("gone"), ValueError("bug")])
def test_what_another_try_cannot_change_is_not_tried_again(error: Exception) -> None:
    """A refusal stays a refusal."""
    source = Source(error)
    with pytest.raises(type(error)):
        retrying.read(source, retrying.Retries(), pause=lambda _: None)
    assert source.asked == 1
