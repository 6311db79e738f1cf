"""JSON over HTTP: whatever the other side does, the answer is in time, of bounded size, or a reason without a token."""

import contextlib
import gzip
import pathlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import trustme

from slurm_bridge.agents.json_client import JsonClient
from slurm_bridge.hooks.services import NotAnswered, Target
from slurm_bridge.runtime.clock import SystemClock
from tests import wait
from tests.unit.agents import agent_loopback
from tests.unit.agents.agent_loopback import Behave, Service, says

TOKEN = "very-secret-token"

Serve = Callable[..., Service]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Services that are gone afterwards."""
    with contextlib.ExitStack() as stack:
        yield lambda behave, tls=None: stack.enter_context(agent_loopback.serving(behave, tls))


@pytest.fixture
def json_client() -> Iterator[JsonClient]:
    """The client."""
    with contextlib.closing(JsonClient(SystemClock())) as made:
        yield made


@pytest.fixture
def token_file(tmp_path: pathlib.Path) -> pathlib.Path:
    """With the token."""
    file = tmp_path / "token"
    file.write_text(TOKEN)
    return file


@pytest.fixture
def ask(json_client: JsonClient, token_file: pathlib.Path) -> Callable[..., Any]:
    """Ask a service, with the token."""

    def asked(url: str, *, seconds: float = agent_loopback.WAIT, **more: Any) -> Any:
        target = Target(url=url, token_file=str(token_file), **more)
        return json_client(target, "/v1/samples/random", {"a": 1}, seconds=seconds)

    return asked


def refused(ask: Callable[[], Any]) -> NotAnswered:
    """How it was not answered; never with the token, however one looks at it."""
    with pytest.raises(NotAnswered) as raised:
        ask()
    shown = f"{raised.value} {raised.value!r} {raised.value.__cause__!r} {raised.value.__context__!r}"
    assert TOKEN not in shown
    return raised.value


def test_a_question_is_json_with_the_token_and_so_is_the_answer(serve: Serve, ask: Callable[..., Any]) -> None:
    """Nothing else is sent or taken from the environment."""
    service = serve(says(b'{"nodes": []}'))
    assert ask(f"{service.url}/prefix/") == {"nodes": []}
    head, _, body = service.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /prefix/v1/samples/random HTTP/1.1\r\n")
    assert f"authorization: bearer {TOKEN}" in head.decode().lower()
    assert body == b'{"a":1}'


def test_connections_are_kept(serve: Serve, ask: Callable[..., Any]) -> None:
    """One after the other over the same."""
    service = serve(says(b"1"))
    assert [ask(service.url) for _ in range(3)] == [1, 1, 1]
    assert service.connections == 1


def test_a_kept_connection_that_the_service_has_closed_is_replaced(serve: Serve, ask: Callable[..., Any]) -> None:
    """Whether it is seen before the next question or in the middle of it."""

    def close_after(sock: socket.socket, request: bytes) -> None:
        if len(service.requests) == 2:
            raise ConnectionError
        says(b"1")(sock, request)

    service = serve(close_after)
    assert [ask(service.url) for _ in range(2)] == [1, 1]
    assert service.connections == 2
    assert len(service.requests) == 3


def test_a_service_that_closes_every_time_is_asked_twice(serve: Serve, ask: Callable[..., Any]) -> None:
    """And no more."""

    def close(_sock: socket.socket, _request: bytes) -> None:
        raise ConnectionError

    service = serve(close)
    assert "the connection broke" in str(refused(lambda: ask(service.url)))
    assert len(service.requests) == 2


def test_nobody_there(ask: Callable[..., Any]) -> None:
    """The address is named."""
    with socket.socket() as taken:  # and nobody listens
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        found = refused(lambda: ask(f"http://127.0.0.1:{port}"))
    assert str(found) == f"http://127.0.0.1:{port}/v1/samples/random: not reached: Connection refused"
    assert found.status is None


def hangs(_sock: socket.socket, _request: bytes) -> None:
    """Says nothing until the test is over."""
    HANG.wait(agent_loopback.WAIT)


HANG = threading.Event()


@pytest.fixture(autouse=True)
def _release() -> Iterator[None]:
    HANG.clear()
    yield
    HANG.set()


def drips(before: bytes) -> Behave:
    """Sends this, then byte by byte for ever, each in time."""

    def behave(sock: socket.socket, _request: bytes) -> None:
        sock.sendall(before)
        while not HANG.wait(0.02):
            sock.sendall(b"x")

    return behave


@pytest.mark.parametrize(
    "behave",
    [
        pytest.param(hangs, id="silence"),
        pytest.param(drips(b"HTTP/1.1 200 OK\r\nX-Long: "), id="an endless head"),
        pytest.param(drips(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"), id="an endless body"),
    ],
)
def test_the_deadline_is_for_the_whole_answer(serve: Serve, ask: Callable[..., Any], behave: Behave) -> None:
    """A byte now and then does not move it."""
    service, clock = serve(behave), SystemClock()
    begin = clock.now()
    found = refused(lambda: ask(service.url, seconds=0.3))
    HANG.set()
    assert str(found).endswith("no whole answer in time")
    assert clock.now() - begin < agent_loopback.WAIT


def test_a_service_that_never_accepts_is_given_up_in_time(ask: Callable[..., Any]) -> None:
    """As a stopped process does: the machine takes the connection, nobody reads."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        assert "no whole answer in time" in str(refused(lambda: ask(url, seconds=0.3)))


