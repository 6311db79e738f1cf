"""Both real servers at once: an administrator, users who apply manifests, and the real daemon.

Every module has a daemon, a scheduler name and a namespace of its own, so that modules may run side by side:
`pytest -n 3 --dist loadgroup -m "not disruptive" tests/e2e`, and what disrupts the cluster for others alone afterwards.
"""

import pathlib

import pytest

from tests.e2e.support_fixtures import foreign, kube, open_world, slurm, work

__all__ = ["foreign", "kube", "open_world", "slurm", "work"]

#: These apply manifests as they are, for the same scheduler name in the same namespace: never at the same time.
AS_SHIPPED = {"test_deployed", "test_examples"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever shares a daemon stays with one worker."""
    here = pathlib.Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            group = "as-shipped" if item.path.stem in AS_SHIPPED else item.path.stem
            item.add_marker(pytest.mark.xdist_group(group))
