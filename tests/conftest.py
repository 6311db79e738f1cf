"""What every suite has: a short and a thorough form, and the local cluster, when one runs."""

import gc
from collections.abc import Mapping

import hypothesis
import pytest

from localcluster import envfile
from tests import examples


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the caller choose the form."""
    parser.addoption(
        "--thorough", action="store_true", help="run cases that take seconds, and try properties on all their examples"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Before any module with a property is read."""
    hypothesis.settings.load_profile(examples.THOROUGH if config.getoption("--thorough") else examples.SHORT)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The short form leaves out what takes seconds, and says so."""
    if not config.getoption("--thorough"):
        for item in items:
            if item.get_closest_marker("thorough"):
                item.add_marker(pytest.mark.skip(reason="takes seconds: make thorough, or pytest --thorough"))


def pytest_collectstart() -> None:
    """Where cases are collected: xdist's controller, which collects none, never comes to the end of it either."""
    gc.disable()


def pytest_collection_finish() -> None:
    """What was collected stays to the end: the collector need not look at it while the cases run."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def cluster() -> Mapping[str, str]:
    """The variables of the running local cluster; a case that asks for it fails where there is none."""
    try:
        return envfile.read()
    except FileNotFoundError as error:
        pytest.fail(str(error), pytrace=False)
