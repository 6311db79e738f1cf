"""Both real servers at once: an administrator, users who apply manifests, and the real daemon.

Every module has a daemon, a scheduler name and a namespace of its own, so that modules may run side by side: `make e2e`
does so, with those that apply manifests as they are, and what disrupts the cluster for others, alone afterwards.
"""

import os

import pytest

from localcluster import gomodules
from localcluster.config import Config
from tests.e2e import support_health
from tests.e2e.support_fixtures import foreign, kube, open_world, slurm, tended, work

__all__ = ["foreign", "kube", "open_world", "slurm", "tended", "work"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """How long administrators work at random on nodes, and on how many; how often devices are handed round."""
    parser.addoption("--node-minutes", type=float, default=0.07, help="minutes of random administrators of nodes")
    parser.addoption("--node-count", type=int, default=8, help="nodes of the random administrators")
    parser.addoption("--device-rounds", type=int, default=5, help="rounds of pods and native jobs with GPUs")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Helm is built before the first case: on a new machine that takes longer than a case may."""
    if not session.config.option.collectonly and any(
        "helm" in getattr(one, "fixturenames", ()) for one in session.items
    ):
        gomodules.tool(Config.resolve(os.environ), "helm")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Servers that had to be started again are shown, whether or not anything failed of it."""
    if story := support_health.told(Config.resolve(os.environ)):
        terminalreporter.write_line(story, yellow=True)
