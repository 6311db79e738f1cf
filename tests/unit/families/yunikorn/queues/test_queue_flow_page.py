"""The page of the queue core has every way of an event, each with tests that show it."""

import ast
import pathlib
import re

TESTS = pathlib.Path(__file__).resolve().parent
PAGE = TESTS.parents[4] / "docs" / "queue-core.md"

EVENTS = (
    "registration of a manager",
    "termination of a manager",
    "update of a manager",
    "job added",
    "invalid job",
    "job removed",
    "request added",
    "invalid request",
    "request removed",
    "allocation removed by preemption",
    "allocation removed by its manager",
    "node added",
    "invalid node",
    "node removed",
    "proposal accepted",
    "proposal rejected",
    "first configuration",
    "update of queues",
    "name of a partition",
    "job of one name in two partitions",
)


def rows() -> dict[str, list[str]]:
    """Each event of the page, with the names in its last column."""
    section = PAGE.read_text().partition("\n## Flow of events\n")[2].partition("\n## ")[0]
    cells = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| ")]
    return {event.strip(): re.findall(r"`(\w+)`", shown) for event, _, shown in cells[1:]}


def known() -> set[str]:
    """The tests of this room."""
    files = (ast.walk(ast.parse(file.read_text())) for file in TESTS.glob("test_*.py"))
    return {one.name for nodes in files for one in nodes if isinstance(one, ast.FunctionDef)}


def test_every_way_of_an_event_is_on_the_page():
    """In this order."""
    assert tuple(rows()) == EVENTS


def test_every_way_of_an_event_is_shown_by_tests_that_there_are():
    """A test that is renamed is renamed there, too."""
    there = known()
    for event, shown in rows().items():
        assert shown, f"{event}: nothing shows it"
        assert [name for name in shown if name not in there] == [], event
