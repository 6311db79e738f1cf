"""The agent as a process would run it, with threads and over HTTP, on the nodes of the pocket world."""

import contextlib
import dataclasses
import http.client
import json
import pathlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import trustme

from slurm_bridge import app, errors
from slurm_bridge.agents.json_client import JsonClient
from slurm_bridge.agents.service import AgentService
from slurm_bridge.families.vela import wire
from slurm_bridge.families.vela.samples import SamplingRequest, SamplingResponse
from slurm_bridge.hooks.background import NotAnswered, Target
from slurm_bridge.model import kinds
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.pod import Pod
from slurm_bridge.runtime.clock import SystemClock
from slurm_bridge.telemetry.health import Verdict
from tests import wait

WAIT = 20.0
#: All of an agent's nodes.
EVERY = 10_000


@pytest.fixture(scope="module")
def world() -> Iterator[app.PocketWorld]:
    """Twenty nodes in both schedulers; nobody here changes them for good."""
    with app.pocket_world(nodes=20) as made:
        yield made


class Running:
    """An agent in a thread, and the client that asks it."""

    def __init__(self, agent: AgentService, target: Target) -> None:
        self.agent, self.target = agent, target
        self.status: int | None = None
        self.post = JsonClient(SystemClock())
        self._thread = threading.Thread(target=self._run, name="agent")
        self._thread.start()

    def _run(self) -> None:
        self.status = self.agent.run()

    def stop(self) -> int:
        """As SIGTERM does."""
        self.agent.supervisor.stop.set()
        return self.join()

    def join(self) -> int:
        """How it ended."""
        self._thread.join(WAIT)
        self.post.close()
        assert self.status is not None, "it does not end"
        return self.status

    def ready(self) -> Verdict:
        """What its probe says."""
        return self.agent.health.readyz()

    def sample(self, strategy: str = "random", *, nodes_bp: int = EVERY, **spec: Any) -> SamplingResponse:
        """As the bridge asks."""
        pod = Pod(metadata=ObjectMeta(name="a", namespace="default", uid="u"), **spec)
        body = wire.request_body(SamplingRequest(pod=pod, nodes_bp=nodes_bp))
        return wire.response_of(self.post(self.target, wire.path(strategy), body, seconds=WAIT), "here")


@contextlib.contextmanager
def running(
    world: app.PocketWorld, folder: pathlib.Path, *, ca_file: str = "", until: str = "", **keys: Any
) -> Iterator[Running]:
    """An agent with these keys that is ready (or says this instead), ended with the block if it has not been before."""
    file, token = folder / "agent.json", folder / "agent-token"
    token.write_text("a-token\n")
    agent = {"name": "here", "port": 0, "token_file": str(token), **keys}
    file.write_text(json.dumps({"cluster_id": "here", "agent": agent}))
    with app.agent(app.Configuration(path=file, environ={}, overrides=world.overrides)) as service:
        scheme = "https" if ca_file else "http"
        url = f"{scheme}://127.0.0.1:{service.door.port}"
        made = Running(service, Target(url=url, token_file=str(token), ca_file=ca_file))
        try:
            wait.until(lambda: until in str(made.ready()) if until else made.ready().good, "agent", WAIT, every=0.02)
            yield made
        finally:
            made.stop()


