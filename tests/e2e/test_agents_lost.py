"""The daemon with three agents as processes, on all nodes of the local cluster: one is killed, one hangs, none is lost.

With `make cluster-up NODES=1000` they share a thousand nodes; the default cluster has twenty.
"""

import collections
import itertools
import pathlib
import signal
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from tests import wait
from tests.e2e import support_agents, support_daemon, support_servers, support_world
from tests.e2e.support_agents import Agent
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

#: In each of three batches: before, while, and after an agent is gone.
PODS = 60
PARTITION = "debug"
_HOST = "kubernetes.io/hostname"


@pytest.fixture(scope="module")
def agents(
    kube: support_servers.Kubernetes, slurm: support_servers.Slurm, cluster: Mapping[str, str], work: pathlib.Path
) -> Iterator[list[Agent]]:
    """Three of them, each for the default partition in a third of the zones.

    A node that is reserved for others is always empty, and would always be the best.
    """
    zones = sorted({one["metadata"]["labels"][support_agents.ZONE] for one in kube.items("/api/v1/nodes")})
    reserved = ",".join(_listed(slurm, "--states=reserved")) or "none"
    shards = {}
    for number in range(3):
        selector = f"{support_agents.ZONE} in ({','.join(zones[number::3])}),{_HOST} notin ({reserved})"
        shards[support_daemon.fresh_name("agent")] = {"partition": PARTITION, "selector": selector}
    with support_agents.running(work, cluster, shards) as started:
        yield started


@pytest.fixture(scope="module")
def world(open_world: OpenWorld, agents: list[Agent]) -> World:
    """A daemon that asks them, with the shipped numbers: one of the three for each pod."""
    vela: dict[str, Any] = {"agents": [one.options(timeout_seconds=1.0) for one in agents]}
    return open_world("lost", hooks=[{"name": "vela", "options": vela}])


def _listed(slurm: support_servers.Slurm, *words: str) -> list[str]:
    """Nodes of the partition, as sinfo says."""
    return slurm.command("sinfo", "--noheader", "--Node", "--format=%N", f"--partition={PARTITION}", *words).split()


@pytest.mark.real
@pytest.mark.timeout(400)
def test_an_agent_is_killed_and_another_hangs_and_every_pod_runs(
    world: World, agents: list[Agent], slurm: support_servers.Slurm
) -> None:
    """Each exactly once: one job for each pod; an agent that is back is asked again."""
    killed, hung, well = agents
    covered = len(_listed(slurm)) - len(_listed(slurm, "--states=reserved"))
    assert sum(one.status()["nodesCount"] for one in agents) == covered
    world.create_pods("first", PODS, support_world.FOREVER)
    _await_some(world, PODS // 3)
    killed.kill()
    hung.signal(signal.SIGSTOP)
    world.create_pods("second", PODS, support_world.FOREVER)
    # A workload that draws an agent that is gone waits, and draws again: soon only the one that is left.
    world.await_bound(2 * PODS, 180)
    hung.signal(signal.SIGCONT)
    killed.start()
    killed.await_ready()
    before = [one.answered() for one in (killed, hung, well)]
    world.create_pods("third", PODS, support_world.FOREVER)
    more = itertools.count()

    def asked_again() -> bool:
        # An agent that was left out is drawn only once that is over, and the third batch may be through by then.
        if all(one.answered() > old for one, old in zip((killed, hung, well), before, strict=True)):
            return True
        world.create_pods(f"more{next(more)}", 1, support_world.FOREVER)
        return False

    wait.until(asked_again, "every agent to be asked again", 60, every=1.0)
    _assert_one_job_each(world, world.await_bound(len(world.pods()), 180))


def _await_some(world: World, count: int) -> None:
    """So many have a node."""
    wait.until(lambda: sum(map(support_world.is_bound, world.pods())) >= count, f"{count} bound pods", 120)


def _assert_one_job_each(world: World, pods: Sequence[Json]) -> None:
    """By the owner records of Slurm's jobs, and by what the pods say."""
    jobs = {one.job_id: one for one in world.slurm.jobs_of(world.daemon.cluster_id) if one.alive}
    owners = collections.Counter(str(one.owner["uid"]) for one in jobs.values())
    assert owners == collections.Counter(one["metadata"]["uid"] for one in pods)
    for one in pods:
        assert jobs[support_world.job_id(one)].owner["uid"] == one["metadata"]["uid"]


@pytest.mark.real
@pytest.mark.timeout(300)
def test_without_any_agent_pods_wait_and_say_so(world: World, agents: list[Agent]) -> None:
    """With a reason of their own and without a job; they run as soon as one agent is back."""
    for one in agents:
        one.kill()
    name = "late"
    world.create(support_world.pod(name, world.daemon.scheduler, annotations=support_world.FOREVER))
    late = world.await_pod(name, "wait for agents", support_world.waits_for("AgentsUnavailable"), 60)
    assert not world.placeholders(late["metadata"]["uid"])
    for one in agents:
        one.start()
    for one in agents:
        one.await_ready()
    world.await_pod(name, "node", support_world.is_bound, 120)
