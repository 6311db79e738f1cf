"""The command line asks the daemon's own pages, and nothing and nobody else."""

import pathlib
import socket
import ssl

import pytest
import requests
import responses
import trustme

from slurm_bridge import cli, errors
from slurm_bridge.cli import pages
from slurm_bridge.cli.admin_client import AdminClient, TokenSource
from slurm_bridge.cli.live_client import LiveClient
from slurm_bridge.sim import http

URL = "http://daemon.example:8080"


def ask(
    url: str = URL, path: str = "/page", *, ca: pathlib.Path | None = None, most_bytes: int = 1000
) -> tuple[int, bytes]:
    """With a token."""
    headers = {"authorization": "Bearer secret"}
    return pages.ask("GET", url, path, ca=ca, seconds=5, most_bytes=most_bytes, headers=headers)


@responses.activate
def test_status_and_body_are_the_answer() -> None:
    """Whatever they say; the token goes with the question."""
    responses.get(f"{URL}/page", status=503, body=b"busy")
    assert ask() == (503, b"busy")
    assert responses.calls[0].request.headers["authorization"] == "Bearer secret"


@responses.activate
def test_no_more_of_an_answer_is_read_than_allowed() -> None:
    """The rest stays with the server."""
    responses.get(f"{URL}/page", body=b"x" * 100)
    assert ask(most_bytes=10) == (200, b"x" * 10)


@responses.activate
def test_redirects_of_pages_are_not_followed() -> None:
    """The token would travel to wherever the answer points."""
    responses.get(f"{URL}/page", status=302, headers={"location": "http://elsewhere/"})
    assert ask()[0] == 302
    assert len(responses.calls) == 1


@responses.activate
def test_only_scheme_host_and_port_of_the_address_count() -> None:
    """A password or a path that somebody wrote into it is not sent."""
    responses.get(f"{URL}/page", body=b"here")
    assert ask("http://me:hidden@daemon.example:8080/elsewhere") == (200, b"here")
    assert responses.calls[0].request.headers["authorization"] == "Bearer secret"


@responses.activate
def test_an_address_of_version_6_keeps_its_brackets() -> None:
    """Else its last part would be a port."""
    responses.get("http://[::1]:8080/page", body=b"here")
    assert ask("http://[::1]:8080") == (200, b"here")


