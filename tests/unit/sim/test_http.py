"""The small HTTP server, over real sockets."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from slurm_bridge.sim import faults, wire
from slurm_bridge.sim import http as pocket
from tests import threads, wait


def echo(request: pocket.Request) -> pocket.Response:
    """Answer with what was understood."""
    seen = {
        "method": request.method,
        "path": request.path,
        "query": dict(request.query),
        "body": request.body.decode(),
        "agent": request.headers.get("user-agent", ""),
    }
    return pocket.Response(body=json.dumps(seen).encode())


@pytest.fixture
def server() -> Iterator[pocket.Server]:
    """A server that echoes."""
    with pocket.Server(echo) as started:
        yield started


_dialled: list[http.client.HTTPConnection] = []


@pytest.fixture(autouse=True)
def _hang_up() -> Iterator[None]:
    yield
    while _dialled:
        _dialled.pop().close()


def connect(server: pocket.Server) -> http.client.HTTPConnection:
    """A connection that is kept."""
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=wait.PATIENCE)
    _dialled.append(connection)
    return connection


def call(
    connection: http.client.HTTPConnection, method: str = "GET", target: str = "/", body: bytes | None = None
) -> tuple[int, bytes]:
    """Status and body of one call."""
    connection.request(method, target, body)
    answer = connection.getresponse()
    return answer.status, answer.read()


def raw(server: pocket.Server, text: bytes) -> bytes:
    """Everything that comes back on a connection of its own until the server closes it."""
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=wait.PATIENCE) as sock:
        sock.sendall(text)
        received = b""
        while piece := sock.recv(65536):
            received += piece
    return received


def end_of(ending: Iterable[threading.Thread]) -> None:
    """None of these stays behind."""
    for thread in ending:
        thread.join(wait.PATIENCE)
        assert not thread.is_alive()


def test_a_request_arrives_as_it_was_sent(server: pocket.Server) -> None:
    """Method, decoded path, query with several values, headers and body."""
    connection = connect(server)
    status, body = call(connection, "POST", "/a%20b/c?x=1&x=2&empty=", b"hello")
    assert status == 200
    assert json.loads(body) == {
        "method": "POST",
        "path": "/a b/c",
        "query": {"x": ["1", "2"], "empty": [""]},
        "body": "hello",
        "agent": "",
    }


def test_a_connection_is_kept(server: pocket.Server) -> None:
    """Many calls travel on one connection."""
    connection = connect(server)
    call(connection)
    sock = connection.sock
    for _ in range(20):
        call(connection)
    assert connection.sock is sock


def test_a_large_body_arrives_whole(server: pocket.Server) -> None:
    """Bodies are read by their length, over as many pieces as it takes."""
    connection = connect(server)
    _, body = call(connection, "PUT", "/", b"x" * 3_000_000)
    assert len(json.loads(body)["body"]) == 3_000_000


def test_pipelined_requests_are_answered_in_order(server: pocket.Server) -> None:
    """What arrives early is kept for the next turn."""
    answers = raw(server, b"GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\nConnection: close\r\n\r\n")
    assert answers.index(b'"path": "/1"') < answers.index(b'"path": "/2"')


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
        (b"POST / HTTP/1.1\r\nContent-Length: 999999999999\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nContent-Length: many\r\n\r\n", 400),
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nX: " + b"y" * wire.MOST_HEAD, 431),
    ],
)
def test_what_cannot_be_read_is_refused(server: pocket.Server, text: bytes, status: int) -> None:
    """The connection ends after a refusal, since nobody knows where the next request would start."""
    assert raw(server, text).startswith(f"HTTP/1.1 {status} ".encode())


def test_expect_continue_is_answered(server: pocket.Server) -> None:
    """Clients that ask before they send a body get their word."""
    text = b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
    assert raw(server, text).startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK")


def test_pieces_of_a_stream_arrive_one_by_one() -> None:
    """A watch is of use only when each event is sent at once."""
    go_on = threading.Event()

    def stream(_: pocket.Request) -> pocket.Response:
        def pieces() -> Iterator[bytes]:
            yield b"one\n"
            go_on.wait(wait.PATIENCE)
            yield b"two\n"

        return pocket.Response(body=pieces())

    with pocket.Server(stream) as server:
        connection = connect(server)
        connection.request("GET", "/")
        answer = connection.getresponse()
        assert answer.readline() == b"one\n"
        go_on.set()
        assert answer.read() == b"two\n"
        assert call(connection)[0] == 200


def test_a_stream_ends_when_its_client_left() -> None:
    """Empty pieces let the server notice, so that no thread outlives its reader."""
    ended = threading.Event()

    def endless(_: pocket.Request) -> pocket.Response:
        def pieces() -> Iterator[bytes]:
            try:
                yield b"first"
                while True:
                    time.sleep(0.005)
                    yield b""
            finally:
                ended.set()

        return pocket.Response(body=pieces())

    with pocket.Server(endless) as server:
        connection = connect(server)
        connection.request("GET", "/")
        connection.getresponse().close()
        connection.close()
        assert ended.wait(wait.PATIENCE)


def test_stop_ends_streams_at_once_and_the_port_can_be_taken_again() -> None:
    """A restart drops every watch and comes back at the same address."""

    def endless(_: pocket.Request) -> pocket.Response:
        def pieces() -> Iterator[bytes]:
            while True:
                time.sleep(0.01)
                yield b"tick\n"

        return pocket.Response(body=pieces())

    server = pocket.Server(endless).start()
    url = server.url
    connection = connect(server)
    connection.request("GET", "/")
    answer = connection.getresponse()
    answer.readline()
    server.stop()
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        answer.read()
    with pytest.raises(ConnectionRefusedError):
        call(connect(server))
    with server:
        assert server.url == url


def test_a_unix_socket_serves_as_well(tmp_path: Path) -> None:
    """A local slurmrestd can listen on one."""
    path = tmp_path / "slurm.sock"
    with pocket.Server(echo, unix_socket=path) as server:
        assert server.url.startswith("http+unix://")
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(str(path))
            sock.sendall(b"GET /here HTTP/1.1\r\nConnection: close\r\n\r\n")
            assert sock.recv(65536).startswith(b"HTTP/1.1 200 OK")
    assert not path.exists()


@pytest.mark.thorough
def test_thousands_of_calls_per_second_are_answered(server: pocket.Server) -> None:
    """A slow server would hide how fast the program is; the bound is far below what a quiet machine does."""
    host, port = server.url.removeprefix("http://").split(":")
    request = b"GET /api HTTP/1.1\r\nHost: x\r\nAccept: application/json\r\n\r\n"
    with socket.create_connection((host, int(port)), timeout=wait.PATIENCE) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        begun = time.process_time()
        for _ in range(1000):
            sock.sendall(request)
            assert sock.recv(65536).endswith(b"}")
        rate = 1000 / (time.process_time() - begun)
    assert rate > 500, f"{rate:.0f} calls per second of the processor"


class TestFaults:
    @pytest.mark.parametrize("fault", [faults.Reset(), faults.Reset(acted=True), faults.Drop()])
    def test_an_answer_can_be_missing(self, server: pocket.Server, fault: faults.Fault) -> None:
        """The client sees the connection end, and nothing else."""
        server.faults.plan(fault)
        connection = connect(server)
        with pytest.raises(ConnectionError):
            call(connection)
        assert server.faults.journal[0].status == 0
        assert call(connect(server))[0] == 200

    def test_whether_it_acted_differs(self) -> None:
        """A lost request and a lost answer look the same from outside and differ inside."""
        acted: list[str] = []
        with pocket.Server(lambda request: acted.append(request.path) or pocket.Response()) as server:
            for fault in (faults.Reset(), faults.Answer(503), faults.Drop(), faults.Reset(acted=True)):
                server.faults.plan(fault)
                try:
                    call(connect(server), "POST", f"/{type(fault).__name__}")
                except ConnectionError:
                    continue
        assert acted == ["/Drop", "/Reset"]

    def test_an_answer_can_be_replaced_before_and_after(self, server: pocket.Server) -> None:
        """A status of its own without acting; garbage under the true status after acting."""
        server.faults.plan(faults.Answer(429, b"{}", headers=(("Retry-After", "1"),)))
        server.faults.plan(faults.Garble(b"<html>", "text/html"))
        connection = connect(server)
        connection.request("GET", "/")
        answer = connection.getresponse()
        assert (answer.status, answer.headers["Retry-After"], answer.read()) == (429, "1", b"{}")
        assert call(connection) == (200, b"<html>")

    def test_an_answer_can_be_truncated(self, server: pocket.Server) -> None:
        """The promised length never arrives."""
        server.faults.plan(faults.Truncate(after=7))
        with pytest.raises(http.client.IncompleteRead) as caught:
            call(connect(server))
        assert len(caught.value.partial) == 7

    def test_a_stream_can_be_cut(self) -> None:
        """So many pieces arrive, then the connection is gone, without the end mark."""
        with pocket.Server(lambda _: pocket.Response(body=iter([b"1", b"2", b"3"]))) as server:
            server.faults.plan(faults.Cut(after=2))
            with pytest.raises(http.client.IncompleteRead) as caught:
                call(connect(server))
            assert caught.value.partial == b"12"

    def test_a_call_hangs_until_it_is_released(self, server: pocket.Server) -> None:
        """It ends without an answer."""
        server.faults.plan(faults.Hang())
        connection = connect(server)
        connection.request("GET", "/")
        wait.until(server.faults.count, "call", every=0.001)
        server.faults.release()
        with pytest.raises(ConnectionError):
            connection.getresponse()

    def test_a_release_counts_from_the_note_on(self) -> None:
        """Whoever sees the call in the journal and releases it need not know how far it has come."""

        class Eager(faults.Faults):
            def note(self, call: faults.Call) -> None:
                super().note(call)
                self.release()

        with pocket.Server(echo, faults=Eager()) as server:
            server.faults.plan(faults.Hang())
            with pytest.raises(ConnectionError):
                call(connect(server))

    def test_nothing_hangs_after_the_stop(self) -> None:
        """A call that is still being acted on when the server stops would wait for a release that has been."""
        acting = threading.Event()

        def act(request: pocket.Request) -> pocket.Response:
            acting.set()
            wait.until(lambda: server.faults.releases, "stop", every=0.001)
            return echo(request)

        others = set(threading.enumerate())
        server = pocket.Server(act).start()
        server.faults.plan(faults.Hang(acted=True))
        connect(server).request("GET", "/")
        assert acting.wait(wait.PATIENCE)
        server.stop()
        end_of(set(threading.enumerate()) - others)

    def test_stop_frees_what_hangs(self) -> None:
        """No thread stays behind, beside those of servers that other tests left a moment ago."""
        others = set(threading.enumerate())
        server = pocket.Server(echo).start()
        server.faults.plan(faults.Hang(acted=True))
        connection = connect(server)
        connection.request("GET", "/")
        wait.until(server.faults.count, "call", every=0.001)
        server.stop()
        end_of(set(threading.enumerate()) - others)

    def test_something_can_happen_meanwhile(self, server: pocket.Server) -> None:
        """A race happens exactly there."""
        happened: list[int] = []
        server.faults.plan(faults.Meanwhile(lambda: happened.append(1)), nth=2)
        connection = connect(server)
        call(connection)
        assert not happened
        call(connection)
        assert happened

    def test_an_answer_can_be_late(self, server: pocket.Server) -> None:
        """Real seconds, since the client's timeout is real."""
        server.faults.plan(faults.Delay(0.05))
        begun = time.monotonic()
        assert call(connect(server))[0] == 200
        assert time.monotonic() - begun >= 0.05


def test_a_client_for_whom_there_is_no_thread_is_sent_away_and_the_next_is_served(server: pocket.Server) -> None:
    """Else it would wait for an answer that never comes, and the server could not be stopped."""
    accepting = next(thread for thread in threading.enumerate() if thread.name == f"pocket-accept {server.url}")
    with threads.refused_to(accepting), pytest.raises(OSError, match=r"."):  # closed or reset, as it happens
        call(connect(server))
    assert call(connect(server))[0] == 200