@pytest.fixture(scope="module")
def shared(world: app.PocketWorld, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One agent for all nodes, for whoever only asks."""
    with running(world, tmp_path_factory.mktemp("shared")) as made:
        yield made


def test_a_sample_has_nodes_that_the_pod_can_use(shared: Running) -> None:
    """With their uids and scores; the tainted ones are not among them."""
    answer = shared.sample()
    assert 0 < len(answer.nodes) < 20
    assert len(set(answer.nodes)) == len(answer.nodes)
    assert all(answer.uids)
    assert not any(name.startswith("kube-") for name in answer.nodes)
    assert set(answer.plugins.tolist()) == {1}


def test_two_basis_points_of_a_hundred_are_what_is_asked_for(shared: Running) -> None:
    """Ten percent of twenty nodes are two."""
    assert len(shared.sample(nodes_bp=1000).nodes) == 2


def test_requests_at_once_go_around_the_nodes(world: app.PocketWorld, tmp_path: pathlib.Path) -> None:
    """Pipelines share the state of round-robin: nobody gets a node twice before the list wraps."""
    rules = {"filters": ["ResourcesFit"]}
    with running(world, tmp_path, sampling={**rules, "parallel_sampling_pipelines": 4}) as agent:
        found: list[list[str]] = []
        threads = [
            threading.Thread(target=lambda: found.append(list(agent.sample("round-robin", nodes_bp=1000).nodes)))
            for _ in range(10)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT)
    assert [len(one) for one in found] == [2] * 10
    assert len({name for one in found for name in one}) == 20


def anything(world: app.PocketWorld, key: str) -> tuple[str, set[str]]:
    """A value that some nodes have under this label, and these nodes."""
    found = {one["metadata"]["name"]: one["metadata"]["labels"] for one in world.kube.list(kinds.NODES)}
    value = found["node-1" if "node-1" in found else min(found)][key]
    return value, {name for name, labels in found.items() if labels.get(key) == value}


def test_a_shard_may_be_a_zone(world: app.PocketWorld, tmp_path: pathlib.Path) -> None:
    """By the usual label."""
    zone, members = anything(world, "topology.kubernetes.io/zone")
    with running(world, tmp_path, shard={"zone": zone}, sampling={"filters": ["ResourcesFit"]}) as agent:
        assert set(agent.sample().nodes) == members
        assert 0 < len(members) < 20


def test_a_shard_may_be_a_selector(world: app.PocketWorld, tmp_path: pathlib.Path) -> None:
    """In the notation of the command line."""
    rack, members = anything(world, "topology.local/rack")
    selector = {"selector": f"topology.local/rack in ({rack}),kubernetes.io/os"}
    with running(world, tmp_path, shard=selector, sampling={"filters": ["ResourcesFit"]}) as agent:
        assert set(agent.sample().nodes) == members


def test_a_shard_may_be_a_partition_of_slurm(world: app.PocketWorld, tmp_path: pathlib.Path) -> None:
    """Then Slurm is asked, and only then."""
    partition = next(one for one in world.slurmctld.world.partitions.values() if 0 < len(one.nodes) < 20)
    with running(world, tmp_path, shard={"partition": partition.name}, sampling={"filters": []}) as agent:
        assert len(agent.sample().nodes) == len(partition.nodes)


def test_an_unknown_partition_is_told_with_those_that_there_are(world: app.PocketWorld, tmp_path: pathlib.Path) -> None:
    """By the probe, and to whoever asks; an empty sample would look like a full cluster."""
    with running(world, tmp_path, until="there is none", shard={"partition": "gone"}) as agent:
        verdict = agent.ready()
        assert not verdict.good
        assert "bad caches: Slurm's partition gone: there is none of this name; there are " in str(verdict)
        with pytest.raises(NotAnswered, match=r"503 .*does not know its nodes yet: Slurm's partition gone") as raised:
            agent.sample()
        assert raised.value.status == 503
        assert agent.stop() == 0


def test_an_agent_serves_https(world: app.PocketWorld, tmp_path: pathlib.Path) -> None:
    """With a certificate from files, known to the client by its authority."""
    authority = trustme.CA()
    made = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    made.cert_chain_pems[0].write_to_path(str(tmp_path / "tls.crt"))
    made.private_key_pem.write_to_path(str(tmp_path / "tls.key"))
    files = {"cert": str(tmp_path / "tls.crt"), "key": str(tmp_path / "tls.key")}
    with running(world, tmp_path, ca_file=str(tmp_path / "ca.crt"), **files) as agent:
        assert len(agent.sample().nodes) > 1
        with pytest.raises(NotAnswered, match="certificate verify failed"):
            agent.post(dataclasses.replace(agent.target, ca_file=""), wire.path("random"), {}, seconds=WAIT)


def test_a_question_that_is_too_long_is_refused(world: app.PocketWorld, tmp_path: pathlib.Path) -> None:
    """Unread; the limit is configured."""
    with running(world, tmp_path, max_body_bytes=2000) as agent:
        assert agent.sample().nodes
        with pytest.raises(NotAnswered) as raised:
            agent.post(agent.target, wire.path("random"), {"long": "x" * 3000}, seconds=WAIT)
        assert raised.value.status == 413


def test_a_wrong_token_is_refused(shared: Running, tmp_path: pathlib.Path) -> None:
    """Through the real door."""
    (tmp_path / "other").write_text("another")
    target = dataclasses.replace(shared.target, token_file=str(tmp_path / "other"))
    with pytest.raises(NotAnswered) as raised:
        shared.post(target, wire.path("random"), {}, seconds=WAIT)
    assert raised.value.status == 401


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics"])
def test_probes_and_numbers_need_no_token(shared: Running, path: str) -> None:
    """The kubelet and Prometheus have none."""
    shared.sample()
    connection = http.client.HTTPConnection("127.0.0.1", shared.agent.door.port, timeout=WAIT)
    with contextlib.closing(connection):
        connection.request("GET", path)
        said = connection.getresponse().read().decode()
    wanted = {
        "/livez": "ok  threads",
        "/readyz": "ok  caches",
        "/metrics": 'slurm_bridge_agent_request_duration_seconds_count{status="200",strategy="random"}',
    }
    assert wanted[path] in said
    assert "slurm_bridge_agent_nodes 20.0" in said or path != "/metrics"


def test_an_agent_that_is_stopped_answers_first(world: app.PocketWorld, tmp_path: pathlib.Path) -> None:
    """The question that is inside gets its answer, over a connection that is then closed; the status is 0."""
    with running(world, tmp_path) as agent:
        with agent.agent.desk.counted():
            agent.agent.supervisor.stop.set()
            wait.until(lambda: agent.agent.desk.closed, "begin of the drain", WAIT, every=0.01)
            with pytest.raises(NotAnswered, match="about to stop") as raised:
                agent.sample()
            assert raised.value.status == 503
            assert not agent.ready().good
            assert agent.status is None
        assert agent.join() == 0


def test_an_agent_does_not_wait_for_ever(world: app.PocketWorld, tmp_path: pathlib.Path) -> None:
    """Only as long as is configured."""
    with running(world, tmp_path, drain_seconds=0.1) as agent, agent.agent.desk.counted():
        assert agent.stop() == 0


def test_an_agent_whose_watch_has_died_ends(world: app.PocketWorld, tmp_path: pathlib.Path) -> None:
    """It would answer from a world that is not there any more; whoever runs it starts it anew."""
    with running(world, tmp_path) as agent:
        agent.agent.cache.stop()
        assert agent.join() == 1


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"token_file": None}, "agent.token_file"),
        ({"token_file": "/nowhere/token"}, "token file /nowhere/token: No such file"),
        ({"sampling": {"strategies": ["best"]}}, "best"),
        ({"sampling": {"rounds": 3}}, "agent.sampling: rounds"),
        ({"sampling": {"filters": ["None"]}}, "agent.sampling: filters.0: .*plugin None"),
        ({"shard": {"selector": "a in b"}}, "agent.shard.selector: 'a in b' is not a label requirement"),
        ({"cert": "/nowhere/tls.crt"}, "agent: certificate /nowhere/tls.crt"),
        ({"host": "192.0.2.1"}, "agent: cannot listen on 192.0.2.1 port 0"),
    ],
)
def test_what_cannot_work_is_told_before_anything_starts(
    world: app.PocketWorld, tmp_path: pathlib.Path, keys: dict[str, Any], said: str
) -> None:
    """With the key, and what is allowed."""
    with pytest.raises(errors.BadConfiguration, match=said), running(world, tmp_path, **keys):
        pass
