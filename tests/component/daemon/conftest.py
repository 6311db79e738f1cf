"""A core to turn by hand."""

import pathlib

import pytest

from tests.component.scheduler.whole_core import Bridge


@pytest.fixture
def bridge(tmp_path: pathlib.Path) -> Bridge:
    """A core between two pocket worlds, with the shipped settings."""
    return Bridge(tmp_path)
