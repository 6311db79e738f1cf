"""What a server may say on a connection, and what comes of it: bounded, and never mixed up with the next answer."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator, Sequence

import pytest

from slurm_bridge import errors
from slurm_bridge.runtime.http import exchange
from slurm_bridge.runtime.http.client import Anonymous, Client
from slurm_bridge.runtime.http.connections import Endpoint, KeptConnections
from slurm_bridge.runtime.http.messages import ConnectionDropped, HttpAnswer, HttpLimits, HttpRequest

LIMITS = HttpLimits(connect=5, answer=5, whole_answer=5, silence=5, most_bytes=1000)
GET = HttpRequest(method="GET", path="/thing")
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Parrot:
    """Says the next of its answers after each request, piece by piece; an empty piece closes the connection."""

    def __init__(self, *answers: Sequence[bytes] | bytes) -> None:
        self._answers = [(one,) if isinstance(one, bytes) else one for one in answers]
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port = self._door.getsockname()[1]
        self.connections = 0
        self.heard: list[bytes] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            while self._answers:
                line, _ = self._door.accept()
                self.connections += 1
                with line, contextlib.suppress(OSError):
                    self._talk(line)

    def _talk(self, line: socket.socket) -> None:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while self._answers and (said := line.recv(65536)):
            self.heard.append(said)
            for piece in self._answers.pop(0):
                if not piece:
                    return
                line.sendall(piece)

    def close(self) -> None:
        """Answer no more."""
        self._answers.clear()
        # What waits for a connection is woken by one.
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port)).close()
        self._door.close()
        self._thread.join(5)


@pytest.fixture
def parrots() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as stack:
        yield stack


def asking(stack: contextlib.ExitStack, *answers: Sequence[bytes] | bytes) -> tuple[Client, Parrot]:
    """A client, and the server that it asks."""
    parrot = stack.enter_context(contextlib.closing(Parrot(*answers)))
    pool = KeptConnections(Endpoint(url=f"http://127.0.0.1:{parrot.port}"), LIMITS, time.monotonic)
    return stack.enter_context(contextlib.closing(Client(pool, LIMITS, time.monotonic, Anonymous()))), parrot


def test_one_request_is_one_piece(parrots: contextlib.ExitStack) -> None:
    """Head and body leave together, with the length of the body."""
    client, parrot = asking(parrots, OK)
    client.ask(HttpRequest(method="POST", path="/thing", query={"c": "d e"}, body=b"{}", headers={"x": "y"}), "/prefix")
    (said,) = parrot.heard
    head, _, body = said.partition(b"\r\n\r\n")
    assert head.split(b"\r\n")[0] == b"POST /prefix/thing?c=d+e HTTP/1.1"
    assert {b"x: y", b"content-length: 2", f"host: 127.0.0.1:{parrot.port}".encode()} <= set(head.split(b"\r\n"))
    assert body == b"{}"


@pytest.mark.parametrize(
    "pieces",
    [
        [bytes([letter]) for letter in OK],
        [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + OK],
        [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1;x=y\r", b"\nk\r\n0\r\ntrailer: x\r\n\r\n"],
        [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nContent-Length: 99\r\n\r\n2\r\nok\r\n0\r\n\r\n"],
        [b"HTTP/1.1 200\r\ncontent-length:2\r\n\r\nok"],
    ],
)
def test_an_answer_is_read_however_it_comes(parrots: contextlib.ExitStack, pieces: list[bytes]) -> None:
    """In any pieces, after interim answers, and in chunks; the connection is used again."""
    client, parrot = asking(parrots, pieces, OK)
    assert client.ask(GET) == HttpAnswer(status=200, body=b"ok")
    assert client.ask(GET).body == b"ok"
    assert parrot.connections == 1


@pytest.mark.parametrize(
    "first",
    [
        [b"HTTP/1.1 200 OK\r\nConnection: close\r\ncontent-length: 2\r\n\r\nok"],
        [b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok"],
        [b"HTTP/1.1 200 OK\r\n\r\nok", b""],
        [OK + b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged"],
        [b"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged"],
    ],
)
def test_a_connection_that_says_more_than_asked_is_not_used_again(
    parrots: contextlib.ExitStack, first: list[bytes]
) -> None:
    """The next question has an answer of its own, over another connection."""
    client, parrot = asking(parrots, first, OK)
    client.ask(GET)
    assert client.ask(GET).body == b"ok"
    assert parrot.connections == 2


@pytest.mark.parametrize(
    ("said", "meaning"),
    [
        ([b""], ConnectionDropped),
        ([b"HTTP/1.1 2"], None),
        ([b"HTTP/1.1 200 OK\r\n", b""], errors.Unanswered),
        ([b"SSH-2.0-OpenSSH\r\n"], errors.Unanswered),
        ([b"HTT", b"X", b""], errors.Unanswered),
        ([b"HTTP/1.1 200 OK\r\nno header\r\n\r\n", b""], errors.Unanswered),
        ([b"HTTP/1.1 200 OK\r\n folded: x\r\n\r\n", b""], errors.Unanswered),
        ([b"HTTP/1.1 200 OK\r\nx: " + b"y" * (1 << 17), b""], errors.Unanswered),
        ([b"HTTP/1.1 100 Continue\r\n\r\n" * 1000, b""], errors.Unanswered),
        ([b"HTTP/1.1 102 Processing\r\n\r\n", b""], errors.Unanswered),
        ([b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n", b""], errors.BadAnswer),
        ([b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok", b""], errors.BadAnswer),
        ([b"HTTP/1.1 200 OK\r\ncontent-length: " + b"9" * 99 + b"\r\n\r\nok", b""], errors.BadAnswer),
        ([b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nok", b""], errors.BadAnswer),
        ([b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n", b""], errors.BadAnswer),
        ([b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n-2\r\nok\r\n", b""], errors.BadAnswer),
        ([b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nok\r\n0\r\n\r\n", b""], errors.BadAnswer),
        ([b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n", b""], errors.BadAnswer),
        ([b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + b"1" * 9000, b""], errors.BadAnswer),
        ([b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n" + b"x: y\r\n" * 1000, b""], errors.BadAnswer),
    ],
)
def test_what_is_no_answer_ends_only_its_own_question(
    parrots: contextlib.ExitStack, said: list[bytes], meaning: type[Exception] | None
) -> None:
    """It may have been acted on, and the next question is answered over another connection."""
    client, parrot = asking(parrots, said, OK)
    if meaning is None:
        # It goes on to be silent.
        with pytest.raises(errors.Unanswered):
            client.ask(HttpRequest(method="GET", path="/thing", seconds=0.2))
        return
    with pytest.raises(meaning) as told:
        client.ask(GET)
    # What has begun to answer has read the request: it is not sent again.
    assert isinstance(told.value, ConnectionDropped) == (meaning is ConnectionDropped)
    assert client.ask(GET).body == b"ok"
    assert parrot.connections == 2


def test_a_refusal_of_a_request_that_was_not_read_is_heard(parrots: contextlib.ExitStack) -> None:
    """The server closes while the body is still being sent, and what it has said before counts."""
    client, _ = asking(parrots, [b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno", b""])
    assert client.ask(HttpRequest(method="POST", path="/thing", body=b"x" * (8 << 20))).status == 413


def test_a_connection_that_was_closed_while_idle_is_not_used(parrots: contextlib.ExitStack) -> None:
    """The end of a kept connection is noticed before a request is sent on it."""
    client, parrot = asking(parrots, [OK, b""], OK)
    client.ask(GET)
    ended = client._pool._idle[0]
    assert ended._poll.poll(5000)
    assert client.ask(GET).body == b"ok"
    assert parrot.connections == 2


def test_an_answer_that_is_over_does_not_harm_the_next_one(parrots: contextlib.ExitStack) -> None:
    """Ended late, it leaves the connection alone: that is not its own any more."""
    client, parrot = asking(parrots, OK, OK)
    first = client._pool.send(GET, "/thing", {}, 5.0)
    while first.read():
        pass
    first.shutdown()
    first.close()
    assert client.ask(GET).body == b"ok"
    assert parrot.connections == 1


@pytest.mark.parametrize(
    "request_",
    [
        HttpRequest(method="GET", path="/thing\r\nx: y"),
        HttpRequest(method="GET", path="/a thing"),
        HttpRequest(method="GET", path="/thing", headers={"x": "y\r\nz: 1"}),
        HttpRequest(method="GET", path="/thing", headers={"x: y\r\nz": "1"}),
        HttpRequest(method="GET", path="/thing", headers={"x": "\u20ac"}),
        HttpRequest(method="GET", path="/thing", headers={"": "y"}),
    ],
)
def test_a_request_cannot_carry_another(parrots: contextlib.ExitStack, request_: HttpRequest) -> None:
    """What would break the lines of the head is not sent at all, and not quoted."""
    client, parrot = asking(parrots, OK)
    with pytest.raises(errors.BadConfiguration, match=r"a header or path cannot be sent$"):
        client.ask(request_)
    assert not parrot.heard


def test_letters_of_other_scripts_in_a_path_are_quoted() -> None:
    """As urllib3 does it; what is quoted already stays as it is."""
    head = exchange.written(GET, "host", "/ä/%2F?q=<x>", {})
    assert head.startswith(b"GET /%C3%A4/%2F?q=%3Cx%3E HTTP/1.1\r\nhost: host\r\n")


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://[::1]:8080", "[::1]:8080"),
        ("https://[fe80::1%25eth0]", "[fe80::1]"),
        ("https://slurm.example:443/base", "slurm.example"),
        ("https://slurm.example:80", "slurm.example:80"),
    ],
)
def test_the_host_is_named_as_in_the_address(url: str, host: str) -> None:
    """Without the port that the scheme has anyway, and without the interface."""
    assert KeptConnections(Endpoint(url=url), LIMITS, time.monotonic)._host == host
