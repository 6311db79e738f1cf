"""Several daemons on one Slurm: of two Kubernetes clusters, of two schedulers in one cluster, and two of one bridge."""

import dataclasses
import os
import pathlib
import signal
from collections.abc import Iterator, Mapping

import pytest

from slurm_bridge.model import names
from tests import wait
from tests.e2e import (
    support_daemon,
    support_farm,
    support_observer,
    support_second_kubernetes,
    support_servers,
    support_world,
)
from tests.e2e.support_daemon import Daemon
from tests.e2e.support_farm import Farm
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_world import World

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

PODS = 4
#: The rhythm of a daemon that looks for jobs without pods often.
OFTEN = {"mirror": {"sweep_seconds": 2}}
#: A leader that does not renew for so long has lost the lead.
LEASE = {"lease_seconds": 3, "renew_seconds": 2, "retry_seconds": 0.5}


@pytest.fixture(scope="module")
def farm(kube: support_servers.Kubernetes, slurm: support_servers.Slurm) -> Iterator[Farm]:
    """Nodes that only the local cluster has."""
    with support_farm.built(kube, slurm, 0, 0) as made:
        yield made


def on(farm: Farm) -> dict[str, str]:
    """The annotations of a pod that runs there until it is deleted."""
    return {names.JOB_PREFIX + "partition": farm.partition, **support_world.FOREVER}


def stray(world: World) -> int:
    """A job that says that it is of a pod of this daemon, and there is no such pod."""
    record = f'{{"cluster":"{world.daemon.cluster_id}","kind":"Pod","namespace":"none","name":"none","uid":"none"}}'
    return world.slurm.submit(
        {
            "flags": ["EXTERNAL_JOB"],
            "environment": ["PATH=/bin"],
            "current_working_directory": "/",
            "partition": "closed",
            "user_id": "slurm-bridge",
            "admin_comment": f"slurm-bridge/1 {record}",
        }
    )


def await_sweeps(*worlds: World) -> None:
    """Until each daemon has looked through all jobs of Slurm and ended the one that has lost its pod."""
    for world, bait in [(one, stray(one)) for one in worlds]:

        def ended(world: World = world, bait: int = bait) -> bool:
            return not any(one.job_id == bait and one.alive for one in world.slurm.jobs())

        wait.until(ended, f"sweep of {world.daemon}", every=0.5)


@pytest.mark.security("neighbours")
def test_two_kubernetes_clusters_share_one_slurm(
    cluster: Mapping[str, str], work: pathlib.Path, farm: Farm, open_world: OpenWorld, slurm: support_servers.Slurm
) -> None:
    """Pods of the same names in two clusters keep their own jobs, while one daemon dies and its pods are deleted."""
    with support_second_kubernetes.started() as second:
        first = open_world("first", **OFTEN)
        with (
            support_farm.built(second.kube, slurm, 0, 0, ready=True) as others,
            second.world(cluster, slurm, work, first.namespace, **OFTEN) as world,
        ):
            ours = first.create_pods("same", PODS, on(farm))
            theirs = world.create_pods("same", PODS, on(others))
            first.await_bound(PODS)
            bound = world.await_bound(PODS)
            assert {one["spec"]["nodeName"] for one in bound} <= set(others.nodes)
            kept = first.await_placeholders(one["metadata"]["uid"] for one in ours)
            world.await_placeholders(one["metadata"]["uid"] for one in theirs)
            world.daemon.kill()
            for one in theirs:
                world.kube.delete(f"{world.path}/{one['metadata']['name']}?gracePeriodSeconds=0")
            await_sweeps(first)
            assert first.await_placeholders(kept) == kept
            assert len(slurm.alive(world.daemon.cluster_id)) == PODS
            world.daemon.start()
            world.await_nothing_in_slurm()
            await_sweeps(first, world)
            assert first.await_placeholders(kept) == kept
            assert all(support_world.is_bound(one) and not support_world.is_over(one) for one in first.pods())


@pytest.mark.security("neighbours")
def test_two_schedulers_share_one_cluster(farm: Farm, open_world: OpenWorld) -> None:
    """Two bridges have pods in one namespace: the death of one, and of its pods, changes nothing of the other."""
    first, second = open_world("one", **OFTEN), open_world("two", **OFTEN)
    beside = dataclasses.replace(second, namespace=first.namespace)
    ours = first.create_pods("one", PODS, on(farm))
    theirs = beside.create_pods("two", PODS, on(farm))
    first.await_bound(2 * PODS)
    kept = first.await_placeholders(one["metadata"]["uid"] for one in ours)
    beside.await_placeholders(one["metadata"]["uid"] for one in theirs)
    second.daemon.kill()
    await_sweeps(first)
    second.daemon.start()
    second.daemon.await_ready()
    for one in theirs:
        beside.delete(one["metadata"]["name"])
    beside.await_nothing_in_slurm()
    await_sweeps(first, second)
    assert first.await_placeholders(kept) == kept
    assert {one["metadata"]["uid"] for one in first.await_bound(PODS)} == kept.keys()


def replica(world: World, folder: pathlib.Path) -> Daemon:
    """A second process of the same bridge."""
    web = {"host": "127.0.0.1", "port": support_daemon.free_port()}
    (folder / "replica").mkdir(exist_ok=True)
    return Daemon(folder / "replica", {**world.daemon.settings, "web": web})


def leader(world: World, *daemons: Daemon) -> Daemon:
    """The one that holds the lease now."""
    lease = world.daemon.settings["leader_election"]
    path = f"/apis/coordination.k8s.io/v1/namespaces/{lease['namespace']}/leases/{lease['name']}"
    holder = world.kube.get(path)["spec"]["holderIdentity"]
    return next(one for one in daemons if f"-{one.pid}-" in holder)


def test_t67_a_leader_that_is_paused_and_resumed_doubles_nothing(
    farm: Farm, open_world: OpenWorld, work: pathlib.Path
) -> None:
    """Twice the leader sleeps past its lease amid new pods, and wakes while the other one leads."""
    world = open_world("paused", leader_election=LEASE)
    other = replica(world, work)
    other.start()
    observer = support_observer.Observer(world)
    observer.start()
    try:
        count = 0
        for turn in range(2):
            paused = leader(world, world.daemon, other)
            world.create_pods(f"before-{turn}", PODS, on(farm))
            os.kill(paused.pid, signal.SIGSTOP)
            try:
                world.create_pods(f"during-{turn}", PODS, on(farm))
                count += 2 * PODS
                world.await_bound(count)
                assert leader(world, world.daemon, other) is not paused
            finally:
                os.kill(paused.pid, signal.SIGCONT)
            world.create_pods(f"after-{turn}", PODS, on(farm))
            count += PODS
            bound = world.await_bound(count)
            jobs = world.await_placeholders(one["metadata"]["uid"] for one in bound)
            assert {one["metadata"]["uid"]: support_world.job_id(one) for one in bound} == jobs
            assert len(world.slurm.alive(world.daemon.cluster_id)) == count
        for one in world.pods():
            observer.expect(one)
            world.delete(one["metadata"]["name"])
        world.await_nothing_in_slurm()
    finally:
        seen = observer.end()
        other.end()
    assert not seen.wrong
    assert seen.looks
