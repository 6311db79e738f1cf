"""The hook "vela" on real servers: candidates one after the other by one job, and agents that are not there."""

import contextlib
import pathlib
from collections.abc import Iterator, Mapping

import pytest

from tests import wait
from tests.e2e import support_families, support_farm, support_servers, support_world
from tests.e2e.support_agents import Agent
from tests.e2e.support_families import pod, pods
from tests.e2e.support_farm import Farm
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

NODES, CPUS = 4, 4
CANDIDATES, WINDOW = 2, 2.0
MARK = "tests.local/sampled"
#: All nodes are a sample, so that those of the test are among them.
ALL = 10_000


def hook(*agents: Json, **more: object) -> list[Json]:
    """Sampling by these agents; by the daemon itself where there are none."""
    usual = {
        "nodes_bp": ALL,
        "clusters_percent": 100,
        "candidates": CANDIDATES,
        "backoff_seconds": 0.5,
        "max_retries": 2,
    }
    asked = {"agents": list(agents)} if agents else {}
    return [{"name": "vela", "options": {**usual, **asked, **more}}]


@pytest.fixture(scope="module")
def farm(kube: support_servers.Kubernetes, slurm: support_servers.Slurm) -> Iterator[Farm]:
    """Equal machines."""
    with support_farm.built(kube, slurm, *[0] * NODES, cpus=CPUS) as made:
        yield made


@pytest.fixture(scope="module")
def world(farm: Farm, open_world: OpenWorld) -> World:
    """A daemon with the hook; a candidate is tried for a few seconds."""
    assert farm.nodes
    return open_world("vela", hooks=hook(), attempts={"window_seconds": WINDOW})


def offered_to(world: World, farm: Farm, job_id: int) -> set[str]:
    """The nodes of the farm that a job does not exclude, as `scontrol show job` has them; none: it may have any."""
    listed = world.slurm.shown(job_id).get("ExcNodeList", "(null)")
    excluded = set() if listed == "(null)" else set(support_servers.expanded(listed))
    return set(farm.nodes) - excluded if excluded.intersection(farm.nodes) else set()


def await_offer(world: World, farm: Farm, job_id: int, before: set[str]) -> set[str]:
    """The next one; the job is the same."""
    what = f"other nodes than {before} for job {job_id}"
    wait.until(lambda: offered_to(world, farm, job_id) != before, what, every=0.3)
    return offered_to(world, farm, job_id)


@pytest.mark.real
def test_sampled_pods_are_placed(world: World, farm: Farm) -> None:
    """Each with one job, which named a node that was sampled for it."""
    with pods(world, *(pod(world, farm, f"plain-{number}") for number in range(NODES))) as made:
        bound = world.await_bound(len(made))
        assert {one["spec"]["nodeName"] for one in bound} <= set(farm.nodes)
        for one in bound:
            (job,) = world.placeholders(one["metadata"]["uid"])
            assert support_families.offered(job, farm) == {one["spec"]["nodeName"]}


@pytest.mark.real
def test_the_next_candidate_is_tried_when_the_first_is_taken(world: World, farm: Farm) -> None:
    """The job stays, and names another node; the pod comes there as soon as that is free."""
    with (
        support_families.taken(world.slurm, farm, *farm.nodes, cpus=CPUS) as jobs,
        pods(world, pod(world, farm, "second")) as (made,),
    ):
        job = world.await_placeholder(made["metadata"]["uid"])
        first = offered_to(world, farm, job.job_id)
        second = await_offer(world, farm, job.job_id, first)
        assert len(first) == len(second) == 1
        (free,) = second
        world.slurm.cancel(jobs[free])
        bound = world.await_pod("second", "a node", support_world.is_bound)
        assert (bound["spec"]["nodeName"], support_world.job_id(bound)) == (free, job.job_id)
        assert len(world.placeholders(made["metadata"]["uid"])) == 1


def offers(world: World, name: str) -> list[str]:
    """What `explain` shows is tried; it samples by itself, and on a busy machine may find no agent in its time."""
    return [one["name"] for one in support_families.machine(world, name)["attempts"]]


@pytest.mark.real
def test_after_the_last_candidate_any_node_will_do(world: World, farm: Farm) -> None:
    """No pod waits for a sample that has become old; `explain` shows what is tried, and for how long."""
    with (
        support_families.taken(world.slurm, farm, *farm.nodes, cpus=CPUS) as jobs,
        pods(world, pod(world, farm, "any")) as (made,),
    ):
        job = world.await_placeholder(made["metadata"]["uid"])
        wait.until(lambda: offers(world, "any") == ["candidate 1", "candidate 2", "any"], "offers in explain")
        tried = offered_to(world, farm, job.job_id)
        while offer := offered_to(world, farm, job.job_id):
            tried |= offer
            await_offer(world, farm, job.job_id, offer)
        free = next(name for name in farm.nodes if name not in tried)
        world.slurm.cancel(jobs[free])
        bound = world.await_pod("any", "a node", support_world.is_bound)
        assert (bound["spec"]["nodeName"], support_world.job_id(bound)) == (free, job.job_id)


@pytest.mark.real
def test_a_pod_without_any_node_says_why_and_comes_back(world: World, farm: Farm) -> None:
    """After a few samples it is parked, not submitted; a node that changes brings it back."""
    spec = {"nodeSelector": {MARK: "yes"}}
    with pods(world, pod(world, farm, "nowhere", **spec)) as (made,):
        held = world.await_pod("nowhere", "its end", support_world.waits_for("FailedScheduling"))
        assert "no candidates left after Filter plugins" in support_families.message(held)
        assert world.placeholders(made["metadata"]["uid"]) == []
        told = support_families.explained(world, "nowhere")
        assert "held by hook vela" in told
        assert "no candidates left after Filter plugins" in told
        support_families.label(world.kube, farm.nodes[0], {MARK: "yes"})
        bound = world.await_pod("nowhere", "a node", support_world.is_bound)
        assert bound["spec"]["nodeName"] == farm.nodes[0]


@pytest.mark.real
def test_a_pod_waits_for_agents_as_long_as_there_are_none(
    world: World, farm: Farm, cluster: Mapping[str, str], tmp_path: pathlib.Path
) -> None:
    """It names the agents that do not answer, and that costs it no try; the first agent that comes up has it placed."""
    agent = Agent(tmp_path, cluster, "late-agent")
    support_families.change(world, hook(agent.options()))
    with pods(world, pod(world, farm, "patient")) as (made,):
        held = world.await_pod("patient", "word", support_world.waits_for("AgentsUnavailable"))
        assert "late-agent" in support_families.message(held)
        assert world.placeholders(made["metadata"]["uid"]) == []
        said = support_families.machine(world, "patient")
        assert (said["reason"], list(said["held_by"])) == ("AgentsUnavailable", ["vela"])
        with contextlib.ExitStack() as stack:
            stack.callback(agent.end)
            agent.start()
            world.await_pod("patient", "a node", support_world.is_bound)
    support_families.change(world, hook())
