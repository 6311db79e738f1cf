"""Random runs: whatever goes wrong, no promise is broken meanwhile, and in the end everything is as users wanted it.

pytest tests/simulation --runs 2000      so many runs
pytest tests/simulation --seed 1234      one of them again; a failure prints its journal
"""

import os
import pathlib
import subprocess
import sys

import pytest

from tests.simulation import chaos, daemon
from tests.simulation.observer import Broken
from tests.simulation.play import Play
from tests.simulation.world import World

ROOT = pathlib.Path(__file__).resolve().parents[2]


def play(seed: int, token: pathlib.Path) -> World:
    """Runs differ in what their site has configured; some daemons have no lease to fence them."""
    variant = daemon.Variant(chosen_ids=seed % 5 > 1, hold_after_timeout=seed % 4 == 0, fickle_hook=seed % 3 == 0)
    world = World(seed, token, fenced=variant.chosen_ids)
    try:
        chaos.Chaos(Play(world, daemon.build(variant), fence=seed % 4 != 1)).run()
    except (AssertionError, Broken) as broken:
        pytest.fail(f"seed {seed}: {broken}\n" + "\n".join(world.journal), pytrace=False)
    return world


def test_random_run(seed: int, tmp_path: pathlib.Path) -> None:
    """All promises hold through one random run."""
    play(seed, tmp_path / "token")


@pytest.mark.parametrize("chosen", [3, 5, 7, 11])
def test_same_seed_same_journal(chosen: int, tmp_path: pathlib.Path) -> None:
    """A run can be repeated to the last call: that is what makes a failure worth something."""
    once = play(chosen, tmp_path / "token").journal
    again = play(chosen, tmp_path / "token").journal
    assert once == again
    assert len(once) > 50


#: Prints what two runs did, in a process of its own: of single pods, and of queues with others that are entitled.
_PROGRAM = """
import hashlib, pathlib, sys
from loguru import logger
from tests.simulation import test_chaos, test_chaos_of_rivals
logger.disable("slurm_bridge")
token = pathlib.Path(sys.argv[1])
for journal in (test_chaos.play(3, token).journal, test_chaos_of_rivals.play(7, token).journal):
    print(len(journal), hashlib.sha256("\\n".join(journal).encode()).hexdigest())
"""


def test_another_process_makes_the_same_journals(tmp_path: pathlib.Path) -> None:
    """Nothing depends on how a process happens to order its sets."""
    told = set()
    for hash_seed in ("1", "4711"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-c", _PROGRAM, str(tmp_path / "token")]
        done = subprocess.run(command, env=environment, cwd=ROOT, check=True, capture_output=True, text=True)
        told.add(done.stdout)
    assert len(told) == 1
