"""The desk at which the cases of the Slurm suite work, on the pocket servers and on the real ones alike."""

import contextlib
import functools
import pathlib
import secrets
from collections.abc import Callable, Iterator

import pytest
import slurm_desk
import slurm_early
import slurm_line
import slurm_pocket
import slurm_port
import slurm_servers

from slurm_bridge.slurm import dialogue
from tests.direct_line import Line
from tests.direct_pool import DirectPool

HERE = f"{pathlib.Path(__file__).resolve().parent}/"

#: Cases that only look at what became of a job of the session's beginning come late, those that hurt a server last.
LATE = {"ageing": 1, "disruptive": 2}


def pytest_configure(config: pytest.Config) -> None:
    """Name the mark that only this suite has."""
    config.addinivalue_line("markers", "ageing: looks at what became of a job of the session's beginning")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Servers by servers, or the session would begin anew; else stable, in the order of the files."""
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> tuple[bool, str, int]:
    """Other suites' cases stay where they are, before ours."""
    if not str(item.path).startswith(HERE):
        return False, "", 0
    callspec = getattr(item, "callspec", None)
    kind = callspec.params.get("server_kind", "") if callspec else ""
    return True, kind, max((LATE.get(mark.name, 0) for mark in item.iter_markers()), default=0)


@pytest.fixture(scope="session")
def servers(server_kind: str, request: pytest.FixtureRequest) -> Iterator[slurm_servers.Servers]:
    """The slurmrestd that is asked."""
    with contextlib.ExitStack() as stack:
        if server_kind == "real":
            yield slurm_servers.real_servers(request.getfixturevalue("cluster"))
        else:
            yield stack.enter_context(slurm_pocket.serving())


@pytest.fixture(scope="session")
def desk(servers: slurm_servers.Servers) -> Iterator[slurm_desk.Desk]:
    """One name for all jobs of the session, so that nothing of it stays and nothing else is touched."""
    name = f"contract-{secrets.token_hex(4)}"
    session = slurm_desk.Desk(servers=servers, version=slurm_desk.NEWEST, job_name=name, token=servers.operator_token)
    yield session
    slurm_desk.sweep_all(session)


@pytest.fixture(scope="session")
def begin_early(desk: slurm_desk.Desk) -> Iterator[Callable[[], slurm_early.Early]]:
    """Submits them once. A call, because a fixture of the session that fails once fails for all that follow."""
    with contextlib.ExitStack() as stack:
        yield functools.cache(lambda: stack.enter_context(slurm_early.begun(desk.fresh())))


@pytest.fixture
def early(begin_early: Callable[[], slurm_early.Early]) -> slurm_early.Early:
    """Submitted before the first case, looked at by the last."""
    return begin_early()


@pytest.fixture
def slurm(desk: slurm_desk.Desk, request: pytest.FixtureRequest) -> Iterator[slurm_desk.Desk]:
    """The newest API version; everything that the case submits is ended afterwards."""
    request.getfixturevalue("early")  # those begin to age with the first case
    desk.sweep()
    mine = desk.fresh()
    yield mine
    try:
        mine.sweep()
    finally:
        desk.inherit(mine)  # with nobody there to end them, they would hold nodes that later cases wait for


@pytest.fixture(params=slurm_desk.VERSIONS)
def each(slurm: slurm_desk.Desk, request: pytest.FixtureRequest) -> slurm_desk.Desk:
    """Every API version."""
    return slurm.at(request.param)


@pytest.fixture
def token_file(servers: slurm_servers.Servers, tmp_path: pathlib.Path) -> pathlib.Path:
    """The operator's token in a file of this case alone."""
    file = tmp_path / "token"
    file.write_text(servers.operator_token)
    return file


@pytest.fixture(scope="session")
def way(server_kind: str, servers: slurm_servers.Servers) -> dialogue.Connect:
    """How the adapter reaches the server: over HTTP, or straight into the pocket that the desk asks over HTTP."""
    if server_kind != "direct":
        return dialogue.pool
    assert isinstance(servers, slurm_pocket.Pocket)
    line = Line(servers.slurm.handler, clock=servers.clock)
    return lambda _: DirectPool(line)


@pytest.fixture
def port(slurm: slurm_desk.Desk, token_file: pathlib.Path, way: dialogue.Connect) -> Iterator[slurm_port.Port]:
    """The adapter, free to choose the version."""
    with slurm_port.connect(slurm.servers.url, token_file, by=way) as client:
        yield slurm_port.Port(client=client, desk=slurm)


@pytest.fixture
def each_port(each: slurm_desk.Desk, token_file: pathlib.Path, way: dialogue.Connect) -> Iterator[slurm_port.Port]:
    """The adapter, held to one version after the other."""
    with slurm_port.connect(each.servers.url, token_file, (each.version,), by=way) as client:
        yield slurm_port.Port(client=client, desk=each)


@pytest.fixture
def line(tmp_path: pathlib.Path) -> Iterator[slurm_line.Line]:
    """A pocket of this case alone, and faults on the way to it."""
    with slurm_line.breakable(tmp_path) as found:
        yield found
