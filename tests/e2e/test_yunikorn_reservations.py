"""Nodes are kept for a large workload on real servers: small ones keep arriving, others want the nodes, daemons die."""

import contextlib
import functools
import pathlib
from collections.abc import Iterator, Mapping

import pytest

from slurm_bridge.model import names
from tests import wait
from tests.e2e import (
    support_families,
    support_farm,
    support_foreign,
    support_groups,
    support_kinds,
    support_observer,
    support_queues,
    support_reservations,
    support_servers,
    support_world,
)
from tests.e2e.support_families import pods
from tests.e2e.support_farm import Farm
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_kinds import Objects
from tests.e2e.support_reservations import Traffic, reservations
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

NODES, CPUS = 3, 4
#: How long a workload waits before nodes are kept for it.
AFTER = 4
SECONDS = 90.0
#: A large workload that is to wait is looked at for as long as one that is to start needs at most.
IN_VAIN = 40.0
KILLS = 20

configured = functools.partial(support_reservations.hooks, reserve_after=AFTER)


@pytest.fixture(scope="module")
def farm(kube: support_servers.Kubernetes, slurm: support_servers.Slurm) -> Iterator[Farm]:
    """Three machines, of which one is left for small pods when two are kept."""
    with support_farm.built(kube, slurm, *[0] * NODES, cpus=CPUS) as made:
        yield made


@pytest.fixture(scope="module")
def opened(farm: Farm, open_world: OpenWorld, kube: support_servers.Kubernetes) -> Iterator[functools.partial[World]]:
    """Worlds on these machines."""
    with support_families.granted(kube, "yunikorn"):
        yield functools.partial(open_world, defaults={"partition": farm.partition})


@contextlib.contextmanager
def gang(world: World, name: str, members: int, cpu: str) -> Iterator[None]:
    """A Job whose pods start together, each on a node of its own, until the end of this."""
    objects, marks = Objects(world), {**support_world.FOREVER, support_queues.QUEUE: "root.all"}
    template = support_kinds.template(world, marks)
    template["spec"]["containers"] = support_world.asks(cpu=cpu, memory="64Mi")
    objects.create("Job", name, support_kinds.job_spec(template, members), {names.ANNOTATION_GANG: "true"})
    try:
        yield
    finally:
        objects.delete("Job", name)
        wait.until(lambda: support_groups.living_of(world, "Job", name) == [], "end of the gang's job", SECONDS)


def placed(world: World, name: str) -> list[Json]:
    """The members of a gang that have nodes."""
    return [one for one in support_kinds.members(world, name) if support_world.is_bound(one)]


def records(world: World) -> list[str]:
    """What owner records of living jobs say of nodes that are kept."""
    alive = world.slurm.alive(world.daemon.cluster_id)
    return [str(one.owner["reserved"]) for one in alive if one.owner.get("reserved")]


def left_behind(world: World) -> object:
    """What is reserved, or recorded as reserved."""
    return reservations(world) or records(world)


@contextlib.contextmanager
def watched(world: World) -> Iterator[tuple[support_observer.Observer, contextlib.ExitStack]]:
    """Until the gangs that come into it are deleted: for a moment after that their jobs live, and nothing is wrong."""
    with contextlib.ExitStack() as gangs, support_observer.observing(world) as observer:
        yield observer, gangs


@pytest.mark.real
@pytest.mark.timeout(240)
def test_a_large_workload_starts_although_small_ones_keep_arriving(opened: functools.partial[World]) -> None:
    """And a native job, however important, does not get a node that is kept; nothing is left when it has started."""
    world = opened("kept", hooks=configured())
    with Traffic(world, "2") as traffic, watched(world) as (observer, gangs):
        wait.until(lambda: traffic.started >= 2 * NODES, "full nodes", SECONDS)
        begun = traffic.started
        gangs.enter_context(gang(world, "large", 2, "3"))
        wait.until(lambda: reservations(world), "reservation", SECONDS, every=0.5)
        (nodes,) = reservations(world).values()
        assert len(nodes) == 2
        with native(world, min(nodes)) as job:
            support_groups.placed(world, "large", 2, SECONDS)
            assert "PENDING" in {one.job_id: one for one in world.slurm.jobs()}[job].states
        assert traffic.started > begun
        wait.until(lambda: not left_behind(world), "end of what was kept", SECONDS)
    assert observer.seen.wrong == set()
    world.await_pods("end of all small pods", small_is_over, 2 * SECONDS)


