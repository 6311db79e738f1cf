"""Answers of slurmrestd through the client and the mirror."""

import pathlib

import pytest

from tests.fuzz import runner
from tests.fuzz.answers import Answers
from tests.fuzz.runner import Session


@pytest.mark.security("input")
@pytest.mark.timeout(3600)
def test_slurmrestd(session: Session, part: tuple[int, int], tmp_path: pathlib.Path) -> None:
    """A spoiled answer is an error of its own: it hides no other row, and nothing is concluded from it."""
    report = runner.run(Answers(tmp_path), session, *part)
    if report:
        pytest.fail(str(report), pytrace=False)
