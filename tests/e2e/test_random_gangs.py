"""Groups of every form under random hands, as in the simulation, with real controllers and the real Slurm.

The acts are those of tests/simulation/group_users.py, by seed; beside them the daemon is killed. An observer looks on
all the time, and in the end nothing is left over and no pod waits that need not.
"""

import contextlib
import fractions
import functools
import os
import random
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from slurm_bridge.model import kinds
from tests import wait
from tests.e2e import support_farm, support_observer, support_servers, support_slots, support_world
from tests.e2e.support_farm import Farm
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_world import World
from tests.simulation import observed, servers_at_rest
from tests.simulation.group_users import Act, Company, House
from tests.simulation.stage import Placeholder
from tests.simulation.troupes import KUBELET, Manifest

#: Each takes most of a minute; RANDOM_GANGS=10 for as many as a release wants to see.
SEEDS = range(1, 1 + int(os.environ.get("RANDOM_GANGS", "2")))
ACTS = 24
#: The time between two acts.
PAUSES = (0.1, 0.4, 1.0, 2.0)

#: A Job whose pods failed several times makes the next one after minutes; het jobs start when slurmctld looks again.
REST_SECONDS = 420.0
#: All was in order for so long.
QUIET_LOOKS = 4

#: No act may reach the partitions of others, and no pod is deleted whose job lives.
HOUSE = House(restarts=False, words=(("job-name", "other"), ("job-name", "third")))

GROUPING = (kinds.JOBS, kinds.JOBSETS, kinds.LEADERWORKERSETS, kinds.PODGROUPS, kinds.COSCHEDULING_PODGROUPS)


class RealStage:
    """Both real servers; what is gone already, or there already, is no mistake."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.scheduler = world.daemon.scheduler
        self.told: list[str] = []

    def _path(self, kind: kinds.Kind[Any], name: str = "") -> str:
        version = f"apis/{kind.group}/{_VERSIONS.get(kind.group, kind.versions[0])}" if kind.group else "api/v1"
        return f"/{version}/namespaces/{self._world.namespace}/{kind.plural}{name and '/' + name}"

    def create(self, kind: kinds.Kind[Any], manifest: Manifest) -> None:
        self.note(f"create {kind.kind} {manifest['metadata']['name']}")
        with _raced():
            self._world.kube.create(self._path(kind), manifest)

    def merge(self, kind: kinds.Kind[Any], name: str, changes: Mapping[str, Any]) -> None:
        self.note(f"change {kind.kind} {name}: {changes}")
        with _raced():
            self._world.kube.merge(self._path(kind, name), changes)

    def delete(self, kind: kinds.Kind[Any], name: str, grace: int | None = None) -> None:
        self.note(f"delete {kind.kind} {name} grace={grace}")
        seconds = "" if grace is None else f"&gracePeriodSeconds={grace}"
        self._world.kube.delete(f"{self._path(kind, name)}?propagationPolicy=Background{seconds}")

    def all(self, kind: kinds.Kind[Any]) -> Sequence[Manifest]:
        return sorted(self._world.kube.items(self._path(kind)), key=lambda one: str(one["metadata"]["name"]))

    def fail(self, pod: str) -> None:
        self.merge(
            kinds.PODS, pod, {"metadata": {"annotations": {KUBELET + "outcome": "fail", KUBELET + "seconds": "0"}}}
        )

    def placeholders(self) -> Sequence[Placeholder]:
        found = [one for one in self._world.slurm.parts_of(self._world.daemon.cluster_id) if one.alive]
        return [
            Placeholder(job_id=one.job_id, leader=one.part_of, started="RUNNING" in one.states)
            for one in sorted(found, key=lambda one: one.job_id)
        ]

    def cancel(self, job_id: int) -> None:
        self.note(f"scancel {job_id}")
        self._world.slurm.cancel(job_id)

    def note(self, text: str) -> None:
        self.told.append(text)


_VERSIONS = {"scheduling.k8s.io": "v1alpha2"}


@contextlib.contextmanager
def _raced() -> Iterator[None]:
    """The object went, came or changed in the same moment."""
    try:
        yield
    except support_servers.Refused as refusal:
        if refusal.status not in (404, 409, 422):
            raise


@pytest.fixture(scope="module")
def farm(kube: support_servers.Kubernetes, slurm: support_servers.Slurm) -> Iterator[Farm]:
    """Machines as in the simulation's hall."""
    with support_farm.built(kube, slurm, 4, 0, 4, 0, 4, 0, cpus=10, memory_mib=16_000) as farm:
        yield farm


