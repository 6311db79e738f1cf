"""The live view of a running daemon, over HTTP, by the command that people have, and with the rights of its viewers."""

import http.client
import json
import pathlib
import secrets
from collections.abc import Iterator

import pytest

from slurm_bridge import app, cli, errors
from slurm_bridge.cli.admin_client import TokenSource
from slurm_bridge.cli.live_client import LiveClient
from slurm_bridge.cli.live_rows import LiveRows
from slurm_bridge.demo import pocket
from slurm_bridge.model import kinds, names
from slurm_bridge.sim.kube.access import AccessRule, User
from tests import wait
from tests.component.daemon.running import Running, configuration, running

LOCAL = {"live_view": {"enabled": True, "period_seconds": 0.2}}


def client(daemon: Running, **given: object) -> LiveClient:
    """One of this daemon, without a token unless one is given."""
    url = f"http://127.0.0.1:{daemon.daemon.server.port}"
    return LiveClient(url=url, **{"credentials": TokenSource(), **given})  # type: ignore[arg-type]


@pytest.fixture
def viewed(tmp_path: pathlib.Path) -> Iterator[Running]:
    """A daemon on loopback with one pod that runs."""
    with pocket.world(nodes=2) as world, running(world, tmp_path / "bridge.json", web=LOCAL) as daemon:
        daemon.until_ready()
        daemon.pod("a")
        wait.until(lambda: daemon.bound("a"), "node of the pod", 20, every=0.05)
        yield daemon


def first(found: LiveClient) -> LiveRows:
    """All rows of a stream that has just begun."""
    with found.events() as events:
        rows = LiveRows({})
        for name, data in events:
            if name == "begin":
                rows = LiveRows(data)
            elif name == "ready":
                return rows
            else:
                rows.apply(data)
    raise AssertionError("the stream has no rows")


def test_a_stream_has_all_rows_and_then_what_changes(viewed: Running) -> None:
    """A pod that comes, and the same pod when it has gone."""
    with client(viewed).events() as events:
        rows = LiveRows({})
        seen: list[str] = []
        for name, data in events:
            if name == "begin":
                rows = LiveRows(data)
            elif name == "message":
                rows.apply(data)
            elif name == "ready":
                assert {row["name"]: row["stage"] for row in rows.workloads.values()} == {"a": "running"}
                viewed.pod("b")
            now = {row["name"] for row in rows.workloads.values()}
            if "b" in now and "b" not in seen:
                seen.append("b")
                viewed.world.kube.delete(kinds.PODS, ("default", "b"), grace=0)
            elif "b" in seen and "b" not in now:
                break
        assert [one["name"] for one in rows.decisions].count("b") >= 1


