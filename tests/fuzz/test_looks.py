"""Looks at hostile pods on large clusters."""

import pytest

from tests.fuzz import runner
from tests.fuzz.looks import Looks
from tests.fuzz.runner import Session

#: A look at ten thousand nodes takes as long as so many cases of the other targets; the short form makes do with less.
SHARE, NODES, SOME_NODES, LONG = 20, 10_000, 1_000, 1_000


@pytest.mark.security("fairness")
@pytest.mark.timeout(7200)
def test_looks(session: Session, part: tuple[int, int]) -> None:
    """No look at a workload takes longer than 50 ms of the scheduler's thread, whatever its pods ask for."""
    long = session.cases >= LONG or session.only is not None
    report = runner.run(Looks(NODES if long else SOME_NODES), session.fewer(SHARE), *part)
    if report:
        pytest.fail(str(report), pytrace=False)
