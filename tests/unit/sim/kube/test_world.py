"""The pocket world as a whole: size, time, history, restarts, access."""

import http.client
import json
import time as real
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slurm_bridge.model import kinds
from slurm_bridge.runtime import clock
from slurm_bridge.sim import faults
from slurm_bridge.sim import http as pocket
from slurm_bridge.sim.kube import access, world
from tests import wait

PODS = "/api/v1/namespaces/default/pods"
SMALL = {"metadata": {"generateName": "p-"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def get(kube: world.PocketKube, path: str, token: str = "", **query: str) -> pocket.Response:
    """One call without a network."""
    headers = {"authorization": f"Bearer {token or kube.token}"}
    asked = {name: [value] for name, value in query.items()}
    return kube.handler(pocket.Request(method="GET", path=path, query=asked, headers=headers))


def names(response: pocket.Response) -> list[str]:
    """Of a list."""
    return [item["metadata"]["name"] for item in json.loads(response.body)["items"]]


class TestSize:
    @pytest.mark.thorough
    def test_many_objects_are_bearable(self, kube: world.PocketKube) -> None:
        """Thousands are made in a moment, and pages of them are cheap; the bounds leave room for busy machines."""
        begun = real.monotonic()
        for _ in range(5000):
            kube.create(kinds.PODS, SMALL)
        assert real.monotonic() - begun < 6
        first = json.loads(get(kube, PODS, limit="500").body)
        begun = real.monotonic()
        second = get(kube, PODS, limit="500", **{"continue": first["metadata"]["continue"]})
        assert real.monotonic() - begun < 0.2
        assert len(names(second)) == 500


class TestHistory:
    def test_a_compacted_page_goes_on_inconsistently(self, kube: world.PocketKube, scene: Any) -> None:
        """410 with a token for the rest."""
        for name in "abc":
            scene.pod(name)
        token = json.loads(get(kube, PODS, limit="1").body)["metadata"]["continue"]
        kube.compact()
        expired = get(kube, PODS, limit="1", **{"continue": token})
        assert expired.status == 410
        rest = get(kube, PODS, **{"continue": json.loads(expired.body)["metadata"]["continue"]})
        assert names(rest) == ["b", "c"]

    def test_a_compacted_watch_is_told(self, kube: world.PocketKube, scene: Any) -> None:
        """In the stream."""
        version = json.loads(get(kube, PODS).body)["metadata"]["resourceVersion"]
        scene.pod()
        kube.compact()
        (line,) = get(kube, PODS, watch="true", resourceVersion=version).body
        assert json.loads(line)["object"]["code"] == 410

    def test_a_short_history_forgets_by_itself(self) -> None:
        """The oldest half goes when the log is full."""
        kube = world.PocketKube(clock=clock.VirtualClock(), history=10)
        version = json.loads(get(kube, PODS).body)["metadata"]["resourceVersion"]
        for _ in range(30):
            kube.create(kinds.PODS, SMALL)
        (line,) = get(kube, PODS, watch="true", resourceVersion=version).body
        assert json.loads(line)["object"]["reason"] == "Expired"

    def test_a_wiped_world_starts_again(self, kube: world.PocketKube, scene: Any) -> None:
        """Versions begin anew, lists from the future fail."""
        for _ in range(20):
            kube.create(kinds.PODS, SMALL)
        version = json.loads(get(kube, PODS).body)["metadata"]["resourceVersion"]
        kube.wipe()
        assert kube.list(kinds.PODS) == []
        assert get(kube, PODS, resourceVersion=version).status == 504
        kube.add_nodes("n1")
        scene.pod(node="n1")
        kube.settle()
        assert scene.phase() == "Running"


class TestTime:
    def test_a_watch_lives_in_the_clocks_time(self, kube: world.PocketKube, time: clock.VirtualClock) -> None:
        """It ends when the clock says so, with a bookmark each minute and one before the end."""
        version = json.loads(get(kube, PODS).body)["metadata"]["resourceVersion"]
        stream = get(
            kube, PODS, watch="true", resourceVersion=version, timeoutSeconds="100", allowWatchBookmarks="true"
        ).body
        assert not isinstance(stream, bytes)
        assert next(stream) == b""
        for seconds in (61, 38):
            time.advance(seconds)
            assert json.loads(next(piece for piece in stream if piece))["type"] == "BOOKMARK"
        time.advance(5)
        assert [piece for piece in stream if piece] == []

    def test_real_time_does_not_jump(self) -> None:
        """Only virtual time can be advanced."""
        with pytest.raises(TypeError):
            world.PocketKube().advance(1)


class TestAccess:
    def test_rules_allow_what_they_name(self, kube: world.PocketKube) -> None:
        """A verb on a resource, in a namespace where one is named."""
        rule = access.Rule(verbs=("list",), resources=("pods",), namespaces=("default",))
        kube.access.grant("token", access.User(name="reader", rules=(rule,)))
        assert get(kube, PODS, "token").status == 200
        refused = get(kube, "/api/v1/pods", "token")
        assert refused.status == 403
        assert b'User \\"reader\\" cannot list resource' in refused.body
        assert get(kube, PODS, "token", watch="true").status == 403

    def test_a_revoked_token_is_nobodys(self, kube: world.PocketKube) -> None:
        """From one call to the next."""
        kube.access.grant("token", access.ADMIN)
        assert get(kube, PODS, "token").status == 200
        kube.access.revoke("token")
        assert get(kube, PODS, "token").status == 401

    def test_the_token_is_not_shown(self, kube: world.PocketKube) -> None:
        """Not even in a repr."""
        assert kube.token not in repr(kube)


class TestServer:
    @pytest.fixture
    def server(self) -> Iterator[world.PocketKubeServer]:
        """In real time."""
        kube = world.PocketKube()
        kube.add_nodes("n1")
        with world.PocketKubeServer(kube) as started:
            yield started

    def call(self, server: world.PocketKubeServer, path: str = PODS) -> dict[str, Any]:
        """One call over the network."""
        connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=wait.PATIENCE)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {server.kube.token}"})
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def test_controllers_work_in_the_background(self, server: world.PocketKubeServer, scene: Any) -> None:
        """Real seconds."""
        scene.kube = server.kube
        scene.pod(node="n1")
        wait.until(lambda: scene.phase() == "Running", "start", wait.PATIENCE, every=0.01)

    def test_a_restart_keeps_or_loses(self, server: world.PocketKubeServer) -> None:
        """At the same address."""
        server.kube.create(kinds.PODS, SMALL)
        url = server.url
        server.restart()
        assert len(self.call(server)["items"]) == 1
        server.restart(keep=False)
        assert self.call(server)["items"] == []
        assert server.url == url

    def test_faults_strike_its_calls(self, server: world.PocketKubeServer) -> None:
        """By method and path."""
        server.faults.plan(faults.Answer(503, b"{}"), target="/pods")
        assert self.call(server) == {}
        assert self.call(server)["kind"] == "PodList"
        assert server.faults.count(target="/pods") == 2

    def test_its_kubeconfig_is_for_its_owner_only(self, server: world.PocketKubeServer, tmp_path: Path) -> None:
        """It holds a token."""
        path = server.write_kubeconfig(tmp_path / "config")
        assert path.stat().st_mode & 0o077 == 0
        assert json.loads(path.read_text())["clusters"][0]["cluster"]["server"] == server.url
