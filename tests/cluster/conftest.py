"""The cluster under test, which starts with nothing and ends with nothing."""

import pathlib
import shutil
import tempfile
from collections.abc import Callable, Iterator

import pytest
from second_cluster import Cluster


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Callable[[str, float], None]:
    """Print how long something took, also when the test passes."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    writer = request.config.get_terminal_writer()

    def line(what: str, seconds: float) -> None:
        with capture.global_and_fixture_disabled():
            writer.line(f"\n{what}: {seconds:.1f} s")

    return line


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Nothing runs yet; whatever a test starts is stopped in the end."""
    home = pathlib.Path(tempfile.mkdtemp(prefix="cluster-test-")).resolve()
    tested = Cluster(home)
    yield tested
    try:
        tested.do("down")
    finally:
        shutil.rmtree(home)
