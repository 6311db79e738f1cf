"""Groups of every form, size and shape, and whatever can happen to them: no promise is broken, and all comes right.

pytest tests/simulation/test_gangs.py --runs 2000      a thousand seeds, and as many runs of the state machine
pytest tests/simulation/test_gangs.py --seed 1234      one of the seeds again; a failure prints its journal

Both choose from the same acts. A run by seed is repeated to the last call, whatever it does, in any process; a run of
the state machine is chosen by hypothesis, which comes down to the few acts that a failure takes.
"""

import pathlib
import random

import hypothesis
import pytest
from hypothesis import stateful

from tests.simulation import state_machine
from tests.simulation.broken_promise import Broken
from tests.simulation.group_users import House

#: Acts in one run.
ACTS = 30
#: Parts of one search, so that several processes can share it.
PARTS = 8

#: A larger house: so many troupes come and go on so many machines.
CROWD, MACHINES = 200, 40
#: So many acts there are for each troupe of the crowd: most of them bring none, or find no room for another one.
ACTS_EACH = 8


def play(scene: state_machine.Scene, seed: int, acts: int, *, troupes: int = 0) -> state_machine.Scene:
    """A run by this seed."""
    try:
        state_machine.random_run(scene, random.Random(seed), acts, troupes=troupes)
    except (AssertionError, Broken) as broken:
        pytest.fail(f"seed {seed}: {broken}\n" + "\n".join(scene.world.journal), pytrace=False)
    return scene


def test_random_gangs(gang_seed: int, tmp_path: pathlib.Path) -> None:
    """All promises hold through one random run."""
    play(state_machine.Scene(gang_seed, tmp_path / "token"), gang_seed, ACTS)


@pytest.mark.timeout(1200)
def test_two_hundred_gangs(tmp_path: pathlib.Path, request: pytest.FixtureRequest) -> None:
    """The same in one long run, with a crowd of them at once; fewer where fewer runs are asked for."""
    crowd = min(CROWD, request.config.getoption("--runs"))
    scene = state_machine.Scene(1, tmp_path / "token", machines=MACHINES, house=House(troupes=50, lasting_cpus=60))
    play(scene, 1, ACTS_EACH * crowd, troupes=crowd)
    assert scene.company.entered >= crowd


def test_same_seed_same_journal(tmp_path: pathlib.Path) -> None:
    """A run can be repeated to the last call."""
    journals = [play(state_machine.Scene(7, tmp_path / "token"), 7, ACTS).world.journal for _ in range(2)]
    assert journals[0] == journals[1]
    assert len(journals[0]) > ACTS


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("part", range(PARTS))
def test_state_machine(part: int, request: pytest.FixtureRequest) -> None:
    """What happens in each run is the choice of hypothesis; all parts together make as many runs as there are seeds."""
    runs = -(-request.config.getoption("--runs") // 2)
    chosen = hypothesis.seed(part)(type(f"Troupes{part}", (state_machine.Troupes,), {}))
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
