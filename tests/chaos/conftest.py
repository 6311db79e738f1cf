"""Chaos on both real servers: `pytest tests/chaos`, or with --short what every change has to survive."""

import dataclasses
import pathlib
import random
from collections.abc import Iterator, Mapping

import pytest

from tests.chaos import support_size
from tests.e2e import support_servers, support_world
from tests.e2e.support_fixtures import OpenWorld, foreign, kube, slurm, tended, work

__all__ = ["foreign", "kube", "open_world", "slurm", "tended", "work"]


@pytest.fixture
def open_world(
    cluster: Mapping[str, str],
    kube: support_servers.Kubernetes,
    slurm: support_servers.Slurm,
    work: pathlib.Path,
) -> Iterator[OpenWorld]:
    """Make a world for one case alone: its daemon ends before the next server is killed."""
    with support_world.worlds(cluster, kube, slurm, work) as make:
        yield make


def pytest_addoption(parser: pytest.Parser) -> None:
    """How long, and which dice."""
    parser.addoption("--short", action="store_true", help="a few minutes of chaos instead of many")
    parser.addoption("--seed", type=int, default=random.SystemRandom().randrange(10**6), help="of the moments of death")


@pytest.fixture(scope="session")
def size(request: pytest.FixtureRequest) -> support_size.Size:
    """As the caller chose; the seed is printed by pytest_report_header."""
    chosen = support_size.SHORT if request.config.getoption("--short") else support_size.FULL
    return dataclasses.replace(chosen, seed=request.config.getoption("--seed"))


def pytest_report_header(config: pytest.Config) -> str:
    """So that a failure can be had again."""
    return f"chaos: --seed {config.getoption('--seed')}"
