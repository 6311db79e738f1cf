"""Pods and gangs with ResourceClaims under every misfortune, while other clients write to their claims.

pytest tests/simulation/test_chaos_of_claims.py --runs 2000      a share of so many seeds
pytest tests/simulation/test_chaos_of_claims.py --seed 1234      one of them again; a failure prints its journal
"""

import dataclasses
import pathlib
import random

import pytest

from tests.simulation import chaos, daemon, fleet
from tests.simulation.broken_promise import Broken
from tests.simulation.claim_rules import ClaimRules
from tests.simulation.claim_users import Claimants
from tests.simulation.play import Play
from tests.simulation.world import World


def play(seed: int, token: pathlib.Path) -> ClaimRules:
    """A run by this seed; in a third of them Slurm says how many GPUs a job has, and no more.

    No hook is hard to please: three nodes have GPUs, and a gang may need two of them.
    """
    dice = random.Random(f"claims {seed}")
    indexed = dice.random() < 0.7
    families = ("devices" if indexed else "any devices",)
    variant = daemon.Variant(
        chosen_ids=dice.random() < 0.6,
        hold_after_timeout=dice.random() < 0.25,
        families=families,
        dreaming=dice.random() < 0.2,
    )
    fence = dice.random() < 0.75
    hybrid = fleet.HYBRID if indexed else dataclasses.replace(fleet.HYBRID, indexed=False)
    world = World(seed, token, fenced=variant.chosen_ids, fleet=hybrid)
    drama, rules = Play(world, daemon.build(variant), fence=fence), ClaimRules(world, fenced=fence)
    try:
        chaos.Chaos(drama, Claimants(drama, rules, strangers=dice.random() < 0.7)).run()
        assert rules.leaked() == []
    except (AssertionError, Broken) as broken:
        pytest.fail(f"seed {seed}: {broken}\n" + "\n".join(world.journal), pytrace=False)
    return rules


def test_random_run(claim_seed: int, tmp_path: pathlib.Path) -> None:
    """All promises hold through one random run."""
    play(claim_seed, tmp_path / "token")
