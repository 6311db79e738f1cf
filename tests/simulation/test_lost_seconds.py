"""A slurmctld that crashes has forgotten the jobs of its last seconds: how soon everything is as it should be again."""

import pathlib

from slurm_bridge.model import kinds
from tests.component.scheduler.whole_core import Bridge
from tests.simulation import fleet
from tests.simulation.world import NAMESPACE, World

#: Two looks of the slowest period, and what follows from them.
SETTLED_SECONDS = 15


def test_newcomers_and_restored_jobs_do_not_wait_for_each_other(crash_seed: int, tmp_path: pathlib.Path) -> None:
    """There is room for all: within seconds every pod has its node and every job runs, and no pod was ended."""
    world = World(crash_seed, tmp_path / "token", fleet=fleet.WIDE)
    bridge, dice = Bridge(tmp_path, world=world), world.dice
    running = [f"early-{number}" for number in range(dice.randint(3, 5))]
    waiting = [f"late-{number}" for number in range(dice.randint(3, 4))]
    for name in running:
        bridge.pod(name, cpu=str(dice.randint(1, 2)))
        bridge.run(dice.choice((0.5, 1.0, 2.0)))
    bridge.until(lambda: all(map(bridge.node_of, running)), 30)
    bridge.slurm.control.pause()
    for name in waiting:
        bridge.pod(name, cpu=str(dice.randint(2, 3)))
    bridge.run(dice.uniform(0.5, 3.0))
    world.crash_slurm(dice.uniform(1.0, 12.0))
    bridge.slurm.control.unpause()
    before, crashed = {name: bridge.node_of(name) for name in running}, bridge.clock.now()
    bridge.until(lambda: settled(bridge, (*running, *waiting)), 60)
    seconds = bridge.clock.now() - crashed
    assert seconds <= SETTLED_SECONDS, f"seed {crash_seed}: {seconds:.1f} s\n" + "\n".join(world.journal)
    assert {name: bridge.node_of(name) for name in running} == before
    assert bridge.deletes() == 0


def settled(bridge: Bridge, pods: tuple[str, ...]) -> bool:
    """Every pod has a node, and the one living job of each holds it."""
    return all(bridge.node_of(name) and len(living := living_jobs(bridge, name)) == 1 and living[0] for name in pods)


def living_jobs(bridge: Bridge, name: str) -> list[bool]:
    """Of a pod, and whether they run."""
    manifest = bridge.kube.get(kinds.PODS, NAMESPACE, name)
    assert manifest is not None, f"{name} was ended"
    return [job.running for job in bridge.jobs(manifest["metadata"]["uid"]) if not job.over]
