"""Fixtures of the suites that need both real servers and the daemon as a process: end to end, and chaos."""

import contextlib
import os
import pathlib
from collections.abc import Callable, Iterator, Mapping

import pytest

from localcluster.config import Config
from tests.e2e import support_foreign, support_health, support_servers, support_world

__all__ = ["foreign", "kube", "open_world", "slurm", "tended", "work"]

OpenWorld = Callable[..., support_world.World]


@pytest.fixture(scope="module", autouse=True)
def tended(cluster: Mapping[str, str]) -> None:
    """No module begins with a dead server."""
    assert cluster["KUBECONFIG"]
    support_health.tend(Config.resolve(os.environ))


@pytest.fixture(scope="session")
def kube(cluster: Mapping[str, str]) -> Iterator[support_servers.Kubernetes]:
    """The API server, as its administrator."""
    assert cluster["KUBECONFIG"]
    with contextlib.closing(support_servers.Kubernetes(Config.resolve(os.environ))) as asked:
        yield asked


@pytest.fixture(scope="session")
def slurm(cluster: Mapping[str, str]) -> support_servers.Slurm:
    """Slurm, as its administrator."""
    return support_servers.Slurm(cluster)


@pytest.fixture(scope="session")
def work(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Where daemons have their configuration and write their logs."""
    return tmp_path_factory.mktemp("daemons")


@pytest.fixture(scope="module")
def open_world(
    cluster: Mapping[str, str],
    kube: support_servers.Kubernetes,
    slurm: support_servers.Slurm,
    work: pathlib.Path,
) -> Iterator[OpenWorld]:
    """Make a namespace and a daemon of the caller's settings for it, both for this module alone."""
    with support_world.worlds(cluster, kube, slurm, work) as make:
        yield make


@pytest.fixture(scope="module")
def foreign(slurm: support_servers.Slurm) -> Iterator[support_foreign.Foreign]:
    """Jobs that are not ours, and that have to be as they were when everything is over."""
    with support_foreign.submitted(slurm) as jobs:
        yield jobs
