"""Queues under every misfortune: at rest they count exactly what workloads keep, whatever was lost or restarted."""

import pathlib
import random
import zlib
from collections.abc import Mapping
from typing import Any

import pytest

from slurm_bridge.families.yunikorn.hook import Yunikorn
from slurm_bridge.families.yunikorn.manager import Manager
from slurm_bridge.families.yunikorn.members import Stage
from slurm_bridge.families.yunikorn.partitions import YunikornPartitions
from slurm_bridge.families.yunikorn.queues import amounts
from slurm_bridge.model.names import JOB_PREFIX
from slurm_bridge.scheduler.core import Core
from slurm_bridge.scheduler.workload_pods import PLACED
from tests.simulation import chaos, daemon, families, fleet, slurm_users, state_machine
from tests.simulation.broken_promise import Broken
from tests.simulation.play import Play
from tests.simulation.slurm_users import Neighbours
from tests.simulation.world import World

ACTS = 30
SEEDS = range(1, 6)
#: After so many seconds without a storm some pod runs.
CALM = 30
BATCH = {f"{JOB_PREFIX}partition": "batch"}


def site(seed: int, queues: str = "queues") -> daemon.Site:
    """Queues alone or beside others; a hook that dreams holds some of those that were let in."""
    dice = random.Random(f"queues {seed}")
    chosen = dice.choice(((queues,), (queues, "tiers")))
    return daemon.Site(daemon.Variant(chosen_ids=dice.random() < 0.6, families=chosen, dreaming=dice.random() < 0.3))


def leading(play: Play) -> Core:
    """The core of the daemon that leads at the end."""
    brain: Any = next(one.daemon for one in reversed(play.daemons) if one.leads).brain
    core = brain._core
    assert isinstance(core, Core)
    return core


def manager_of(core: Core) -> Manager:
    """What its hook knows."""
    (found,) = managers_of(core)
    return found


def managers_of(core: Core) -> list[Manager]:
    """The same, of each partition that has queues of its own."""
    hooks = [one.hook for one in core.context.config.chain.hooks]
    alone = [one for one in hooks if isinstance(one, Yunikorn)]
    parts = [hook for one in hooks if isinstance(one, YunikornPartitions) for hook in one._hooks.values()]
    return [hook._manager for hook in (*alone, *parts) if hook._manager is not None]


def keeps(core: Core, uid: str) -> bool:
    """The workload has a job, or pods on nodes."""
    crew = core.pod_index.workload(uid)
    return any(one.alive for one in core.context.table.of(uid)) or bool(crew and crew.count(*PLACED))


def look(play: Play) -> None:
    """A pod is counted if and only if it keeps something, and the sum is that of the queues."""
    core = leading(play)
    counted: list[str] = []
    known = {*core.pod_index.roots()}
    for manager in managers_of(core):
        given = {uid: one for uid, one in manager.members.items() if one.stage is Stage.GIVEN}
        counted += given
        known |= manager.members.keys()
        total: dict[str, int] = {}
        for one in given.values():
            amounts.add(total, one.demand.total)
        assert manager.engine.committed(lambda partition, total=total: amounts.same(partition.root.allocated, total))
    assert sorted(uid for uid in known if keeps(core, uid)) == sorted(counted)


class Counted(Play):
    """Looks after every step how much of what Slurm has is ours. What slurmctld forgets may come back by itself."""

    most = 0

    def step(self, seconds: float) -> None:
        super().step(seconds)
        world = self.world
        ours = [job for job in world.slurm.world.jobs.values() if not job.over and world.observer.owner(job)]
        self.most = max(self.most, sum(job.ask.tasks * job.ask.cpus_per_task for job in ours))
        if self.most > families.TIGHT and not world.observer.slurm_forgot:
            raise Broken(f"{families.TIGHT} CPUs may be used, and {self.most} are: {ours}")


def test_no_queue_ever_has_more_in_slurm_than_its_maximum(queue_seed: int, tmp_path: pathlib.Path) -> None:
    """Whatever was lost, killed, ended or deleted, in whatever order a daemon hears of it; and then some pod runs."""
    where = site(queue_seed, "tight queues")
    world = World(queue_seed, tmp_path / "token", fenced=where.variant.chosen_ids, fleet=fleet.WIDE)
    play = Counted(world, daemon.build(where))
    storm = chaos.Chaos(play, Neighbours(play, staying=slurm_users.STAYING))
    try:
        storm.rage()
        storm.heal()
        world.pod("last")
        for _ in range(CALM):
            play.step(1.0)
    except Broken as broken:
        pytest.fail(f"seed {queue_seed}: {broken}\n" + "\n".join(world.journal), pytrace=False)
    assert play.most


@pytest.mark.parametrize("number", SEEDS)
def test_queues_count_what_pods_keep(number: int, tmp_path: pathlib.Path) -> None:
    """Through lost answers, crashes, changes of the leader, and neighbours."""
    where = site(number)
    world = World(number, tmp_path / "token", fenced=where.variant.chosen_ids, fleet=fleet.WIDE)
    play = Play(world, daemon.build(where))
    try:
        chaos.Chaos(play, Neighbours(play, staying=slurm_users.STAYING)).run()
        look(play)
    except (AssertionError, Broken) as broken:
        pytest.fail(f"seed {number}: {broken}\n" + "\n".join(world.journal), pytrace=False)


class Apart(World):
    """Every third pod asks for the other partition of Slurm."""

    def pod(self, name: str, *, marks: Mapping[str, str] | None = None, **wishes: Any) -> None:
        other = zlib.crc32(name.encode()) % 3 == 0
        super().pod(name, marks={**(marks or {}), **(BATCH if other else {})}, **wishes)


@pytest.mark.parametrize("number", SEEDS)
def test_partitions_count_what_pods_keep(number: int, tmp_path: pathlib.Path) -> None:
    """Each pod in the partition that it asks for, and in no other one."""
    where = site(number, "partitions")
    world = Apart(number, tmp_path / "token", fenced=where.variant.chosen_ids, fleet=fleet.APART)
    play = Play(world, daemon.build(where))
    try:
        chaos.Chaos(play, Neighbours(play, staying=slurm_users.STAYING)).run()
        look(play)
        assert len(managers_of(leading(play))) == 2
    except (AssertionError, Broken) as broken:
        pytest.fail(f"seed {number}: {broken}\n" + "\n".join(world.journal), pytrace=False)


@pytest.mark.parametrize("number", SEEDS)
def test_queues_count_what_groups_keep(number: int, tmp_path: pathlib.Path) -> None:
    """Likewise: also of those that lose members while they wait."""
    scene = state_machine.Scene(number, tmp_path / "token", site=site(number))
    try:
        state_machine.random_run(scene, random.Random(number), ACTS)
        look(scene.play)
    except (AssertionError, Broken) as broken:
        pytest.fail(f"seed {number}: {broken}\n" + "\n".join(scene.world.journal), pytrace=False)
