"""One browser, and one crowded daemon, for all cases."""

import pathlib
from collections.abc import Iterator

import pytest

from tests.browser import driver
from tests.browser.crowded_world import crowded
from tests.browser.driver import Browser
from tests.component.daemon.running import Running

PROJECT = pathlib.Path(__file__).resolve().parents[2]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where the pictures go."""
    default = PROJECT / "build" / "browser"
    parser.addoption("--pictures", type=pathlib.Path, default=default, help="the folder of the pictures of pages")


@pytest.fixture(scope="session")
def pictures(request: pytest.FixtureRequest) -> pathlib.Path:
    """The folder."""
    return request.config.getoption("--pictures")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """One process for all cases."""
    with driver.opened() as made:
        yield made


@pytest.fixture(scope="session")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """With two thousand workloads."""
    with crowded(tmp_path_factory.mktemp("crowded")) as made:
        yield made


@pytest.fixture(scope="session")
def home(daemon: Running) -> str:
    """The address of the page."""
    return f"http://127.0.0.1:{daemon.daemon.server.port}/ui"


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """With nothing kept of the case before; afterwards the page has complained about nothing."""
    chromium.prefers("light")
    chromium.size(driver.WIDTH, driver.HEIGHT)
    chromium.log()
    yield chromium
    assert chromium.log() == []
