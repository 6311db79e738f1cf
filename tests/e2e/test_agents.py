"""Cluster agents as processes: a thousand nodes in three shards, and what is lost when one is killed and one hangs."""

import concurrent.futures
import pathlib
import signal
import time
from collections.abc import Iterator, Mapping, Sequence

import pytest

from tests import wait
from tests.e2e import support_agents, support_daemon, support_servers
from tests.e2e.support_agents import Agent, Answer
from tests.e2e.support_servers import Json

NODES = 1000
QUESTIONS = 300
CALLERS = 8
#: How long a client waits for an agent that hangs.
PATIENCE = 3.0

#: It tolerates what keeps all others away from the nodes of these tests.
POD: Json = {
    "metadata": {"name": "asked", "namespace": "default", "uid": "asked"},
    "spec": {
        "tolerations": [{"key": support_agents.TAINT, "operator": "Exists"}],
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
    },
}

Shards = Mapping[str, set[str]]


@pytest.fixture(scope="module")
def shards(kube: support_servers.Kubernetes) -> Iterator[Shards]:
    """Zone -> its nodes, a thousand in three zones."""
    zones = [support_daemon.fresh_name("zone") for _ in range(3)]
    with support_agents.unplaced_nodes(kube, NODES, zones) as names:
        yield {zone: set(names[number :: len(zones)]) for number, zone in enumerate(zones)}


@pytest.fixture
def agents(shards: Shards, cluster: Mapping[str, str], tmp_path: pathlib.Path) -> Iterator[list[Agent]]:
    """One for each zone."""
    with support_agents.running(tmp_path, cluster, {zone: {"zone": zone} for zone in shards}) as started:
        yield started


def ask_all(agents: Sequence[Agent], number: int) -> list[Answer]:
    """One question to each, in turn."""
    return [one.sample(POD, strategy=("random", "round-robin")[number % 2], seconds=PATIENCE) for one in agents]


@pytest.mark.real
@pytest.mark.timeout(300)
def test_three_agents_share_a_thousand_nodes(agents: list[Agent], shards: Shards) -> None:
    """Each knows its own and no other; two percent of them are an answer, all of them if asked for all."""
    assert [one.status()["nodesCount"] for one in agents] == [334, 333, 333]
    for one in agents:
        few, every = one.sample(POD).nodes, one.sample(POD, nodes_bp=10_000).nodes
        assert len(set(few)) == len(few) == 6
        assert set(every) == shards[one.name]


@pytest.mark.real
@pytest.mark.timeout(300)
def test_one_is_killed_and_one_hangs_and_the_third_answers_everything(agents: list[Agent], shards: Shards) -> None:
    """In the middle of many questions; an agent that is back answers again, with all of its nodes."""
    killed, hung, well = agents
    with concurrent.futures.ThreadPoolExecutor(CALLERS) as pool:
        asked = [pool.submit(ask_all, agents, number) for number in range(QUESTIONS)]
        wait.until(lambda: sum(one.done() for one in asked) > QUESTIONS // 3, "first third", every=0.01)
        killed.kill()
        hung.signal(signal.SIGSTOP)
        answers = [one.result() for one in asked]
    assert all(len(third.nodes) == 6 and set(third.nodes) <= shards[well.name] for _, _, third in answers)
    assert {first.status for first, _, _ in answers} == {0, 200}
    assert {second.status for _, second, _ in answers} == {0, 200}
    hung.signal(signal.SIGCONT)
    killed.start()
    killed.await_ready()
    assert [len(one.nodes) for one in ask_all(agents, 0)] == [6, 6, 6]


@pytest.mark.real
@pytest.mark.timeout(300)
def test_an_agent_that_is_stopped_loses_no_question(agents: list[Agent]) -> None:
    """What it has begun to read is answered: 200, or 503; its status is 0, and afterwards its port is closed."""
    stopped = agents[0]
    with concurrent.futures.ThreadPoolExecutor(CALLERS) as pool:
        asked = [pool.submit(stopped.sample, POD) for _ in range(QUESTIONS)]
        wait.until(lambda: sum(one.done() for one in asked) > QUESTIONS // 3, "first third", every=0.01)
        assert stopped.stop() == 0
        answers = [one.result() for one in asked]
    assert {one.status for one in answers} <= {0, 200, 503}
    broken = [one.text for one in answers if one.status == 0 and "Refused" not in one.text]
    assert broken == []


@pytest.mark.real
@pytest.mark.timeout(300)
def test_an_agent_sees_nodes_come_and_go(agents: list[Agent], kube: support_servers.Kubernetes) -> None:
    """By its own watch, within moments."""
    one = agents[0]
    before = one.status()["nodesCount"]
    with support_agents.unplaced_nodes(kube, 2, [one.name]):
        wait.until(lambda: one.status()["nodesCount"] == before + 2, "two more nodes", 10)
    wait.until(lambda: one.status()["nodesCount"] == before, "as many as before", 10)


@pytest.mark.real
@pytest.mark.timeout(300)
def test_an_agent_for_a_partition_asks_slurm_for_its_nodes(
    cluster: Mapping[str, str], slurm: support_servers.Slurm, tmp_path: pathlib.Path
) -> None:
    """Those that both sides know."""
    listed = slurm.command("sinfo", "--noheader", "--Node", "--partition=gpu", "--format=%N").split()
    with support_agents.running(tmp_path, cluster, {"gpus": {"partition": "gpu"}}) as (one,):
        wait.until(lambda: one.status()["nodesCount"] == len(set(listed)), "nodes of the partition", 10)
        begin = time.monotonic()
        assert set(one.sample(POD, nodes_bp=10_000).nodes) <= set(listed)
        assert time.monotonic() - begin < PATIENCE
