"""The queues of a running daemon in the hands of their administrator, by the command that administrators have."""

import contextlib
import http.client
import json
import pathlib
import secrets
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from loguru import logger

from slurm_bridge import app, cli, errors
from slurm_bridge.cli import admin_client
from slurm_bridge.demo import pocket
from slurm_bridge.sim import faults
from slurm_bridge.sim.kube.access import User
from tests import wait
from tests.component.daemon.running import Running, configuration, running
from tests.component.families.yunikorn.yunikorn_scenes import document, queue

ON = {"administration": {"enabled": True, "requests_per_second": 100}}


def administered(*names: str) -> str:
    """Queues as a file has them; ann administers them."""
    made = document(*map(queue, names))
    made["partitions"][0]["queues"][0]["adminacl"] = "ann"
    return yaml.safe_dump(made)


class Office:
    """A daemon whose queues are in a file, and the tokens of two users."""

    def __init__(self, daemon: Running, folder: pathlib.Path) -> None:
        self.daemon, self.folder, self.queues = daemon, folder, folder / "queues.yaml"
        self.tokens = {name: self._granted(name) for name in ("ann", "eve")}
        self.url = f"http://127.0.0.1:{daemon.daemon.server.port}"

    def _granted(self, name: str) -> str:
        token = secrets.token_urlsafe(24)
        self.daemon.world.kube.access.grant(token, User(name=name, rules=()))
        (self.folder / name).write_text(f"{token}\n")
        return token

    def command(self, *words: str, who: str = "ann") -> int:
        """What the command line ends with."""
        return cli.main(["queues", *words, "--url", self.url, "--token-file", str(self.folder / who)])

    def version(self) -> str:
        """Of the queues in force."""
        credentials = admin_client.TokenSource(token_file=self.folder / "ann")
        return str(admin_client.AdminClient(url=self.url, credentials=credentials).config()["version"])

    def paths(self) -> list[str]:
        """The queues on the page."""
        status, body = self.daemon.get("/queues")
        return [one["path"] for one in json.loads(body)["queues"]["queues"]] if status == 200 else []


@pytest.fixture
def office(tmp_path: pathlib.Path) -> Iterator[Office]:
    """Ready, with queue `a`."""
    (tmp_path / "queues.yaml").write_text(administered("a"))
    hooks = [{"name": "yunikorn", "options": {"file": str(tmp_path / "queues.yaml")}}]
    with pocket.world(nodes=1) as world, running(world, tmp_path / "bridge.json", hooks=hooks, web=ON) as daemon:
        daemon.until_ready()
        made = Office(daemon, tmp_path)
        wait.until(made.paths, "queues", 20)
        yield made


@pytest.fixture
def log() -> Iterator[list[str]]:
    """Every line that is logged meanwhile, however fine."""
    lines: list[str] = []
    sink = logger.add(lines.append, level=0, format="{message} {extra} {exception}", backtrace=True, diagnose=True)
    yield lines
    logger.remove(sink)


