"""The hook families under every misfortune: tiers and candidates cost time and few updates, and never a pod its place.

pytest tests/simulation/test_chaos_of_families.py --runs 2000      a share of so many seeds
pytest tests/simulation/test_chaos_of_families.py --seed 1234      one of them again; a failure prints its journal
"""

import dataclasses
import pathlib
import random
from collections.abc import Mapping
from typing import Any

import pytest

from slurm_bridge.model import kinds
from tests.simulation import chaos, daemon, families, fleet, slurm_users, state_machine
from tests.simulation.broken_promise import Broken
from tests.simulation.play import Play
from tests.simulation.reloads import Reloads
from tests.simulation.slurm_users import Neighbours
from tests.simulation.world import NAMESPACE, World

SEED = 1

#: Acts in one run with groups.
GANG_ACTS = 30

#: So many pods wait where there is a whole node for each of them in the end.
PODS = 6

#: The attempts after the first one: at most three candidates, or tiers, and then all nodes.
ATTEMPTS = 3


def variant_of(dice: random.Random) -> daemon.Variant:
    """How the site of a run has configured its bridge to begin with."""
    return daemon.Variant(
        chosen_ids=dice.random() < 0.6,
        hold_after_timeout=dice.random() < 0.2,
        fickle_hook=dice.random() < 0.2,
        families=dice.choice(families.CHOICES),
        dreaming=dice.random() < 0.3,
    )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """What is settled before a run begins; in every second one operators change the hooks in the middle of it."""

    variant: daemon.Variant
    fence: bool
    reloads: bool


#: Runs that have failed once, whatever their seeds stand for by now.
KNOWN: Mapping[str, tuple[int, Plot]] = {
    "two daemons that both believe to lead update one job in turn": (
        61,
        Plot(variant=daemon.Variant(families=("kai", "vela", "tiers"), dreaming=True), fence=False, reloads=False),
    )
}


def plot_of(seed: int) -> Plot:
    """Of a run by this seed."""
    dice = random.Random(f"site {seed}")
    return Plot(variant=variant_of(dice), fence=dice.random() < 0.75, reloads=dice.random() < 0.5)


def play(seed: int, token: pathlib.Path, plot: Plot) -> World:
    """A run by this seed."""
    site = daemon.Site(plot.variant)
    world = World(seed, token, fenced=site.variant.chosen_ids, fleet=fleet.WIDE)
    drama = Play(world, daemon.build(site), fence=plot.fence)
    guests = [Neighbours(drama, staying=slurm_users.STAYING), *([Reloads(drama, site)] if plot.reloads else [])]
    try:
        chaos.Chaos(drama, *guests).run()
    except (AssertionError, Broken) as broken:
        pytest.fail(f"seed {seed}: {broken}\n" + "\n".join(world.journal), pytrace=False)
    return world


def play_gangs(seed: int, token: pathlib.Path) -> World:
    """The same with groups in place of single pods."""
    dice = random.Random(f"site of gangs {seed}")
    site = daemon.Site(variant_of(dice))
    scene = state_machine.Scene(seed, token, site=site)
    scene.guests = (Neighbours(scene.play), Reloads(scene.play, site))[: dice.randint(0, 2)]
    try:
        state_machine.random_run(scene, random.Random(seed), GANG_ACTS)
    except (AssertionError, Broken) as broken:
        pytest.fail(f"seed {seed}: {broken}\n" + "\n".join(scene.world.journal), pytrace=False)
    return scene.world


