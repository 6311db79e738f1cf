"""Answers of slurmrestd through the client and the mirror."""

import pathlib

import pytest

from tests.fuzz import runner
from tests.fuzz.answers import Answers
from tests.fuzz.runner import Session


@pytest.mark.security("input")
@pytest.mark.timeout(3600)
def test_slurmrestd(session: Session, part: tuple[int, int], tmp_path: pathlib.Path) -> None:
    """An answer that cannot be read is an error: it hides no other row, and no pod is ended because of it."""
    report = runner.run(Answers(tmp_path), session, *part)
    if report:
        pytest.fail(str(report), pytrace=False)