def test_a_changed_file_is_taken_over_and_a_broken_one_is_not(
    office: Office, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last good one stays, and every administrator reads why."""
    first = office.version()
    office.queues.write_text(administered("a", "b"))
    assert office.command("reload") == 0
    assert office.paths() == ["root.a", "root.b"]
    second = office.version()
    assert (second != first, capsys.readouterr().out.endswith(f"version {second}\n")) == (True, True)
    office.queues.write_text(administered("a", "b", "c d"))
    assert office.command("reload") == 1
    said = capsys.readouterr().out
    assert ("the last good one stays" in said, "'c d'" in said, f"version {second}" in said) == (True, True, True)
    assert office.command("config") == 0
    shown = capsys.readouterr().out
    assert (f"# version {second} of {office.queues}" in shown, "'c d'" in shown) == (True, True)
    assert yaml.safe_load(shown) == yaml.safe_load(administered("a", "b"))
    assert office.paths() == ["root.a", "root.b"]
    office.queues.write_text(administered("a", "b"))
    assert office.command("reload") == 0
    capsys.readouterr()
    for words in (("--json", "config"), ("config", "--json")):
        assert office.command(*words) == 0
        assert json.loads(capsys.readouterr().out)["error"] is None


def test_a_file_that_changes_is_followed_without_being_asked(office: Office) -> None:
    """By every replica: the next leader has the same queues."""
    office.queues.write_text(administered("a", "b"))
    wait.until(lambda: office.paths() == ["root.a", "root.b"], "the new queue", 20, every=0.05)


@pytest.mark.thorough
def test_the_replica_that_leads_next_has_the_same_queues(tmp_path: pathlib.Path) -> None:
    """It follows the file while it waits, and answers no request before it leads."""
    (tmp_path / "queues.yaml").write_text(administered("a"))
    given = {"hooks": [{"name": "yunikorn", "options": {"file": str(tmp_path / "queues.yaml")}}], "web": ON}
    given["leader_election"] = {"enabled": True, "namespace": "default", "lease_seconds": 4, "renew_seconds": 3}
    with (
        pocket.world(nodes=1) as world,
        running(world, tmp_path / "first.json", **given) as daemon,
    ):
        first = Office(daemon, tmp_path)
        wait.until(first.paths, "queues", 20)
        with running(world, tmp_path / "second.json", **given) as waits:
            waits.until_ready()
            second = Office(waits, tmp_path)
            refused(second, "ann", errors.Unavailable)
            (tmp_path / "queues.yaml").write_text(administered("a", "b"))
            wait.until(lambda: first.paths() == ["root.a", "root.b"], "the new queue", 20, every=0.05)
            assert daemon.stop() == 0
            wait.until(lambda: second.paths() == ["root.a", "root.b"], "the same queues", 20, every=0.05)


def test_a_dry_run_changes_nothing(office: Office, capsys: pytest.CaptureFixture[str]) -> None:
    """Wherever the file is; without an address the same rules are asked here, and no token is needed."""
    mine = office.folder / "mine.yaml"
    mine.write_text(administered("a", "b"))
    assert office.command("validate", str(mine)) == 0
    assert "nothing is wrong" in capsys.readouterr().out
    mine.write_text(administered("a b", "c d"))
    assert office.command("validate", str(mine)) == 1
    said = capsys.readouterr().out
    assert ("'a b'" in said, "'c d'" in said) == (True, True)
    assert cli.main(["queues", "validate", str(mine)]) == 1
    assert capsys.readouterr().out == said
    mine.write_text("a: ]")
    assert office.command("validate", str(mine)) == 1
    assert "is not YAML" in capsys.readouterr().out
    assert office.paths() == ["root.a"]


def test_who_does_not_administer_is_told_so(office: Office, capsys: pytest.CaptureFixture[str]) -> None:
    """In one line."""
    assert office.command("reload", who="eve") == 1
    assert "eve does not administer the queues" in capsys.readouterr().err
    assert 'queue_requests_total{status="403",what="reload"} 1.0' in office.daemon.get("/metrics")[1]


def test_no_token_is_in_any_log_or_error(office: Office, log: list[str]) -> None:
    """Neither a good one nor a bad one, nor a part of it, whatever happens."""
    (office.folder / "nobody").write_text("made-up-token-words")
    told = [refused(office, "eve", errors.NotAuthorized), refused(office, "nobody", errors.NotAuthenticated)]
    office.daemon.world.kube_calls.plan(faults.Answer(status=500, body=b"oh"), target="tokenreviews")
    told.append(refused(office, "ann", errors.Unavailable))
    assert all(words in one for words, one in zip(("does not administer", "accept", "reviewed"), told, strict=True))
    written = "".join([*log, *told])
    assert "'caller': 'eve'" in written
    assert not [one for one in (*office.tokens.values(), "made-up-token-words") if one[:12] in written]


def refused(office: Office, who: str, error: type[errors.BridgeError]) -> str:
    """The message that a reload with this token gets."""
    credentials = admin_client.TokenSource(token_file=office.folder / who)
    with pytest.raises(error) as raised:
        admin_client.AdminClient(url=office.url, credentials=credentials).reload()
    return f"{raised.value!r}"


def test_without_the_hook_there_is_nothing_to_administer(office: Office, capsys: pytest.CaptureFixture[str]) -> None:
    """The configuration may lose it while the daemon runs."""
    configuration(office.daemon.world, office.folder / "bridge.json", web=ON)
    assert office.command("reload") == 0
    assert "has no queues any more" in capsys.readouterr().out
    assert office.command("config") == 1
    assert "runs no hook with queues" in capsys.readouterr().err


def test_it_is_not_there_unless_the_configuration_says_so(tmp_path: pathlib.Path) -> None:
    """Off by default."""
    with pocket.world(nodes=1) as world, running(world, tmp_path / "bridge.json") as daemon:
        daemon.until_ready()
        for method, path in (("GET", "/queues/config"), ("POST", "/queues/validate"), ("POST", "/queues/reload")):
            connection = http.client.HTTPConnection("127.0.0.1", daemon.daemon.server.port, timeout=20)
            with contextlib.closing(connection):
                connection.request(method, path, body=b"")
                assert connection.getresponse().status == 404
        (tmp_path / "token").write_text("words")
        credentials = admin_client.TokenSource(token_file=tmp_path / "token")
        with pytest.raises(errors.NotFound, match=r"web\.administration\.enabled is false"):
            admin_client.AdminClient(
                url=f"http://127.0.0.1:{daemon.daemon.server.port}", credentials=credentials
            ).config()


def test_tokens_of_administrators_do_not_travel_in_the_open(tmp_path: pathlib.Path) -> None:
    """A configuration that would let them is refused before anything listens."""
    with pocket.world(nodes=1) as world:
        made = configuration(world, tmp_path / "bridge.json", web=ON)
        opened = app.Configuration(path=made.path, environ={}, overrides=(*made.overrides, "web.host=0.0.0.0"))
        with pytest.raises(errors.BadConfiguration, match=r"web\.administration: needs web\.tls.*or set web\.admin"):
            opened.load()


def test_the_command_does_not_send_a_token_in_the_clear(tmp_path: pathlib.Path) -> None:
    """Unless it is told to; nothing is read or asked before that."""
    credentials = admin_client.TokenSource(token_file=tmp_path / "nothing")
    with pytest.raises(errors.BadConfiguration, match="would be sent without TLS"):
        admin_client.AdminClient(url="http://daemon.example:8080", credentials=credentials).config()


def kubeconfig(folder: pathlib.Path, **user: Any) -> pathlib.Path:
    """One whose user has this."""
    file = folder / "kubeconfig"
    clusters = [{"name": "a", "cluster": {"server": "https://127.0.0.1:1"}}]
    context = {"cluster": "a", "user": "a"}
    contexts = [{"name": "a", "context": context}]
    made = {"apiVersion": "v1", "kind": "Config", "clusters": clusters, "current-context": "a"}
    file.write_text(json.dumps({**made, "users": [{"name": "a", "user": user}], "contexts": contexts}))
    return file


def test_a_token_comes_from_a_file_a_kubeconfig_or_the_environment(tmp_path: pathlib.Path) -> None:
    """The first source that is given counts, and no repr shows a token."""
    environ = {admin_client.VARIABLE: "third"}
    (tmp_path / "token").write_text("first\n")
    given = kubeconfig(tmp_path, token="second")
    sources = (
        admin_client.TokenSource(token_file=tmp_path / "token", kubeconfig=given, environ=environ),
        admin_client.TokenSource(kubeconfig=given, environ=environ),
        admin_client.TokenSource(environ=environ),
    )
    assert [one.token().words for one in sources] == ["first", "second", "third"]
    assert "third" not in repr(sources)


@pytest.mark.parametrize(
    ("credentials", "words"),
    [
        (admin_client.TokenSource(), "give --token-file, --kubeconfig or the variable SLURM_BRIDGE_TOKEN"),
        (admin_client.TokenSource(environ={admin_client.VARIABLE: "ein Wort"}), "SLURM_BRIDGE_TOKEN: holds no bearer"),
        (admin_client.TokenSource(token_file=pathlib.Path("/nowhere")), "--token-file /nowhere: No such file"),
    ],
)
def test_where_there_is_no_token_it_is_said_where_one_was_looked_for(
    credentials: admin_client.TokenSource, words: str
) -> None:
    """And never what was found instead."""
    with pytest.raises(errors.BadConfiguration) as raised:
        credentials.token()
    assert words in str(raised.value)
    assert "ein Wort" not in str(raised.value)
