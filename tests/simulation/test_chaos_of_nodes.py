"""Both sides agree about nodes in the end, and nothing of others was changed, whatever happens."""

import pathlib

import pytest

from tests.simulation.node_admins import Broken, NodeAdmins


def test_both_sides_agree_about_nodes(node_seed: int, tmp_path: pathlib.Path) -> None:
    """Administrators of both sides, lost answers, killed processes, a slurmctld that forgets."""
    run = NodeAdmins(node_seed, tmp_path)
    try:
        run.run()
    except (AssertionError, Broken) as broken:
        pytest.fail(f"seed {node_seed}: {broken}\n" + "\n".join(run.journal), pytrace=False)
