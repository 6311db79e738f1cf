"""What the users of one namespace write changes nothing for those of another one."""

import pathlib
from typing import Any

import pytest

from slurm_bridge.model import kinds, names
from tests.simulation import chaos, daemon
from tests.simulation.hostile_users import Hostile
from tests.simulation.observer import Broken
from tests.simulation.play import Play
from tests.simulation.world import NAMESPACE, World, spec

BEATS, STEP = 90, 0.5
#: Between these beats the others come, and Slurm starts nothing: there is time to join them.
COME, START = 12, 40


@pytest.mark.security("identity")
def test_no_promise_is_broken_beside_hostile_users(stranger_seed: int, tmp_path: pathlib.Path) -> None:
    """Whatever users of a hostile namespace forge, the promises of this page hold for other namespaces.

    Above all, a job binds pods of its own namespace only.
    """
    seed = stranger_seed
    variant = daemon.Variant(chosen_ids=seed % 5 > 1, hold_after_timeout=seed % 4 == 0, fickle_hook=seed % 3 == 0)
    world = World(seed, tmp_path / "token", fenced=variant.chosen_ids)
    play = Play(world, daemon.build(variant), fence=seed % 4 != 1)
    try:
        chaos.Chaos(play, Hostile(play, seed)).run()
    except (AssertionError, Broken) as broken:
        pytest.fail(f"seed {seed}: {broken}\n" + "\n".join(world.journal), pytrace=False)


@pytest.mark.security("identity")
def test_a_hostile_namespace_changes_nothing_for_another(stranger_seed: int, tmp_path: pathlib.Path) -> None:
    """A JobSet, a Job, a group and a pod are scheduled beside a hostile namespace as without it."""
    alone = _outcome(stranger_seed, tmp_path / "token", hostile=False)
    assert _outcome(stranger_seed, tmp_path / "token", hostile=True) == alone
    assert alone["bound"] == 6


def _outcome(seed: int, token: pathlib.Path, *, hostile: bool) -> dict[str, Any]:
    """How many pods have a node in the end, how many were lost on the way, and what jobs were asked for."""
    world = World(1, token)
    play = Play(world, daemon.build(daemon.Variant(hold_after_timeout=True)))
    strangers = Hostile(play, seed)
    for beat in range(BEATS):
        if beat == COME:
            world.slurm.control.pause()
            _furnish(world)
        if beat == START:
            world.slurm.control.unpause()
        if hostile:
            strangers.act()
        play.step(STEP)
    owned = ((world.observer.owner(job), job) for job in world.slurm.world.jobs.values())
    # How often is another matter: pods of any namespace may take the last bit of room that a job was given.
    asked = {(owner.kind, job.ask.tasks) for owner, job in owned if owner is not None and owner.namespace == NAMESPACE}
    there = [pod for pod in world.observer.pods.values() if pod.key[0] == NAMESPACE and pod.ours]
    bound = sum(bool(pod.node) and not pod.over for pod in there)
    return {"bound": bound, "lost": len(there) - bound, "asked": asked}


def _furnish(world: World) -> None:
    world.pod("single", outcome="run")
    for number in range(2):
        world.pod(f"g{number}", marks={names.GROUP: "g", names.GROUP_SIZE: "2"}, outcome="run")
    world.job("work", completions=1, parallelism=1, outcome="run")
    runs = {"annotations": {"kwok.local/outcome": "run"}}
    template = {"metadata": runs, "spec": {**spec("1"), "restartPolicy": "Never"}}
    job = {"parallelism": 2, "completions": 2, "completionMode": "Indexed", "template": template}
    body = {"replicatedJobs": [{"name": "w", "replicas": 1, "template": {"spec": job}}]}
    world.kube.create(kinds.JOBSETS, {"metadata": {"name": "set", "namespace": NAMESPACE}, "spec": body})