def small_is_over(one: Json) -> bool:
    """It is none, or has ended."""
    return not one["metadata"]["name"].startswith("s-") or support_world.is_over(one)


def is_told(one: Json) -> bool:
    """Its condition says which nodes are kept for it."""
    return "are kept for it until" in support_families.message(one)


@contextlib.contextmanager
def native(world: World, node: str) -> Iterator[int]:
    """A job of no pod, the first in Slurm's queue, for half of this node."""
    wanted = {"name": "native", "required_nodes": [node], "cpus_per_task": CPUS // 2}
    first = {"partition": world.daemon.settings["defaults"]["partition"], "priority": {"set": True, "number": 10**6}}
    job = world.slurm.submit({**support_foreign.EXTERNAL, **wanted, **first})
    try:
        yield job
    finally:
        world.slurm.cancel(job)


@pytest.mark.real
@pytest.mark.timeout(240)
def test_without_reservations_it_waits_for_as_long_as_they_arrive(opened: functools.partial[World]) -> None:
    """For the time in which it starts with them."""
    world = opened("passed", hooks=configured(reservations=0))
    with Traffic(world, "2") as traffic:
        wait.until(lambda: traffic.started >= 2 * NODES, "full nodes", SECONDS)
        with gang(world, "large", 2, "3"):
            begun = traffic.started
            with pytest.raises(AssertionError, match="large workload"):
                wait.until(lambda: placed(world, "large"), "large workload", IN_VAIN, every=0.5)
            assert traffic.started > begun
            assert reservations(world) == {}


@pytest.mark.real
@pytest.mark.timeout(400)
def test_killed_daemons_neither_double_nor_leave_behind_what_is_kept(opened: functools.partial[World]) -> None:
    """Whenever that is: there is one reservation of the same nodes, one job, and in the end nothing but the pods."""
    world = opened("killed", hooks=configured(reserve_seconds=600))
    fillers = [support_queues.pod(world, f"filler-{number}", "root.all", cpu="2") for number in range(2 * NODES)]
    with watched(world) as (observer, gangs), pods(world, *fillers[1:]) as made:
        world.await_bound(len(made))
        # The last two places are passed on before the eyes of the large one.
        gangs.enter_context(gang(world, "large", 2, "4"))
        wait.until(lambda: support_groups.living_of(world, "Job", "large"), "job of the gang", SECONDS)
        passing = world.create(fillers[0])
        world.await_pod("filler-0", "a node", support_world.is_bound, SECONDS)
        wait.until(lambda: reservations(world), "reservation", SECONDS, every=0.2)
        kept = reservations(world)
        support_groups.awaited(world, "large", 2, is_told, "told")
        for number in range(KILLS):
            world.daemon.kill()
            world.daemon.start()
            if number % 2:
                world.daemon.await_ready()
            assert reservations(world) == kept
        world.daemon.await_ready()
        (job,) = support_groups.living_of(world, "Job", "large")
        assert reservations(world) == kept
        assert len(records(world)) == 1
        world.finish([*made, *passing])
        world.daemon.kill()
        world.daemon.start()
        world.daemon.await_ready()
        support_groups.placed(world, "large", 2, SECONDS)
        assert [one.job_id for one in support_groups.living_of(world, "Job", "large")] == [job.job_id]
        wait.until(lambda: not left_behind(world), "end of what was kept", SECONDS)
    assert observer.seen.wrong == set()


@pytest.mark.real
@pytest.mark.timeout(240)
def test_without_the_right_it_starts_among_ours(opened: functools.partial[World], cluster: Mapping[str, str]) -> None:
    """Others of ours keep away from its nodes, and in Slurm it is the first; the log says once what may be taken."""
    token = pathlib.Path(cluster["SLURM_TOKEN_FILE_USER"])
    with support_reservations.reluctant(cluster["SLURMRESTD_URL"], token) as way:
        world = opened("unable", hooks=configured(), slurm={"url": way.url})
        with Traffic(world, "2") as traffic:
            wait.until(lambda: traffic.started >= 2 * NODES, "full nodes", SECONDS)
            with gang(world, "large", 2, "3"):
                wait.until(lambda: records(world), "record", SECONDS, every=0.5)
                support_groups.placed(world, "large", 2, SECONDS)
                wait.until(lambda: not left_behind(world), "end of what was kept", SECONDS)
        assert 422 in way.refused
        assert world.daemon.log.read_text().count("Slurm reserves no nodes") == 1
        world.daemon.end()