@pytest.fixture(scope="module")
def world(farm: Farm, open_world: OpenWorld) -> World:
    """A site whose groups need not wait long."""
    return open_world(
        "random", defaults={"partition": farm.partition}, workloads={"incomplete_seconds": 2, "bind_seconds": 20}
    )


def look(world: World, stage: RealStage) -> list[str]:
    """What would be wrong if this were the end."""
    pods, objects = stage.all(kinds.PODS), {kind: stage.all(kind) for kind in GROUPING}
    jobs = {one.job_id: one for one in world.slurm.parts_of(world.daemon.cluster_id) if one.alive}
    placed = [
        servers_at_rest.Placed(job_id=job_id, uid=str(one.owner["uid"]), shares=_shares(job_id, jobs))
        for job_id, one in jobs.items()
        if one.part_of == job_id
    ]
    return servers_at_rest.Picture(stage.scheduler, objects, pods, placed).complaints()


def _shares(job_id: int, jobs: support_slots.Jobs) -> dict[str, observed.Amounts]:
    return {
        node: observed.Amounts(
            cpu=fractions.Fraction(share.cpus),
            memory_mib=fractions.Fraction(share.memory_mib),
            gpus=fractions.Fraction(share.gpus),
        )
        for node, share in support_slots.shares(job_id, jobs).items()
    }


def restart(world: World, dice: random.Random) -> None:
    """kill -9, and a new life after a while."""
    world.daemon.kill()
    threading.Event().wait(dice.choice((0.0, 1.0, 4.0)))
    world.daemon.start()
    world.daemon.await_ready()


def play(world: World, company: Company, dice: random.Random) -> None:
    """So many acts, one after the other."""
    again: tuple[int, Act] = (2, functools.partial(restart, world))
    weights, acts = zip(*company.acts, again, strict=True)
    company.enter(dice)
    for _ in range(ACTS):
        dice.choices(acts, weights)[0](dice)
        threading.Event().wait(dice.choice(PAUSES))


def rest(world: World, company: Company, stage: RealStage) -> None:
    """Until nothing is wrong for a while; users help workloads that are parked."""
    company.settle()
    looks, found = [0], [list[str]()]

    def quiet() -> bool:
        company.help(time.monotonic())
        found[0] = look(world, stage)
        looks[0] = 0 if found[0] else looks[0] + 1
        return looks[0] >= QUIET_LOOKS

    try:
        wait.until(quiet, "rest", REST_SECONDS, every=1.0)
    except AssertionError as error:
        told = [*map(support_world.told, world.pods()), *stage.told, world.daemon.last_words(40)]
        raise AssertionError("\n".join([str(error), *found[0], *told])) from error


@pytest.mark.real
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_gangs(world: World, seed: int) -> None:
    """All promises hold while everything happens at once, and in the end everything is as users wanted it."""
    stage = RealStage(world)
    company = Company(stage, HOUSE, f"s{seed}t")
    with support_observer.observing(world) as observer:
        play(world, company, random.Random(seed))
        rest(world, company, stage)
        company.leave_all()
        world.await_pods("no pods", lambda _: False, 90.0, count=0)
        world.await_nothing_in_slurm()
    # Here users and controllers delete pods all the time, and an observer cannot see which of them did it.
    wrong = {line for line in observer.seen.wrong if not line.startswith("I7")}
    assert wrong == set(), "\n".join(stage.told)
