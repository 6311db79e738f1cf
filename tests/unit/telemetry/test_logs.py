"""Lines are for people or for machines, and tracebacks tell no values."""

import io
import json
from collections.abc import Iterator

import pytest
from loguru import logger

from slurm_bridge.telemetry import logs


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    yield
    logger.remove()


@pytest.mark.parametrize(("verbosity", "shown"), [(0, "i"), (3, "i"), (4, "di"), (6, "di"), (7, "tdi"), (10, "tdi")])
def test_verbosity_opens_the_levels(verbosity: int, shown: str) -> None:
    """4 shows DEBUG, 7 shows TRACE."""
    sink = io.StringIO()
    logs.configure(verbosity=verbosity, sink=sink)
    logger.trace("line-t")
    logger.debug("line-d")
    logger.info("line-i")
    assert [letter for letter in "tdi" if f"line-{letter}" in sink.getvalue()] == list(shown)


@pytest.mark.parametrize(("verbosity", "told"), [(0, False), (7, False), (9, False), (10, True)])
def test_it_is_known_whether_anybody_reads_of_every_node(verbosity: int, *, told: bool) -> None:
    """What only these lines would show is not worked out otherwise."""
    logs.configure(verbosity=verbosity, sink=io.StringIO())
    assert logs.every_node() is told


def test_json_lines_carry_the_bound_context() -> None:
    """A machine finds the workload without parsing prose."""
    sink = io.StringIO()
    logs.configure(as_json=True, sink=sink)
    logger.bind(workload="Pod/team/train").info("submitted")
    record = json.loads(sink.getvalue())["record"]
    assert record["extra"] == {"workload": "Pod/team/train"}


def test_a_traceback_shows_no_value_of_a_variable() -> None:
    """A token in a local variable stays there."""
    sink = io.StringIO()
    logs.configure(sink=sink)
    token = "very-secret-value"
    try:
        _fail(token)
    except ValueError:
        logger.exception("failed")
    assert "failed" in sink.getvalue()
    assert token not in sink.getvalue()


def _fail(token: str) -> None:
    raise ValueError(f"{len(token)} letters were not enough")
