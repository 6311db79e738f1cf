"""Random runs: whatever goes wrong, no promise is broken meanwhile, and in the end everything is as users wanted it.

pytest tests/simulation --runs 2000      so many runs
pytest tests/simulation --seed 1234      one of them again; a failure prints its journal
"""

import pathlib

import pytest

from tests.simulation import chaos, daemon
from tests.simulation.play import Play
from tests.simulation.world import World


def play(seed: int, token: pathlib.Path) -> World:
    """Runs differ in what their site has configured; some daemons have no lease to fence them."""
    variant = daemon.Variant(chosen_ids=seed % 5 > 1, hold_after_timeout=seed % 4 == 0, fickle_hook=seed % 3 == 0)
    world = World(seed, token, fenced=variant.chosen_ids)
    try:
        chaos.Chaos(Play(world, daemon.build(variant), fence=seed % 4 != 1)).run()
    except AssertionError as broken:
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
