"""How many cases, of which seed, or which one again.

pytest tests/fuzz                                        a short form, which every run of the tests includes
pytest tests/fuzz --cases 20000                          the long form: make fuzz
pytest tests/fuzz -k manifests --fuzz-seed 7 --case 42   one case alone
"""

from collections.abc import Iterator

import pytest

from tests.fuzz import recorded_core
from tests.fuzz.runner import MOST_SECONDS, Session

SHORT = 100
#: The short form runs beside all other tests: there a step may take so many times as long as it should.
ROOM = 10
#: So many cases of one target are one test: so that several processes share them.
SHARD = 2500


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the caller choose the cases."""
    parser.addoption("--cases", type=int, default=SHORT, help="cases of each target of the fuzz suite")
    parser.addoption("--fuzz-seed", type=int, default=1, help="the seed of the fuzz suite's cases")
    parser.addoption("--case", type=int, default=None, help="this case of the fuzz suite alone")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each part."""
    if "part" in metafunc.fixturenames:
        only, cases = metafunc.config.getoption("--case"), metafunc.config.getoption("--cases")
        parts = max(1, -(-cases // SHARD)) if only is None else 1
        metafunc.parametrize("part", [(number, parts) for number in range(parts)], ids=lambda part: f"part{part[0]}")


def pytest_report_header(config: pytest.Config) -> str:
    """What has to be known to run the same again."""
    return f"fuzz: {config.getoption('--cases')} cases of seed {config.getoption('--fuzz-seed')}"


@pytest.fixture
def session(request: pytest.FixtureRequest) -> Session:
    """Which cases."""
    option = request.config.getoption
    cases, only = option("--cases"), option("--case")
    room = ROOM if cases <= SHORT and only is None else 1
    return Session(seed=option("--fuzz-seed"), cases=cases, only=only, most_seconds=room * MOST_SECONDS)


@pytest.fixture(autouse=True)
def _listen() -> Iterator[None]:
    """What the core catches and logs is a finding; nothing is printed."""
    recorded_core.ERRORS.listen()
    yield
    recorded_core.ERRORS.leave()
