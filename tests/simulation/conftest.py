"""How many random runs, or which one; and a world for each case."""

import pathlib
from collections.abc import Callable, Iterator

import loguru
import pytest

from tests.simulation.world import World

DEFAULT_RUNS = 30


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the caller choose the runs."""
    parser.addoption("--runs", type=int, default=DEFAULT_RUNS, help="number of seeded random runs of the simulation")
    parser.addoption("--seed", type=int, default=None, help="replay this run of the simulation alone")
    parser.addoption("--first-seed", type=int, default=1, help="where the seeds of the random runs begin")
    parser.addoption("--every-call", action="store_true", help="kill after reads too, not only after orders")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One case for each random run; those of gangs and of families take longer, and there are fewer."""
    only, first = metafunc.config.getoption("--seed"), metafunc.config.getoption("--first-seed")
    runs = metafunc.config.getoption("--runs")
    for name, share in (
        ("seed", 1),
        ("queue_seed", 1),
        ("gang_seed", 2),
        ("family_seed", 5),
        ("family_gang_seed", 20),
        ("rival_seed", 10),
        ("rival_gang_seed", 20),
        ("rack_seed", 20),
        ("stranger_seed", 5),
    ):
        count = -(-runs // share)
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, range(first, first + count) if only is None else [only])


@pytest.fixture(autouse=True)
def _silence() -> Iterator[None]:
    """The journal says more than the log, and thousands of runs would drown in it."""
    loguru.logger.disable("slurm_bridge")
    yield
    loguru.logger.enable("slurm_bridge")


@pytest.fixture
def make_world(tmp_path: pathlib.Path) -> Callable[[int], World]:
    """Worlds by their seed."""
    return lambda seed: World(seed, tmp_path / "token")