class Crowded:
    """All nodes belong to neighbours, and pods of ours wait for them."""

    def __init__(self, token: pathlib.Path, **variant: Any) -> None:
        self.world = World(SEED, token, fleet=fleet.WIDE)
        self.site = daemon.Site(daemon.Variant(**variant))
        self.play = Play(self.world, daemon.build(self.site))
        self.run(2.0)
        for _ in self.world.fleet.nodes:
            self.world.submit("neighbour", cpus_per_task=2)
            self.world.submit("neighbour", cpus_per_task=2)
        self.world.pass_time(1.0)
        for number in range(PODS):
            self.world.pod(f"p{number}", cpu="3", outcome="run")
        self.run(60.0)

    def run(self, seconds: float) -> None:
        """Let time pass."""
        for _ in range(int(seconds)):
            self.play.step(1.0)

    def jobs(self) -> list[int]:
        """Those that wait."""
        return [job.job_id for job in self.world.ours("PENDING")]

    def leave(self) -> None:
        """The neighbours go home."""
        for job in list(self.world.slurm.world.jobs.values()):
            if job.ask.name == "neighbour" and not job.over:
                self.world.slurm.control.end(job.job_id, "COMPLETED")

    def move_scores(self) -> None:
        """Pods of another scheduler come to one node after the other and go again; all workloads have cause to look."""
        needs = {"requests": {"cpu": "1", "memory": "500Mi"}}
        for number, node in enumerate([*self.world.fleet.nodes] * 2):
            container = {"name": "main", "image": "none", "resources": needs}
            spec = {"nodeName": node, "containers": [container], "terminationGracePeriodSeconds": 0}
            self.world.kube.create(kinds.PODS, {"metadata": {"name": f"other{number}"}, "spec": spec})
            self.world.kube.merge(kinds.NODES, ("", "n1"), {"metadata": {"labels": {"looked-at": str(number)}}})
            self.run(2.0)
            self.world.kube.delete(kinds.PODS, (NAMESPACE, f"other{number}"), grace=0)
            self.run(2.0)


@pytest.mark.parametrize("chosen", families.CHOICES, ids="+".join)
def test_scores_that_move_change_no_job_that_waits(tmp_path: pathlib.Path, chosen: tuple[str, ...]) -> None:
    """A job that waits is changed for its next attempt, and for nothing else; at the end all have their places."""
    crowded = Crowded(tmp_path / "token", families=chosen)
    waiting = crowded.jobs()
    assert len(waiting) == PODS
    crowded.move_scores()
    assert crowded.jobs() == waiting
    updates = crowded.world.updates
    assert not updates.others
    assert max(updates.turns.values(), default=0) <= ATTEMPTS
    crowded.leave()
    crowded.play.run_to_rest()


def test_a_tier_is_written_once_and_left_when_there_are_no_tiers_any_more(tmp_path: pathlib.Path) -> None:
    """However long a job waits for the best nodes, and whichever these would be now."""
    crowded = Crowded(tmp_path / "token", families=("patient tiers",))
    asked = {job.job_id: job.ask.excluded for job in crowded.world.ours("PENDING")}
    assert len(asked) == PODS
    assert all(asked.values())
    crowded.move_scores()
    assert {job.job_id: job.ask.excluded for job in crowded.world.ours("PENDING")} == asked
    updates = crowded.world.updates
    assert not updates.others
    assert not updates.turns
    crowded.site.write(families=())
    updates.configured()
    crowded.leave()
    crowded.play.run_to_rest()


def test_a_family_that_is_switched_on_or_off_keeps_every_job(tmp_path: pathlib.Path) -> None:
    """Each change of the hooks costs a job that waits one update at most, besides the attempts that follow from it."""
    crowded = Crowded(tmp_path / "token")
    waiting = crowded.jobs()
    for number, chosen in enumerate((*families.CHOICES, (), families.CHOICES[-1]), 1):
        crowded.site.write(families=chosen, dreaming=not crowded.site.variant.dreaming)
        crowded.world.updates.configured()
        crowded.run(30.0)
        assert crowded.jobs() == waiting
        assert max(crowded.world.updates.others.values(), default=0) <= number
    crowded.leave()
    crowded.play.run_to_rest()


def test_random_run(family_seed: int, tmp_path: pathlib.Path) -> None:
    """All promises hold through one random run."""
    play(family_seed, tmp_path / "token", plot_of(family_seed))


@pytest.mark.parametrize("name", KNOWN)
def test_known_run(name: str, tmp_path: pathlib.Path) -> None:
    """A run that has failed once fails no more."""
    seed, plot = KNOWN[name]
    play(seed, tmp_path / "token", plot)


def test_random_gangs(family_gang_seed: int, tmp_path: pathlib.Path) -> None:
    """Likewise with groups."""
    play_gangs(family_gang_seed, tmp_path / "token")