@responses.activate
@pytest.mark.parametrize("variable", ["http_proxy", "HTTP_PROXY", "all_proxy", "NETRC", "REQUESTS_CA_BUNDLE"])
def test_the_environment_has_no_say_in_questions(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    """Neither a proxy, nor a password for the host, nor an authority."""
    monkeypatch.setenv(variable, "http://127.0.0.1:9")
    responses.get(f"{URL}/page", body=b"here")
    ask()
    sent = responses.calls[0].request
    assert sent.req_kwargs["proxies"] == {}
    assert sent.req_kwargs["verify"] is True
    assert sent.headers["authorization"] == "Bearer secret"


@responses.activate
def test_no_answer_is_told_by_its_innermost_cause() -> None:
    """Without addresses of objects, and without the token."""
    cause = requests.ConnectionError("outer")
    cause.__cause__ = ConnectionRefusedError(111, "Connection refused")
    responses.get(f"{URL}/page", body=cause)
    with pytest.raises(errors.Unavailable) as caught:
        ask()
    assert str(caught.value) == f"{URL}/page: ConnectionRefusedError: [Errno 111] Connection refused"


def test_an_authority_that_cannot_be_read_is_refused(tmp_path: pathlib.Path) -> None:
    """Before anybody is asked."""
    with pytest.raises(errors.BadConfiguration, match="No such file"):
        ask("https://daemon.example", ca=tmp_path / "none")


def test_a_daemon_with_a_certificate_is_asked_by_its_authority(tmp_path: pathlib.Path) -> None:
    """The one that was named, and no other."""
    authority, other = trustme.CA(), trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    for name, made in (("ours", authority), ("other", other)):
        made.cert_pem.write_to_path(str(tmp_path / name))
    with http.Server(lambda _: http.Response(body=b"here"), tls=context) as server:
        assert ask(server.url, ca=tmp_path / "ours") == (200, b"here")
        for ca in (tmp_path / "other", None):
            with pytest.raises(errors.Unavailable, match="certificate verify failed"):
                ask(server.url, ca=ca)


def test_a_page_of_nobody_is_unavailable() -> None:
    """In the words of the operating system."""
    with socket.socket() as taken:  # and nobody listens
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(errors.Unavailable, match=r"ConnectionRefusedError: .* Connection refused"):
            ask(f"http://127.0.0.1:{taken.getsockname()[1]}")


@responses.activate
def test_a_token_of_the_environment_is_not_sent_to_an_assumed_server() -> None:
    """Any program may listen at the default URL: the token, or the URL, has to be named for the command."""
    responses.get("http://127.0.0.1:8080/ui/snapshot", status=401, json={"message": "a token is required"})
    environ = TokenSource(environ={"SLURM_BRIDGE_TOKEN": "secret"})
    client = LiveClient(url="http://127.0.0.1:8080", credentials=environ, assumed=True)
    with pytest.raises(errors.NotAuthenticated, match=r"your token was not sent, .* name the server with --url"):
        client.snapshot()
    assert "authorization" not in {name.lower() for name in responses.calls[0].request.headers}


@responses.activate
@pytest.mark.parametrize("assumed", [True, False])
def test_a_token_that_was_named_is_sent_to_the_server(tmp_path: pathlib.Path, *, assumed: bool) -> None:
    """With --token-file to the default URL; any token to a URL that was given."""
    responses.get("http://127.0.0.1:8080/ui/snapshot", json={})
    (tmp_path / "token").write_text("secret")
    environ = {"SLURM_BRIDGE_TOKEN": "secret"}
    named = TokenSource(token_file=tmp_path / "token") if assumed else TokenSource(environ=environ)
    LiveClient(url="http://127.0.0.1:8080", credentials=named, assumed=assumed).snapshot()
    assert responses.calls[0].request.headers["authorization"] == "Bearer secret"


@responses.activate
@pytest.mark.parametrize("source", ["environment", "kubeconfig"])
def test_an_administrators_token_is_not_sent_to_an_assumed_server(tmp_path: pathlib.Path, source: str) -> None:
    """Any program may listen at the default URL while no daemon does: the command ends before it asks."""
    responses.post("http://127.0.0.1:8080/queues/reload", json={"message": "reloaded"})
    given = TokenSource(environ={"SLURM_BRIDGE_TOKEN": "secret"})
    if source == "kubeconfig":
        given = TokenSource(kubeconfig=tmp_path / "kubeconfig")
    with pytest.raises(errors.BadConfiguration, match=r"your token was not sent, .* name the server with --url"):
        AdminClient(url="http://127.0.0.1:8080", credentials=given, assumed=True).reload()
    assert not responses.calls


@responses.activate
@pytest.mark.parametrize("assumed", [True, False])
def test_an_administrators_token_that_was_named_is_sent(tmp_path: pathlib.Path, *, assumed: bool) -> None:
    """With --token-file to the default URL; any token to a URL that was given."""
    responses.post("http://127.0.0.1:8080/queues/reload", json={"message": "reloaded"})
    (tmp_path / "token").write_text("secret")
    given = TokenSource(environ={"SLURM_BRIDGE_TOKEN": "secret"})
    if assumed:
        given = TokenSource(token_file=tmp_path / "token")
    assert AdminClient(url="http://127.0.0.1:8080", credentials=given, assumed=assumed).reload() == ("reloaded", [])
    assert responses.calls[0].request.headers["authorization"] == "Bearer secret"


@responses.activate
def test_the_command_knows_which_server_is_assumed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`queues config` names the fix without --url, and asks with it."""
    responses.get("http://127.0.0.1:8080/queues/config", status=403, json={"message": "not an administrator"})
    monkeypatch.setenv("SLURM_BRIDGE_TOKEN", "secret")
    assert cli.main(["queues", "config"]) == 1
    assert "name the server with --url, or the token with --token-file" in capsys.readouterr().err
    assert not responses.calls
    assert cli.main(["queues", "config", "--url", "http://127.0.0.1:8080"]) == 1
    assert "not an administrator" in capsys.readouterr().err


@responses.activate
@pytest.mark.parametrize("command", [["queues"], ["top", "--once"]])
def test_a_default_server_that_is_not_there_names_the_tunnel(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The daemon's port is inside the cluster; a URL that was given is the user's own matter."""
    assert cli.main(command) == 1
    assert "port-forward deployment/slurm-bridge 8080), or name the server with --url" in capsys.readouterr().err
    assert cli.main([*command, "--url", "http://127.0.0.1:8080"]) == 1
    assert "port-forward" not in capsys.readouterr().err
