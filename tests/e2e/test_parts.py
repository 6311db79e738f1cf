"""Three daemons share one Kubernetes and one Slurm, each with a part of the namespaces."""

import pathlib
from collections.abc import Iterator, Mapping

import pytest

from slurm_bridge.model import names
from tests import wait
from tests.e2e import support_farm, support_observer, support_parts, support_servers, support_world
from tests.e2e.support_farm import Farm
from tests.e2e.support_parts import Parts

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

EVERY = ("a", "b", "c")
#: What each namespace has as its label; the last one has none.
NAMESPACES = {"one": "a", "two": "b", "three": "c", "plain": ""}
PODS = 3


@pytest.fixture(scope="module")
def farm(kube: support_servers.Kubernetes, slurm: support_servers.Slurm) -> Iterator[Farm]:
    """Nodes of this module alone."""
    with support_farm.built(kube, slurm, 0, 0, 0) as made:
        yield made


@pytest.fixture
def parts(
    cluster: Mapping[str, str],
    kube: support_servers.Kubernetes,
    slurm: support_servers.Slurm,
    work: pathlib.Path,
) -> Iterator[Parts]:
    """All three daemons are ready."""
    folder = work / "parts"
    folder.mkdir()
    with support_parts.opened(cluster, kube, slurm, folder, EVERY, NAMESPACES) as made:
        yield made


def on(farm: Farm) -> dict[str, str]:
    """The annotations of a pod that runs there until it is deleted."""
    return {names.JOB_PREFIX + "partition": farm.partition, **support_world.FOREVER}


def is_settled(parts: Parts) -> bool:
    """Each namespace has its part, the plain one any."""
    labelled = {key: part for key, part in NAMESPACES.items() if part}
    return {key: parts.holder(key) for key in labelled} == labelled and parts.holder("plain") in EVERY


@pytest.mark.security("neighbours")
def test_three_daemons_share_one_cluster_by_namespaces(parts: Parts, farm: Farm) -> None:
    """Of three daemons with parts none touches another part while its daemon is dead, or while a namespace moves."""
    observers = [support_observer.Observer(world) for world in parts.worlds.values()]
    for one in observers:
        one.start()
    try:
        for world in parts.worlds.values():
            world.create_pods("first", PODS, on(farm))
        for world in parts.worlds.values():
            world.await_bound(PODS)
        assert is_settled(parts)
        jobs = {key: support_parts.job_ids(world.pods()) for key, world in parts.worlds.items()}
        assert len(parts.slurm.alive(parts.name)) == PODS * len(NAMESPACES)
        plain = parts.holder("plain")
        parts.await_running(**{part: PODS * (2 if part == plain else 1) for part in EVERY})

        part_without_daemon(parts, farm, observers[list(NAMESPACES).index("two")])
        for key in ("one", "three"):
            bound = support_parts.job_ids(parts.worlds[key].await_bound(PODS + 1))
            assert jobs[key].items() <= bound.items()

        namespace_that_moves(parts, farm, jobs["one"], observers[list(NAMESPACES).index("one")])
    finally:
        seen = [one.end() for one in observers]
    assert not [wrong for one in seen for wrong in one.wrong]
    assert all(one.looks for one in seen)


def part_without_daemon(parts: Parts, farm: Farm, observer: support_observer.Observer) -> None:
    """Its new pods wait and its jobs stay, even that of a pod that is deleted; the others go on."""
    world = parts.worlds["two"]
    before = support_parts.job_ids(world.pods())
    parts.daemons["b"].kill()
    deleted = world.pods()[0]
    observer.expect(deleted)
    world.delete(deleted["metadata"]["name"])
    world.await_gone(deleted["metadata"]["name"])
    for key in ("two", "one", "three"):
        parts.worlds[key].create_pods("late", 1, on(farm))
    for key in ("one", "three"):
        parts.worlds[key].await_bound(PODS + 1)
    parts.await_sweeps("one", "three")
    late = world.pod("late-000")
    assert late is not None
    assert not support_world.is_bound(late)
    assert all(parts.alive(job_id) for job_id in before.values())
    assert parts.holder("two") == "b"

    parts.daemons["b"].start()
    parts.daemons["b"].await_ready()
    world.await_pod("late-000", "a node", support_world.is_bound, 60)
    gone = before.pop(deleted["metadata"]["name"])
    wait.until(lambda: not parts.alive(gone), "end of the job of a deleted pod", 60, every=0.5)
    assert before.items() <= support_parts.job_ids(world.await_bound(PODS)).items()


def namespace_that_moves(parts: Parts, farm: Farm, before: dict[str, int], observer: support_observer.Observer) -> None:
    """From part a to part c: its pods keep their jobs, which the new daemon knows, and the former one does not."""
    world, there = parts.worlds["one"], parts.running("c")
    own = PODS if parts.holder("plain") == "a" else 0
    parts.move("one", "c")
    parts.await_running(a=own, c=there + PODS + 1)
    world.create_pods("moved", 1, on(farm))
    bound = world.await_bound(PODS + 2)
    assert before.items() <= support_parts.job_ids(bound).items()
    parts.daemons["a"].stop()
    for one in bound:
        observer.expect(one)
        world.delete(one["metadata"]["name"])
    jobs = support_parts.job_ids(bound).values()
    wait.until(lambda: not any(map(parts.alive, jobs)), "end of all jobs of the namespace", 60, every=0.5)
    parts.await_running(c=there)
