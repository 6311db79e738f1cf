"""Both pocket servers and the node controller."""

import pathlib

import pytest

from tests.component.nodes.node_world import NodeWorld


@pytest.fixture
def world(tmp_path: pathlib.Path) -> NodeWorld:
    """Kubernetes without nodes, Slurm with those of its configuration."""
    return NodeWorld(tmp_path)
