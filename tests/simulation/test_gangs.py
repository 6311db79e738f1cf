"""Groups of every form, size and shape, and whatever can happen to them: no promise is broken, and all comes right.

pytest tests/simulation/test_gangs.py --runs 1000      so many runs of the state machine, shrunk when one fails
pytest tests/simulation/test_gangs.py --seed 1234      one run by a seed; a failure prints its journal
"""

import pathlib
import random

import hypothesis
import pytest
from hypothesis import stateful

from tests.simulation import machine
from tests.simulation.broken import Broken

#: Acts in one run.
ACTS = 30
#: Parts of one search, so that several processes can share it.
PARTS = 8


def test_random_gangs(seed: int, tmp_path: pathlib.Path) -> None:
    """All promises hold through one random run."""
    play(machine.Scene(seed, tmp_path / "token"), seed, ACTS)


def play(scene: machine.Scene, seed: int, acts: int) -> machine.Scene:
    """A run by this seed."""
    try:
        machine.random_run(scene, random.Random(seed), acts)
    except (AssertionError, Broken) as broken:
        pytest.fail(f"seed {seed}: {broken}\n" + "\n".join(scene.world.journal), pytrace=False)
    return scene


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("part", range(PARTS))
def test_state_machine(part: int, request: pytest.FixtureRequest) -> None:
    """The same, with acts that hypothesis chooses, so that what fails comes down to the few acts that it takes.

    All parts together make as many examples as there are seeded runs.
    """
    runs = request.config.getoption("--runs")
    chosen = hypothesis.seed(part)(type(f"Troupes{part}", (machine.Troupes,), {}))
    settings = hypothesis.settings(
        max_examples=-(-runs // PARTS),
        stateful_step_count=ACTS,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        print_blob=False,
        report_multiple_bugs=False,
    )
    stateful.run_state_machine_as_test(chosen, settings=settings)
