"""A pytest plugin: writes the failed cases of a run, and what they printed, into a file."""

import json
import pathlib

import pytest

_failed: dict[str, list[str]] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the file's name."""
    parser.addoption("--failed-cases", type=pathlib.Path, required=True, help="where to write the failed cases")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep what a failed step of a case said; under pytest-xdist the controller hears all reports."""
    if report.failed:
        said = [f"{report.when} failed", report.longreprtext, *(text for _, text in report.sections)]
        _failed.setdefault(report.nodeid, []).append("\n".join(said))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write them all at once: a run that was killed leaves no file."""
    if not hasattr(session.config, "workerinput"):
        session.config.getoption("--failed-cases").write_text(
            json.dumps({case: "\n".join(parts) for case, parts in _failed.items()})
        )