def test_a_late_service_is_asked_on_a_new_connection(serve: Serve, ask: Callable[..., Any]) -> None:
    """What still comes over the old one must not answer the next question."""

    def late(sock: socket.socket, request: bytes) -> None:
        if len(service.requests) == 1:
            HANG.wait(agent_loopback.WAIT)
            says(b'"old"')(sock, request)
        else:
            says(b'"new"')(sock, request)

    service = serve(late)
    refused(lambda: ask(service.url, seconds=0.5))
    wait.until(lambda: service.requests, "first question", every=0.01)
    HANG.set()
    assert ask(service.url) == "new"


@pytest.mark.parametrize("claimed", [True, False])
def test_a_huge_answer_is_not_read_to_its_end(serve: Serve, ask: Callable[..., Any], claimed: bool) -> None:
    """Whether or not it says how long it is."""
    whole = b"[" + b"1," * 1_000_000 + b"1]"

    def behave(sock: socket.socket, request: bytes) -> None:
        if claimed:
            says(whole)(sock, request)
        sock.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + whole)
        raise ConnectionError

    found = refused(lambda: ask(serve(behave).url, most_bytes=100_000))
    assert str(found).endswith("the answer exceeds 100000 bytes")


def test_an_answer_of_the_allowed_size_is_taken(serve: Serve, ask: Callable[..., Any]) -> None:
    """The limit itself is allowed."""
    assert ask(serve(says(b'"12345678"')).url, most_bytes=10) == "12345678"


@pytest.mark.parametrize("body", [b"", b"{", b"<html>", b'"\xff"', b"NaN"])
def test_what_is_not_json_is_no_answer(serve: Serve, ask: Callable[..., Any], body: bytes) -> None:
    """Of a 200."""
    found = refused(lambda: ask(serve(says(body)).url))
    assert "the answer is not JSON" in str(found)
    assert found.status == 200


def test_an_answer_that_nests_too_deeply_is_no_answer(serve: Serve, ask: Callable[..., Any]) -> None:
    """Nothing but NotAnswered comes out, whatever the other side sends."""
    deep = b"[" * 100_000 + b"]" * 100_000
    service = serve(says(deep))
    assert "nested too deeply" in str(refused(lambda: ask(service.url)))


def test_an_answer_that_was_compressed_unasked_is_not_unpacked(serve: Serve, ask: Callable[..., Any]) -> None:
    """A few bytes could become more than the limit before anybody counts them."""
    packed = gzip.compress(b'"' + b"x" * 100 + b'"')
    service = serve(says(packed, Content_Encoding="gzip"))
    assert "is not JSON" in str(refused(lambda: ask(service.url)))


