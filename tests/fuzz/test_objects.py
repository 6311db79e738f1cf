"""Objects of the API server through the codec and the handlers."""

import pytest

from tests.fuzz import runner
from tests.fuzz.objects import Objects
from tests.fuzz.runner import Session


@pytest.mark.security("input")
@pytest.mark.timeout(3600)
def test_objects(session: Session, part: tuple[int, int]) -> None:
    """An object that cannot be read hides no other object, stops no handler, and ends no pod."""
    report = runner.run(Objects(), session, *part)
    if report:
        pytest.fail(str(report), pytrace=False)
