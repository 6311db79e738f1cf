"""Both real servers at once: an administrator, users who apply manifests, and the real daemon.

Every module has a daemon, a scheduler name and a namespace of its own, so that modules may run side by side: `make e2e`
does so, with those that apply manifests as they are, and what disrupts the cluster for others, alone afterwards.
"""

import os

import pytest

from localcluster.config import Config
from tests.e2e import support_health
from tests.e2e.support_fixtures import foreign, kube, open_world, slurm, tended, work

__all__ = ["foreign", "kube", "open_world", "slurm", "tended", "work"]

#: These give the account that all daemons share a right without which one of them wants to see it.
_ONE_BY_ONE = {"test_submission.py": "reviews", "test_yunikorn_admin.py": "reviews"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A module is run by one worker, from its beginning to its end."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_ONE_BY_ONE.get(item.path.name, item.path.stem)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Servers that had to be started again are shown, whether or not anything failed of it."""
    if story := support_health.told(Config.resolve(os.environ)):
        terminalreporter.write_line(story, yellow=True)
