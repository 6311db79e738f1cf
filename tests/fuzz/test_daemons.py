"""Whole daemons with a hostile namespace."""

import pathlib

import pytest

from tests.fuzz import runner
from tests.fuzz.daemons import Daemons
from tests.fuzz.runner import Session

#: A daemon takes as long as so many cases of the other targets.
SHARE = 160


@pytest.mark.security("identity")
@pytest.mark.timeout(7200)
def test_daemons(session: Session, part: tuple[int, int], tmp_path: pathlib.Path) -> None:
    """Whatever users of one namespace do, no daemon stops, and workloads of another one end as without them."""
    report = runner.run(Daemons(tmp_path), session.fewer(SHARE), *part)
    if report:
        pytest.fail(str(report), pytrace=False)
