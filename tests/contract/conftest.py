"""What the contract suites share: which servers to ask, where the real ones are, and how many cases ran on each.

A case that takes the fixture `server_kind` runs once per kind of server: "pocket", and "real" (marked `real`). A case
that asks a port also runs on "direct": the same adapter before the same pocket, without a socket between them; one
that needs a watch which stays open is marked `streams`, and left out there. The real ones are asked only with
`--servers real|both` or SLURM_BRIDGE_CONTRACT_REAL=1; their addresses are in the `env` file that `make cluster-up`
writes.
"""

import os
from collections import Counter
from collections.abc import Generator

import pytest

from tests import revival

KINDS = ("pocket", "direct", "real")

#: Who takes one of these asks a port, and not HTTP.
PORTS = frozenset({"port", "each_port", "cluster_port", "callers"})

#: No case was run any more, because a real server was gone for good.
LOST = pytest.StashKey[bool]()

_cases: Counter[str] = Counter()
_seconds: Counter[str] = Counter()
_guard = revival.Guard(revival.of_the_cluster)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the caller choose the servers."""
    default = "both" if os.environ.get("SLURM_BRIDGE_CONTRACT_REAL") == "1" else "pocket"
    parser.addoption(
        "--servers", choices=("pocket", "real", "both"), default=default, help="servers that contract cases ask"
    )
    parser.addoption("--patient", action="store_true", help="also the cases that wait for minutes on real servers")


def pytest_configure(config: pytest.Config) -> None:
    """Name the mark that both port suites may use."""
    config.addinivalue_line("markers", "streams: needs a watch that stays open")
    config.addinivalue_line("markers", "patient: waits for minutes where time cannot be passed")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """A case on real servers finds them well; what that takes is not counted against the time that a case may take."""
    if _kind(item) == "real" and "real" in chosen(item.config):
        try:
            _guard.look()
        except revival.Lost as lost:
            item.config.stash[LOST] = True
            pytest.exit(f"the real servers are lost: {lost}", returncode=pytest.ExitCode.TESTS_FAILED)
    return (yield)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, object, object]:
    """Whoever clears away on servers that are lost fails: that must not cost the summary, which says why."""
    try:
        return (yield)
    except Exception:
        if not session.config.stash.get(LOST, False):
            raise
        return []


def _kind(item: pytest.Item) -> str | None:
    callspec = getattr(item, "callspec", None)
    return callspec.params.get("server_kind") if callspec else None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """On real servers time passes as it does: whoever has it asks for it."""
    real = _kind(item) == "real"
    if real and item.get_closest_marker("patient") and not item.config.getoption("--patient"):
        pytest.skip("waits for minutes on real servers: needs --patient")


def chosen(config: pytest.Config) -> tuple[str, ...]:
    """The kinds of servers that this run asks."""
    asked = str(config.getoption("--servers"))
    return {"both": KINDS, "pocket": ("pocket", "direct")}.get(asked, (asked,))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One run of the case per kind of server; a run of the real ones alone does not mention the pocket ones."""
    if "server_kind" not in metafunc.fixturenames:
        return
    asked = chosen(metafunc.config)
    skip = pytest.mark.skip(reason="asks the local cluster: needs --servers real|both and make cluster-up")
    marks = [pytest.mark.real] if "real" in asked else [pytest.mark.real, skip]
    kinds = [pytest.param("real", marks=marks)]
    if "pocket" in asked:
        kinds.insert(0, pytest.param("pocket"))
    if "direct" in asked and asks_a_port(metafunc):
        kinds.insert(1, pytest.param("direct"))
    metafunc.parametrize("server_kind", kinds, scope="session")


def asks_a_port(metafunc: pytest.Metafunc) -> bool:
    """The case has a port, and does not need its watches to stay open."""
    streams = next(metafunc.definition.iter_markers("streams"), None)
    return streams is None and not PORTS.isdisjoint(metafunc.fixturenames)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Write the kind of server into the report, which travels where the item does not."""
    report = yield
    report.server_kind = _kind(item)
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count cases and time per kind of server; whatever fails on a real one may be that server's fault."""
    kind = getattr(report, "server_kind", None)
    if kind == "real" and report.failed:
        _guard.suspect(f"since {report.nodeid}")
    if kind is None or report.skipped:
        return
    _cases[kind] += report.when == "call"
    _seconds[kind] += report.duration


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say it in one line, and which servers had to be brought back."""
    for story in _guard.stories:
        terminalreporter.write_line(story, yellow=True)
    told = [f"{_cases[kind]} cases on {kind} servers in {_seconds[kind]:.1f} s" for kind in KINDS if _cases[kind]]
    if told:
        terminalreporter.write_line("contract: " + ", ".join(told))
