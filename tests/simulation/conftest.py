"""How many random runs, or which one; how a failed one is repeated; and a world for each case."""

import pathlib
from collections.abc import Callable, Generator, Iterator

import loguru
import pytest

from tests.simulation import repeat_command
from tests.simulation.world import World

DEFAULT_RUNS = 30

#: What chooses a random run, and one of how many seeds is taken: those of gangs and of families take longer.
SHARES = {
    "seed": 1,
    "queue_seed": 1,
    "gang_seed": 2,
    "family_seed": 5,
    "family_gang_seed": 20,
    "rival_seed": 10,
    "rival_gang_seed": 20,
    "rack_seed": 20,
    "stranger_seed": 5,
    "crash_seed": 5,
    "matrix_seed": 300,
    "node_seed": 10,
    "claim_seed": 5,
    "part_seed": 3,
}

#: Its seeds begin at 1 in every run of the whole simulation. A seed has 72 cells: too few others were seen to pass in a
#: row to say that not one cell in a thousand can fail. `make storms`, or `--only-seeded`, takes other seeds.
KNOWN_SEEDS = "matrix_seed"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the caller choose the runs."""
    parser.addoption("--runs", type=int, default=DEFAULT_RUNS, help="number of seeded random runs of the simulation")
    parser.addoption("--seed", type=int, default=None, help="replay this run of the simulation alone")
    parser.addoption("--first-seed", type=int, default=1, help="where the seeds of the random runs begin")
    parser.addoption("--only-seeded", action="store_true", help="random runs of the simulation and nothing else")
    parser.addoption("--every-call", action="store_true", help="kill after reads too, not only after orders")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One case for each random run."""
    only, first = metafunc.config.getoption("--seed"), metafunc.config.getoption("--first-seed")
    runs, storms = metafunc.config.getoption("--runs"), metafunc.config.getoption("--only-seeded")
    for name, share in SHARES.items():
        count, begin = -(-runs // share), 1 if name == KNOWN_SEEDS and not storms else first
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, range(begin, begin + count) if only is None else [only])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where only storms are wanted, everything is left out that no seed chooses."""
    if config.getoption("--only-seeded"):
        left_out = [item for item in items if seed_of(item) is None]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure says how to have it again."""
    report = yield
    if report.failed:
        options = repeat_command.Options(
            runs=item.config.getoption("--runs"),
            first=item.config.getoption("--first-seed"),
            every_call=item.config.getoption("--every-call"),
        )
        report.sections.append(("to repeat it", repeat_command.command(item.nodeid, seed_of(item), options)))
    return report


def seed_of(item: pytest.Item) -> int | None:
    """Which random run a case is."""
    chosen = getattr(item, "callspec", None)
    return next((chosen.params[name] for name in SHARES if name in chosen.params), None) if chosen else None


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