def test_an_answer_that_breaks_off(serve: Serve, ask: Callable[..., Any]) -> None:
    """Shorter than it said."""

    def behave(sock: socket.socket, _request: bytes) -> None:
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[1,")
        raise ConnectionError

    assert "the answer ended early" in str(refused(lambda: ask(serve(behave).url)))


def test_what_is_not_http(serve: Serve, ask: Callable[..., Any]) -> None:
    """Some other server has the port."""
    assert "the connection broke" in str(refused(lambda: ask(serve(lambda sock, _: sock.sendall(b"220 smtp\r\n")).url)))


@pytest.mark.parametrize("status", ["400 Bad Request", "401 Unauthorized", "503 Service Unavailable", "302 Found"])
def test_a_refusal_is_told_with_its_status_and_reason(serve: Serve, ask: Callable[..., Any], status: str) -> None:
    """In the service's words, without the token even where the service repeats it; nothing is followed."""
    service = serve(says(f"no\nway, {TOKEN}\x1b".encode(), status, Location="http://127.0.0.1:1/"))
    found = refused(lambda: ask(service.url))
    assert str(found).endswith(f"{status}: no way, ***")
    assert found.status == int(status[:3])
    assert len(service.requests) == 1


def test_a_long_reason_is_cut(serve: Serve, ask: Callable[..., Any]) -> None:
    """Messages are for people."""
    found = refused(lambda: ask(serve(says(b"x" * 1_000_000, "500 Internal Server Error")).url))
    assert len(str(found)) < 400


def test_a_token_that_was_renewed_meanwhile_is_tried_once(
    serve: Serve, ask: Callable[..., Any], token_file: pathlib.Path
) -> None:
    """The file changes, the service knows the new token already."""

    def behave(sock: socket.socket, request: bytes) -> None:
        token_file.write_text("new-secret")
        known = b"Bearer new-secret" in request
        says(b"1" if known else b"who?", "200 OK" if known else "401 Unauthorized")(sock, request)

    service = serve(behave)
    assert ask(service.url) == 1
    assert len(service.requests) == 2


def test_a_missing_token_file_is_named_and_nobody_is_asked(
    serve: Serve, ask: Callable[..., Any], token_file: pathlib.Path
) -> None:
    """A question without its token would only be refused."""
    token_file.unlink()
    service = serve(says(b"1"))
    assert f"token file {token_file}" in str(refused(lambda: ask(service.url)))
    assert not service.requests


def test_without_a_token_file_no_token_is_sent(serve: Serve, json_client: JsonClient) -> None:
    """For services that want none."""
    service = serve(says(b"1"))
    assert json_client(Target(url=service.url), "/filter", {}, seconds=agent_loopback.WAIT) == 1
    assert b"authorization" not in service.requests[0].lower()


@pytest.mark.parametrize("url", ["ftp://a", "http://", "nonsense", "http://[::1"])
def test_an_address_that_cannot_be_one(ask: Callable[..., Any], url: str) -> None:
    """Told, not raised as something else."""
    assert "address" in str(refused(lambda: ask(url)))


def test_a_password_in_an_address_is_not_shown(ask: Callable[..., Any]) -> None:
    """Where somebody wrote one."""
    found = refused(lambda: ask("http://me:hidden@127.0.0.1:1/x"))
    assert str(found).startswith("http://127.0.0.1:1/x/v1/samples/random: not reached")


class Authority:
    """Signs a service's certificate."""

    def __init__(self, folder: pathlib.Path) -> None:
        made = trustme.CA()
        self.file = folder / "ca.crt"
        made.cert_pem.write_to_path(str(self.file))
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.issue_cert("127.0.0.1").configure_cert(self.context)


def test_tls_with_a_known_authority(serve: Serve, ask: Callable[..., Any], tmp_path: pathlib.Path) -> None:
    """Named by file."""
    authority = Authority(tmp_path)
    service = serve(says(b"1"), authority.context)
    assert [ask(service.url, ca_file=str(authority.file)) for _ in range(2)] == [1, 1]
    assert service.connections == 1


def test_tls_with_an_unknown_authority(serve: Serve, ask: Callable[..., Any], tmp_path: pathlib.Path) -> None:
    """The token is not sent."""
    service = serve(says(b"1"), Authority(tmp_path).context)
    assert "certificate verify failed" in str(refused(lambda: ask(service.url)))
    assert not service.requests


def test_tls_with_a_missing_authority(serve: Serve, ask: Callable[..., Any], tmp_path: pathlib.Path) -> None:
    """The file is not there."""
    service = serve(says(b"1"), Authority(tmp_path).context)
    assert "No such file" in str(refused(lambda: ask(service.url, ca_file=str(tmp_path / "none"))))


def test_the_deadline_holds_over_tls(serve: Serve, ask: Callable[..., Any], tmp_path: pathlib.Path) -> None:
    """Bytes come through another layer there."""
    authority = Authority(tmp_path)
    service = serve(drips(b"HTTP/1.1 200 OK\r\nX-Long: "), authority.context)
    found = refused(lambda: ask(service.url, seconds=0.5, ca_file=str(authority.file)))
    HANG.set()
    assert str(found).endswith("no whole answer in time")


def test_nothing_shows_the_token(serve: Serve, json_client: JsonClient, token_file: pathlib.Path) -> None:
    """Not the client's own repr either."""
    target = Target(url=serve(says(b"1")).url, token_file=str(token_file))
    json_client(target, "/", {}, seconds=agent_loopback.WAIT)
    assert TOKEN not in f"{json_client!r} {target!r} {vars(json_client)!r}"


def test_many_services_do_not_pile_up_connections(serve: Serve, json_client: JsonClient) -> None:
    """Configuration may name others again and again."""
    service = serve(says(b"1"))
    for number in range(70):
        assert json_client(Target(url=f"{service.url}/{number}"), "/", {}, seconds=agent_loopback.WAIT) == 1
    assert len(json_client._services) == 64
