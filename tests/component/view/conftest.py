"""A view of a core that is turned by hand."""

import json
import pathlib
from collections.abc import Mapping
from typing import Any

import pytest

from slurm_bridge.view import rows
from slurm_bridge.view.live_model import EVERYTHING, LiveModel, ViewDelta, ViewScope
from tests.component.scheduler.whole_core import Bridge


class Pictures:
    """Implements live_model.Pictures: no queues."""

    def queues(self) -> Mapping[str, Any] | None:
        return None

    def devices(self) -> frozenset[str]:
        return frozenset({"nvidia.com/gpu"})


class Window:
    """A model, and its steps read as a viewer reads them."""

    def __init__(self, bridge: Bridge, *, most: int = 1000, pictures: Pictures | None = None) -> None:
        self.bridge = bridge
        self.model = LiveModel(bridge.core.context, pictures or Pictures(), most=most, heard=lambda: None)

    def step(self, scope: ViewScope = EVERYTHING) -> Mapping[str, Any]:
        """What has changed, by names; no more than was sent."""
        return read(self.model.step(), scope)

    def full(self, scope: ViewScope = EVERYTHING) -> Mapping[str, Any]:
        """All there is."""
        found: dict[str, Any] = {}
        for piece in self.model.full(scope):
            for name, value in named(piece).items():
                found[name] = [*found.get(name, []), *value] if isinstance(value, list) else value
        return found


def read(delta: ViewDelta, scope: ViewScope) -> Mapping[str, Any]:
    """The rows of a step."""
    return named(delta.text(scope))


def named(text: bytes) -> Mapping[str, Any]:
    """Arrays with names for their places."""
    found = json.loads(text or b"{}")
    for part, row in (
        ("workloads", rows.LiveWorkload),
        ("nodes", rows.LiveNode),
        ("decisions", rows.LiveDecision),
    ):
        if part in found:
            found[part] = [dict(zip(rows.names(row), one, strict=True)) for one in found[part]]
    return found


@pytest.fixture
def bridge(tmp_path: pathlib.Path) -> Bridge:
    """A core between two pocket worlds: four nodes of four cpus, three foreign jobs, a foreign pod."""
    return Bridge(tmp_path)