def test_the_command_prints_the_view_once(viewed: Running, capsys: pytest.CaptureFixture[str]) -> None:
    """As text, and as JSON for scripts; details and explanations by the same address."""
    url = f"http://127.0.0.1:{viewed.daemon.server.port}"
    assert cli.main(["top", "--once", "--url", url]) == 0
    text = capsys.readouterr().out
    assert ("default/a" in text, "running" in text, "CPUs" in text) == (True, True, True)
    assert cli.main(["top", "--json", "--url", url, "--search", "a"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(row["name"], row["stage"]) for row in found["workloads"]] == [("a", "running")]
    assert len(found["nodes"]) == 2
    assert cli.main(["top", "--json", "--url", url, "--stage", "held"]) == 0
    assert json.loads(capsys.readouterr().out)["workloads"] == []
    asked = client(viewed)
    row = found["workloads"][0]
    detail = asked.workload(row)
    assert [one["what"] for one in detail["timeline"]][:2] == ["created", "submitted"]
    assert [pod["name"] for pod in asked.node(row["nodes"][0])["pods"]] == ["a"]
    explained = asked.explain("default", "a")
    assert explained["text"].startswith("Pod default/a")
    with pytest.raises(errors.NotFound, match="no pod default/nothing"):
        asked.explain("default", "nothing")


def test_without_a_viewer_the_daemon_has_no_model(viewed: Running) -> None:
    """Viewers are counted, and what they were sent."""
    first(client(viewed))
    wait.until(
        lambda: "slurm_bridge_live_viewers 0.0" in viewed.get("/metrics")[1], "end of the viewer", 20, every=0.05
    )
    metrics = viewed.get("/metrics")[1]
    assert 'slurm_bridge_live_view_requests_total{status="200",what="stream"} 1.0' in metrics
    context = viewed.daemon.core.context

    def rests() -> bool:
        context.table.changed(names.workload_key("Pod", "default", "a", "none"))
        return context.status is viewed.daemon.reporter

    wait.until(rests, "end of the model, some seconds later", 30, every=0.2)


def test_a_daemon_that_stops_does_not_wait_for_viewers(viewed: Running) -> None:
    """It ends in order, and the stream with it."""
    with client(viewed).events() as events:
        assert next(events)[0] == "begin"
        assert viewed.stop() == 0
        assert [name for name, _ in events][-1:] in ([], ["end"], ["message"], ["ready"])


def test_it_is_off_by_default(tmp_path: pathlib.Path) -> None:
    """No page, and a client that says why."""
    with pocket.world(nodes=1) as world, running(world, tmp_path / "bridge.json") as daemon:
        daemon.until_ready()
        assert daemon.get("/ui")[0] == 404
        with pytest.raises(errors.NotFound, match=r"web\.live_view\.enabled is false"):
            client(daemon).snapshot()


def test_a_page_of_elsewhere_reads_nothing(viewed: Running) -> None:
    """Its name may lead to this machine: the request names it."""
    connection = http.client.HTTPConnection("127.0.0.1", viewed.daemon.server.port, timeout=20)
    connection.request("GET", "/ui/snapshot", headers={"Host": "rebound.example"})
    answer = connection.getresponse()
    assert answer.status == 403
    assert b"workloads" not in answer.read()
    connection.close()


def test_tokens_of_viewers_do_not_travel_in_the_open(tmp_path: pathlib.Path) -> None:
    """Neither by the daemon's configuration, nor by the command."""
    with pocket.world(nodes=1) as world:
        made = configuration(world, tmp_path / "bridge.json", web=LOCAL)
        opened = app.Configuration(path=made.path, environ={}, overrides=(*made.overrides, "web.host=0.0.0.0"))
        with pytest.raises(errors.BadConfiguration, match=r"web\.live_view: needs web\.tls"):
            opened.load()
    asked = LiveClient(url="http://daemon.example:8080", credentials=TokenSource(environ={"SLURM_BRIDGE_TOKEN": "x"}))
    with pytest.raises(errors.BadConfiguration, match="would be sent without TLS"):
        asked.snapshot()


@pytest.mark.security("rights")
def test_each_viewer_sees_what_its_token_allows(tmp_path: pathlib.Path) -> None:
    """A viewer of the live view sees namespaces whose pods it may list, and nodes only if it may list nodes."""
    web = {"live_view": {"enabled": True, "period_seconds": 0.2, "plain_http": True}}
    with pocket.world(nodes=2) as world:
        world.kube.create(kinds.NAMESPACES, {"metadata": {"name": "team"}})
        made = configuration(world, tmp_path / "bridge.json", web=web)
        beyond = app.Configuration(path=made.path, environ={}, overrides=(*made.overrides, "web.host=0.0.0.0"))
        tokens = {name: secrets.token_urlsafe(16) for name in ("ann", "eve", "out")}
        every = AccessRule(verbs=("list",), resources=("pods", "nodes"))
        world.kube.access.grant(tokens["ann"], User(name="ann", rules=(every,)))
        mine = AccessRule(verbs=("list",), resources=("pods",), namespaces=("team",))
        world.kube.access.grant(tokens["eve"], User(name="eve", rules=(mine,)))
        world.kube.access.grant(tokens["out"], User(name="out", rules=()))
        with app.daemon(beyond) as process:
            daemon = Running(process, world)
            daemon.start()
            try:
                daemon.until_ready()
                daemon.pod("a")
                wait.until(lambda: daemon.bound("a"), "node of the pod", 20, every=0.05)
                seen = {name: first(client(daemon, credentials=source(tokens[name]))) for name in ("ann",)}
                with pytest.raises(errors.NotAuthorized, match="neither nodes nor pods"):
                    client(daemon, credentials=source(tokens["out"])).snapshot()
                team = {"credentials": source(tokens["eve"]), "namespace": "team"}
                seen["eve"] = first(client(daemon, **team))
                assert {name: (len(rows.workloads), len(rows.nodes)) for name, rows in seen.items()} == {
                    "ann": (1, 2),
                    "eve": (0, 0),
                }
                with pytest.raises(errors.NotAuthenticated, match="a bearer token"):
                    client(daemon).snapshot()
                with pytest.raises(errors.NotAuthenticated, match="does not accept"):
                    client(daemon, credentials=source("made-up")).snapshot()
                with pytest.raises(errors.NotFound):
                    client(daemon, credentials=source(tokens["eve"])).explain("default", "a")
                container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
                spec = {"schedulerName": names.SCHEDULER_NAME, "containers": [container]}
                world.kube.create(kinds.PODS, {"metadata": {"name": "b", "namespace": "team"}, "spec": spec})
                wait.until(lambda: first(client(daemon, **team)).workloads, "its pod", 20)
                told = client(daemon, credentials=source(tokens["eve"])).explain("team", "b")
                assert (told["verdict"], told["text"], told["values"]) == ("submit", "", [])
                found = world.kube.get(kinds.PODS, "team", "b")
                assert found is not None
                others = {*daemon.daemon.core.context.keeper.snapshot().names} - {found["spec"].get("nodeName")}
                assert not [name for name in others if name in str(told)]
            finally:
                assert daemon.stop() == 0


def source(token: str) -> TokenSource:
    """The token in the environment of a command."""
    return TokenSource(environ={"SLURM_BRIDGE_TOKEN": token})
