"""Manifests from bytes to the JSON of a submit."""

import pytest

from tests.fuzz import runner
from tests.fuzz.manifests import Manifests
from tests.fuzz.runner import Session


@pytest.mark.security("rights")
@pytest.mark.timeout(3600)
def test_manifests(session: Session, part: tuple[int, int]) -> None:
    """Whatever a user writes is refused with a short message, or becomes a job that this user may have."""
    report = runner.run(Manifests(), session, *part)
    if report:
        pytest.fail(str(report), pytrace=False)
