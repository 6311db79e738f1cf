"""A pytest plugin: through which modules one call goes, and how often it changes from one module into another.

    PYTHONPATH=hack:. pytest -p hops --hops-of slurm_bridge.scheduler.core:Core.schedule_step TEST

For each call of that function during the test one line: how many modules of its package it entered, and how many hops
it took, which are calls of a function of another module, or back into this one. The modules of the longest call follow,
with the visits of each. Comprehensions and module bodies are no visits. Stand-ins for servers and other threads are
not followed.
"""

import collections
import itertools
import os
import pathlib
import sys
import types
from collections.abc import Iterator
from typing import Self

import pytest

#: What the daemon calls as a test has it, and as its users do not.
STAND_INS = "sim"

#: Bodies of modules and classes, comprehensions, lambdas: nothing that a reader looks up.
UNNAMED = "<"


_reports: list[tuple[str, list[collections.Counter[str]]]] = []


class Hops:
    """Follows the calls of one function."""

    def __init__(self, entry: str, root: pathlib.Path) -> None:
        module, _, self._name = entry.partition(":")
        self._root = str(root) + os.sep
        self._package = self._root + module.split(".")[0] + os.sep
        self._apart = self._package + STAND_INS + os.sep
        self._file = str(root.joinpath(*module.split("."))) + ".py"
        self._inside: types.FrameType | None = None
        self.calls: list[collections.Counter[str]] = []

    def __enter__(self) -> Self:
        sys.setprofile(self._followed)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _followed(self, frame: types.FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "return" and frame is self._inside:
            self._inside = None
        if event != "call" or not self._counts(code.co_filename) or code.co_name.startswith(UNNAMED):
            return
        if self._inside is None:
            if code.co_filename == self._file and code.co_qualname == self._name:
                self._inside = frame
                self.calls.append(collections.Counter())
        elif self._caller(frame) != code.co_filename:
            self.calls[-1][code.co_filename.removeprefix(self._root)] += 1

    def _counts(self, file: str) -> bool:
        return file.startswith(self._package) and not file.startswith(self._apart)

    def _caller(self, frame: types.FrameType) -> str:
        """The module of the package from which a call comes; what lies between, such as a library, does not count."""
        above = frame.f_back
        while above is not None and not self._counts(above.f_code.co_filename):
            above = above.f_back
        return above.f_code.co_filename if above is not None else ""


def report(calls: list[collections.Counter[str]]) -> Iterator[str]:
    """A line for each call, for calls alike only one, and the visits of the longest."""
    first = 1
    for (entered, hops), alike in itertools.groupby((len(visits), visits.total()) for visits in calls):
        last = first + len(list(alike)) - 1
        yield f"call {first}{f' to {last}' if last > first else ''}: {entered} modules, {hops} hops"
        first = last + 1
    if longest := max(calls, key=collections.Counter.total, default=None):
        yield "visits of the longest:"
        yield from (f"{count:6} {path}" for path, count in longest.most_common())


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the function's name."""
    parser.addoption(
        "--hops-of", required=True, metavar="MODULE:FUNCTION", help="the function whose calls are followed"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Follow the calls of one test."""
    with Hops(item.config.getoption("--hops-of"), item.config.rootpath) as hops:
        yield
    _reports.append((item.nodeid, [visits for visits in hops.calls if visits]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what was seen of all tests."""
    for test, calls in _reports:
        terminalreporter.section(f"hops in {test}")
        for line in report(calls):
            terminalreporter.line(line)
