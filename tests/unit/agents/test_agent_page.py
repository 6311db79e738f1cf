"""docs/agents.md shows what is really sent."""

import json
import pathlib
import re
from typing import Any

import pytest

from slurm_bridge.families.vela import wire

PAGE = (pathlib.Path(__file__).resolve().parents[3] / "docs" / "agents.md").read_text()
EXAMPLES: list[Any] = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]


def test_the_question_can_be_read() -> None:
    """By an agent."""
    asked = wire.read_request(json.dumps(EXAMPLES[0]).encode())
    assert (asked.pod.metadata.name, asked.nodes_bp) == ("a", 200)
    assert asked.pod.spec.containers


def test_the_answer_can_be_read_and_is_what_is_written() -> None:
    """Field by field."""
    answer = wire.response_of(EXAMPLES[1], "zone-a")
    assert (answer.nodes, answer.accumulated.tolist(), answer.plugins.tolist()) == (["n17"], [140], [2])
    assert json.loads(wire.write_response(answer)) == EXAMPLES[1]


def test_the_status_is_what_is_written() -> None:
    """All three fields."""
    said = EXAMPLES[2]
    assert json.loads(wire.status_body(said["status"], tuple(said["routes"]), said["nodesCount"])) == said


@pytest.mark.parametrize("path", [wire.SAMPLES, wire.STATUS])
def test_the_paths_are_named(path: str) -> None:
    """As they are served."""
    assert path in PAGE
