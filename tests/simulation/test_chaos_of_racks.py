"""Groups that require one rack, or prefer one, under every misfortune: they never end up in two, and all find a place.

pytest tests/simulation/test_chaos_of_racks.py --runs 2000      a share of so many seeds
pytest tests/simulation/test_chaos_of_racks.py --seed 1234      one of them again; a failure prints its journal
"""

import pathlib
import random

import pytest

from tests.simulation import daemon, racks, state_machine
from tests.simulation.broken_promise import Broken
from tests.simulation.group_users import House
from tests.simulation.rack_users import Tenants
from tests.simulation.slurm_users import Neighbours
from tests.simulation.stage import PocketStage
from tests.simulation.world import World

ACTS = 30

#: What is beside the racks.
BESIDE: tuple[tuple[str, ...], ...] = ((), (), ("tiers",), ("vela", "tiers"))


def play(seed: int, token: pathlib.Path) -> World:
    """A run by this seed."""
    dice = random.Random(f"racks {seed}")
    chosen = ("racks", *dice.choice(BESIDE))
    variant = daemon.Variant(chosen_ids=dice.random() < 0.6, families=chosen, dreaming=dice.random() < 0.2)
    scene = state_machine.Scene(seed, token, machines=racks.MACHINES, site=daemon.Site(variant))
    scene.company = Tenants(PocketStage(scene.play), House(), scene.world.observer.racks)
    scene.guests = (Neighbours(scene.play),)[: dice.randint(0, 1)]
    try:
        state_machine.random_run(scene, random.Random(seed), ACTS)
    except (AssertionError, Broken) as broken:
        pytest.fail(f"seed {seed}: {broken}\n" + "\n".join(scene.world.journal), pytrace=False)
    return scene.world


def test_random_gangs(rack_seed: int, tmp_path: pathlib.Path) -> None:
    """All promises hold through one random run."""
    play(rack_seed, tmp_path / "token")
