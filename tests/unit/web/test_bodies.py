"""What a server reads from a connection: bodies within bounds, several requests, nothing ambiguous."""

import concurrent.futures
import contextlib
import http.client
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from slurm_bridge.web.replies import Reply
from slurm_bridge.web.routes import Request, Route
from slurm_bridge.web.server import SMALL, Bounds, HttpServer

WAIT = 10.0
BOUNDS = Bounds(seconds=WAIT, most_bytes=1000, most_body=5000, connections=2, idle=WAIT)

Talk = Callable[..., bytes]


def echo(request: Request) -> Reply:
    """Says what came."""
    return Reply.json({"length": len(request.body), "of": request.client, "x": request.headers.get("x-said", "")})


@contextlib.contextmanager
def echoing(bounds: Bounds, route: Route = echo) -> Iterator[int]:
    """The port of a server that echoes."""
    server, stop = HttpServer("127.0.0.1", 0, {("POST", "/echo"): route}, bounds=bounds), threading.Event()
    running = threading.Thread(target=server.run, args=(stop,))
    running.start()
    yield server.port
    stop.set()
    running.join(WAIT)
    assert not running.is_alive()


@pytest.fixture
def port() -> Iterator[int]:
    """Of a server that is in no hurry."""
    with echoing(BOUNDS) as number:
        yield number


def talk(port: int, *words: bytes, end: bool = True) -> bytes:
    """Everything that comes back until the server closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=WAIT) as sock:
        for part in words:
            sock.sendall(part)
        if end:
            with contextlib.suppress(OSError):  # the server may have hung up already
                sock.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: sock.recv(4096), b""))


def post(body: bytes, *more: str, length: int | None = None) -> bytes:
    """A request as it is on the wire."""
    lines = ["POST /echo HTTP/1.1", "Host: a", f"Content-Length: {len(body) if length is None else length}", *more]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@pytest.mark.parametrize("size", [0, 1, 4999, 5000])
def test_a_body_comes_whole(port: int, size: int) -> None:
    """However it is cut on its way."""
    words = post(b"x" * size, "Connection: close")
    for cut in (1, 60, len(words) - 1):
        assert f'{{"length": {size}, "of": "127.0.0.1"'.encode() in talk(port, words[:cut], words[cut:])


def test_a_body_that_is_too_large_is_refused_unread(port: int) -> None:
    """413 tells what is allowed, and reaches a client that was still sending: as much as is allowed is taken first."""
    answer = talk(port, post(b"x" * 5001))
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"a body of 5001 bytes is too large; at most 5000 are allowed" in answer


@pytest.mark.security("fairness")
def test_large_bodies_wait_for_each_other_and_small_ones_do_not() -> None:
    """Clients that send many large requests at once cannot fill the memory of a server that bounds these."""
    large, inside, going = b"x" * (SMALL + 1), threading.Event(), threading.Event()

    def slow(request: Request) -> Reply:
        if len(request.body) > SMALL:
            inside.set()
            assert going.wait(WAIT)
        return Reply.json({"length": len(request.body)})

    bounds = Bounds(seconds=0.3, most_body=len(large), connections=3, large=1)
    with echoing(bounds, slow) as number, concurrent.futures.ThreadPoolExecutor() as pool:
        first = pool.submit(talk, number, post(large))
        assert inside.wait(WAIT)
        assert b'"length": 5' in talk(number, post(b"small"))
        assert b"503 Service Unavailable" in talk(number, post(b"x", length=len(large)), end=False)
        going.set()
        assert b"200 OK" in first.result(WAIT)
        assert b"200 OK" in talk(number, post(large))


def test_a_body_that_never_ends_is_left() -> None:
    """The deadline is for all of the request."""
    with echoing(Bounds(seconds=0.5)) as port:
        assert talk(port, post(b"x" * 10, length=20), end=False) == b""


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (post(b"", "Transfer-Encoding: chunked"), 411),
        (post(b"", "Content-Length: 5"), 400),
        (post(b"", "Authorization: a", "Authorization: b"), 400),
        (b"POST /echo HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST /echo HTTP/1.1\r\nContent-Length: +1\r\n\r\nx", 400),
        (b"POST /echo HTTP/1.1\r\nContent-Length: 1_0\r\n\r\n", 400),
        (b"POST /echo HTTP/1.1\r\nContent-Length : 1\r\n\r\nx", 400),
        (b"POST /echo HTTP/1.1\r\nX: a\r\n folded\r\n\r\n", 400),
        (b"POST /echo HTTP/1.1\r\nnonsense\r\n\r\n", 400),
    ],
)
def test_what_two_servers_could_read_in_two_ways_is_refused(port: int, words: bytes, status: int) -> None:
    """Or a proxy before us would let through what it has not seen."""
    assert talk(port, words).startswith(f"HTTP/1.1 {status} ".encode())


def test_a_client_that_asks_first_is_told_to_go_on(port: int) -> None:
    """curl waits for that before it sends a large body."""
    with socket.create_connection(("127.0.0.1", port), timeout=WAIT) as sock:
        sock.sendall(post(b"", "Expect: 100-continue", "Connection: close", length=3))
        assert sock.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(b"abc")
        assert b'"length": 3' in sock.recv(4096)


def test_names_of_headers_have_one_spelling(port: int) -> None:
    """And equal ones are joined."""
    assert b'"x": "a, b"' in talk(port, post(b"", "X-Said: a", "x-SAID: b", "Connection: close"))


def test_a_connection_is_kept(port: int) -> None:
    """For as many requests as come in time, one behind the other or all at once."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT)
    with contextlib.closing(connection):
        for size in (1, 2, 3):
            connection.request("POST", "/echo", body=b"x" * size)
            answer = connection.getresponse()
            assert (answer.headers["connection"], f'"length": {size}' in answer.read().decode()) == ("keep-alive", True)
        own = connection.sock.getsockname()
        connection.request("POST", "/nothing", body=b"x")
        assert connection.getresponse().status == 404
        assert connection.sock.getsockname() == own
    assert talk(port, post(b"a") + post(b"bb") + post(b"ccc", "Connection: close")).count(b"HTTP/1.1 200 OK") == 3


@pytest.mark.parametrize("words", [post(b"", "Connection: close"), post(b"").replace(b"HTTP/1.1", b"HTTP/1.0")])
def test_who_wants_no_more_is_left(port: int, words: bytes) -> None:
    """It says so, or speaks the older version."""
    answer = talk(port, words, end=False)
    assert b"Connection: close" in answer


def test_an_idle_connection_does_not_hold_up_the_end() -> None:
    """A server that closes waits for requests, not for clients that may never ask again."""
    server, stop = HttpServer("127.0.0.1", 0, {("POST", "/echo"): echo}, bounds=Bounds(idle=600.0)), threading.Event()
    running = threading.Thread(target=server.run, args=(stop,))
    running.start()
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=WAIT)
    with contextlib.closing(connection):
        connection.request("POST", "/echo", body=b"x")
        assert connection.getresponse().read()
        stop.set()
        running.join(WAIT)
    assert not running.is_alive()
