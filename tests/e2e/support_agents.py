"""Agents as processes of the test, asked over plain HTTP, and nodes that only Kubernetes has, as many as are wanted."""

import contextlib
import dataclasses
import http.client
import json
import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from localcluster import hosts, nodes
from tests import wait
from tests.e2e import support_daemon, support_farm, support_servers
from tests.e2e.support_servers import Json

READY_SECONDS = 60.0
STOP_SECONDS = 30.0
ZONE = "topology.kubernetes.io/zone"
#: Keeps the pods of others away.
TAINT = "local-cluster/test"
_ANSWERED = "slurm_bridge_agent_request_duration_seconds_count"
_PROGRAM = pathlib.Path(sys.executable).with_name("slurm-bridge")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answer:
    """What came back: status 0 where nothing did."""

    status: int
    text: str

    @property
    def nodes(self) -> list[str]:
        """The names in an answer of 200."""
        assert self.status == 200, f"{self.status} {self.text}"
        return [one["node"]["metadata"]["name"] for one in json.loads(self.text)["nodes"]]


class Agent:
    """One `slurm-bridge agent`; the log of all its lives is in one file."""

    def __init__(self, folder: pathlib.Path, cluster: Mapping[str, str], name: str, **keys: Any) -> None:
        self.name, self.port = name, support_daemon.free_port()
        self.token_file = folder / f"{name}.token"
        self.token_file.write_text(f"token-of-{name}\n")
        self.log = folder / f"{name}.log"
        self._configuration = folder / f"{name}.yaml"
        agent = {"name": name, "port": self.port, "token_file": str(self.token_file), **keys}
        chosen = {**support_daemon.settings(cluster, name), "agent": agent}
        self._configuration.write_text(yaml.safe_dump(chosen))
        self._process: subprocess.Popen[bytes] | None = None

    def __repr__(self) -> str:
        return f"Agent({self.name}, log {self.log})"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def options(self, **more: Any) -> Json:
        """As the hook `vela` is told of it."""
        return {"name": self.name, "url": self.url, "token_file": str(self.token_file), **more}

    def start(self) -> None:
        """Begin; `await_ready` says when it works."""
        variables = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_BRIDGE")}
        with self.log.open("ab") as log:
            command = [_PROGRAM, "agent", "--config", self._configuration]
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env=variables)

    def await_ready(self) -> None:
        """Until its probe says so."""

        def ready() -> bool:
            assert self._process is not None
            assert self._process.poll() is None, f"the agent ended by itself:\n{self.last_words()}"
            return support_daemon.look(self.port, "/readyz")[0] == 200

        wait.until(ready, f"ready agent {self.name} ({self.last_words()})", READY_SECONDS)

    def last_words(self) -> str:
        """The end of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-20:]) if self.log.exists() else ""

    def status(self) -> Json:
        """What it says of itself."""
        answer = self._ask("GET", "/v1/samples/status", None, READY_SECONDS)
        assert answer.status == 200, answer
        said: Json = json.loads(answer.text)
        return said

    def answered(self) -> int:
        """How many samples it has given in this life."""
        _, page = support_daemon.look(self.port, "/metrics")
        lines = [line for line in page.splitlines() if line.startswith(_ANSWERED) and 'status="200"' in line]
        return int(sum(float(line.split()[-1]) for line in lines))

    def sample(self, pod: Json, *, strategy: str = "random", nodes_bp: int = 200, seconds: float = 20.0) -> Answer:
        """One question, over a connection of its own."""
        body = {"podInfo": {"pod": pod}, "nodesToSampleBp": nodes_bp}
        return self._ask("POST", f"/v1/samples/{strategy}", body, seconds)

    def _ask(self, method: str, path: str, body: object, seconds: float) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        headers = {"Authorization": f"Bearer {self.token_file.read_text().strip()}"}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            return Answer(status=response.status, text=response.read().decode())
        except (OSError, http.client.HTTPException) as error:
            return Answer(status=0, text=repr(error))
        finally:
            connection.close()

    def signal(self, number: signal.Signals) -> None:
        """SIGSTOP: the port listens, and no answer comes."""
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(STOP_SECONDS)

    def stop(self) -> int:
        """SIGTERM; its exit status."""
        assert self._process is not None
        self._process.terminate()
        try:
            return self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def end(self) -> None:
        """However it is now."""
        if self._process is not None and self._process.poll() is None:
            self.kill()


@contextlib.contextmanager
def running(
    folder: pathlib.Path, cluster: Mapping[str, str], shards: Mapping[str, Mapping[str, str]], **keys: Any
) -> Iterator[list[Agent]]:
    """An agent for each shard, by name, ready; all of them gone afterwards."""
    agents = [Agent(folder, cluster, name, shard=dict(shard), **keys) for name, shard in shards.items()]
    try:
        for one in agents:
            one.start()
        for one in agents:
            one.await_ready()
        yield agents
    finally:
        for one in agents:
            one.end()


@contextlib.contextmanager
def unplaced_nodes(kube: support_servers.Kubernetes, count: int, zones: Sequence[str]) -> Iterator[list[str]]:
    """Ready nodes, spread over these zones, which Slurm does not know and which no pod tolerates by accident."""
    prefix = support_daemon.fresh_name(support_farm.PREFIX)
    manifests = [_node(f"{prefix}-{number}", zones[number % len(zones)]) for number in range(count)]
    names = [one["metadata"]["name"] for one in manifests]
    try:
        support_servers.each(manifests, lambda one: kube.create("/api/v1/nodes", one))
        wait.until(lambda: _all_ready(kube, prefix, count), f"{count} ready nodes", 120, every=1.0)
        yield names
    finally:
        support_servers.each(names, lambda name: kube.delete(f"/api/v1/nodes/{name}"))


def _node(name: str, zone: str) -> Json:
    machine = hosts.Host(
        slurm_name=name,
        kube_name=name,
        cpus=16,
        memory_mib=64000,
        gpus=0,
        gpu_type="",
        features=(),
        partitions=(),
        rack="none",
        block="none",
        threads_per_core=1,
    )
    made = nodes.manifest(machine)
    made["metadata"]["labels"][ZONE] = zone
    made["spec"]["taints"] = [{"key": TAINT, "value": "agents", "effect": "NoSchedule"}]
    return made


def _all_ready(kube: support_servers.Kubernetes, prefix: str, count: int) -> bool:
    found = [one for one in kube.items("/api/v1/nodes") if one["metadata"]["name"].startswith(prefix)]
    return sum(map(_usable, found)) == count


def _usable(one: Json) -> bool:
    """Ready, and without the taint that new nodes have."""
    ready = support_servers.condition(one, "Ready").get("status") == "True"
    return ready and [taint["key"] for taint in one["spec"]["taints"]] == [TAINT]
