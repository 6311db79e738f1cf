"""The HTTP server: it answers what it should, and no client can hold it."""

import contextlib
import http.client
import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from loguru import logger

from slurm_bridge import errors
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.telemetry.health import Health
from slurm_bridge.telemetry.metrics import Metrics
from slurm_bridge.web import probes
from slurm_bridge.web.connections import Connections
from slurm_bridge.web.replies import Reply
from slurm_bridge.web.routes import Request, Route
from slurm_bridge.web.server import Bounds, HttpServer

WAIT = 10.0
SMALL = Bounds(seconds=WAIT, most_bytes=1000, connections=2)


class Visitor:
    """Knocks at a server."""

    def __init__(self, server: HttpServer, shut: Callable[[], None] = lambda: None) -> None:
        self.port = server.port
        self.shut = shut

    def ask(self, path: str, method: str = "GET", **headers: str) -> http.client.HTTPResponse:
        """One request; the answer's body has been read into `text`."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT)
        with contextlib.closing(connection):
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            answer.text = answer.read().decode()  # type: ignore[attr-defined]
            return answer

    def say(self, words: bytes) -> bytes:
        """Raw bytes, and all that comes back until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=WAIT) as sock:
            sock.sendall(words)
            with contextlib.suppress(OSError):  # the server may have hung up already
                sock.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: sock.recv(4096), b""))


Open = Callable[..., Visitor]


@pytest.fixture
def open_door() -> Iterator[Open]:
    """Opens servers, and shuts them in the end."""
    with contextlib.ExitStack() as stack:

        def make(pages: dict[str, Route], bounds: Bounds = SMALL) -> Visitor:
            routes = {("GET", path): route for path, route in pages.items()}
            server, stop = HttpServer("127.0.0.1", 0, routes, bounds=bounds), threading.Event()
            thread = threading.Thread(target=server.run, args=(stop,), daemon=True)
            thread.start()

            def shut() -> None:
                stop.set()
                thread.join(WAIT)
                assert not thread.is_alive()

            stack.callback(shut)
            return Visitor(server, shut)

        yield make


@pytest.fixture
def log() -> Iterator[list[str]]:
    """The lines that are logged meanwhile."""
    lines: list[str] = []
    sink = logger.add(lines.append, level="INFO")
    yield lines
    logger.remove(sink)


@pytest.fixture
def visitor(open_door: Open) -> Visitor:
    """At a server with one good and one broken route."""

    def broken(_: Request) -> Reply:
        raise ZeroDivisionError

    return open_door(
        {"/hello": lambda _: Reply.text("hi\n"), "/json": lambda _: Reply.json({"a": 1}), "/broken": broken}
    )


def test_a_route_answers(visitor: Visitor) -> None:
    """Its words, its type, and nothing that a proxy may keep."""
    answer = visitor.ask("/hello?verbose")
    assert (answer.status, answer.text) == (200, "hi\n")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"


def test_json_is_json(visitor: Visitor) -> None:
    """For the routes of machines."""
    answer = visitor.ask("/json")
    assert (answer.headers["content-type"], answer.text) == ("application/json", '{"a": 1}\n')


def test_head_is_get_without_a_body(visitor: Visitor) -> None:
    """With the length that the body would have."""
    answer = visitor.ask("/hello", "HEAD")
    assert (answer.status, answer.headers["content-length"], answer.text) == (200, "3", "")


def test_an_unknown_path_is_told_what_there_is(visitor: Visitor) -> None:
    """A typing error should not cost an hour."""
    answer = visitor.ask("/metrix")
    assert answer.status == 404
    assert "/broken, /hello, /json" in answer.text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "X"])
def test_only_reading_is_allowed(visitor: Visitor, method: str) -> None:
    """Nothing here can be changed from outside."""
    answer = visitor.ask("/hello", method)
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


def test_a_broken_route_is_logged_and_told(visitor: Visitor, log: list[str]) -> None:
    """No trace of it reaches the client, all of it reaches the log; the server stays open."""
    answer = visitor.ask("/broken")
    assert (answer.status, answer.text) == (500, "Internal Server Error\n")
    assert "ZeroDivisionError" in "".join(log)
    assert visitor.ask("/hello").status == 200


@pytest.mark.parametrize("line", [b"nonsense", b"GET /hello", b"GET /hello SPDY/3", b"\x16\x03\x01 \x00 \x00"])
def test_nonsense_is_refused(visitor: Visitor, line: bytes) -> None:
    """Whatever is no request of HTTP/1."""
    assert visitor.say(line + b"\r\n\r\n").startswith(b"HTTP/1.1 400 ")


def test_an_endless_head_is_refused(visitor: Visitor) -> None:
    """After as many bytes as are allowed, none more are read."""
    head = b"GET /hello HTTP/1.1\r\nX: "
    assert visitor.say(head + b"x" * (1000 - len(head))).startswith(b"HTTP/1.1 431 ")


def test_a_client_that_drips_is_left(open_door: Open) -> None:
    """Every byte comes in time, the whole does not: the deadline is for all of it."""
    visitor = open_door({"/hello": lambda _: Reply.text("hi\n")}, Bounds(seconds=0.3))
    with socket.create_connection(("127.0.0.1", visitor.port), timeout=WAIT) as sock:
        sock.sendall(b"GET /hello HTTP/1.1\r\n")
        assert sock.recv(100) == b""


def test_a_client_that_leaves_is_no_accident(visitor: Visitor, log: list[str]) -> None:
    """Port scanners do it all day."""
    socket.create_connection(("127.0.0.1", visitor.port), timeout=WAIT).close()
    assert visitor.ask("/hello").status == 200
    visitor.shut()
    assert "broke" not in "".join(log)


def test_too_many_at_once_are_asked_to_come_back(open_door: Open) -> None:
    """Accepted connections are served; a thread for every connection would be a way to end the daemon."""
    inside, release = threading.Semaphore(0), threading.Event()

    def slow(_: Request) -> Reply:
        inside.release()
        assert release.wait(WAIT)
        return Reply.text("done\n")

    visitor = open_door({"/slow": slow}, Bounds(connections=2))
    answers: list[str] = []
    threads = [threading.Thread(target=lambda: answers.append(visitor.ask("/slow").text)) for _ in range(2)]
    for thread in threads:
        thread.start()
        assert inside.acquire(timeout=WAIT)
    refused = visitor.say(b"")
    release.set()
    for thread in threads:
        thread.join(WAIT)
    assert refused.startswith(b"HTTP/1.1 503 ")
    assert answers == ["done\n", "done\n"]


@pytest.mark.security("fairness")
def test_idle_clients_do_not_keep_others_out(open_door: Open) -> None:
    """Of connections on which nothing is sent the one that has been idle longest is closed for the next client."""
    visitor = open_door({"/": lambda _: Reply.text("here\n")}, Bounds(connections=8))
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(socket.create_connection(("127.0.0.1", visitor.port), WAIT)) for _ in range(40)]
        answers = [visitor.ask("/").status for _ in range(20)]
        assert answers == [200] * 20
        assert idle[0].recv(1) == b""


@pytest.mark.security("fairness")
def test_one_client_address_has_a_part_of_the_connections() -> None:
    """However many connections a client opens, others find the rest of the server's places free."""
    guests, near, far = Connections(4, 2), *socket.socketpair()
    with near, far, socket.socket() as one, socket.socket() as other, socket.socket() as third:
        first = guests.enter(near, "10.0.0.1")
        assert first is not None
        assert guests.enter(one, "10.0.0.1") is not None
        assert guests.enter(other, "10.0.0.1") is not None
        assert far.recv(1) == b""
        for sock in (one, other):
            guests.of(sock).idle_since = None
        assert guests.enter(third, "10.0.0.1") is None
        assert guests.enter(third, "10.0.0.2") is not None
        assert len(guests) == 3


def test_a_stop_lets_those_inside_finish() -> None:
    """A scrape in the last second is complete, and afterwards the port is closed."""
    inside, release, stop = threading.Event(), threading.Event(), threading.Event()

    def slow(_: Request) -> Reply:
        inside.set()
        assert release.wait(WAIT)
        return Reply.text("done\n")

    server = HttpServer("127.0.0.1", 0, {("GET", "/slow"): slow})
    running = threading.Thread(target=server.run, args=(stop,))
    running.start()
    texts: list[str] = []
    asking = threading.Thread(target=lambda: texts.append(Visitor(server).ask("/slow").text))
    asking.start()
    assert inside.wait(WAIT)
    stop.set()
    release.set()
    asking.join(WAIT)
    running.join(WAIT)
    assert texts == ["done\n"]
    assert not running.is_alive()


def test_a_port_that_is_taken_is_a_bad_configuration() -> None:
    """Said with the address, before anything else starts."""
    first = HttpServer("127.0.0.1", 0, {})
    try:
        with pytest.raises(errors.BadConfiguration, match=rf"127\.0\.0\.1 port {first.port}"):
            HttpServer("127.0.0.1", first.port, {})
        with pytest.raises(errors.BadConfiguration, match="port 99999"):
            HttpServer("127.0.0.1", 99999, {})
    finally:
        first.close()


def test_the_probes_and_the_numbers(open_door: Open) -> None:
    """What every daemon shows: alive, of use, and what it counts, each with its reasons."""
    health, metrics = Health(VirtualClock().now), Metrics(version="1")
    health.fresh("slurm", within=60, needed=lambda: True)
    routes = {path: route for (_, path), route in probes.routes(health, metrics).items()}
    # A client that reconnects may be faster than the server, which has to notice first that it has closed.
    visitor = open_door(routes, Bounds())
    assert (visitor.ask("/livez").status, visitor.ask("/livez").text) == (200, "ok\n")
    ready = visitor.ask("/readyz")
    assert (ready.status, ready.text) == (503, "bad slurm: no good answer yet\n")
    health.read("slurm")
    assert visitor.ask("/readyz").status == 200
    numbers = visitor.ask("/metrics")
    assert "slurm_bridge_leader 0.0" in numbers.text
    assert numbers.headers["content-type"].startswith("text/plain; version=")


def test_a_scrape_does_not_see_the_refresh_of_another() -> None:
    """A refresh takes series away and sets them anew: two of them never meet."""
    meeting, met = threading.Barrier(2), list[bool]()

    def refresh() -> None:
        with contextlib.suppress(threading.BrokenBarrierError):
            meeting.wait(0.5)
            met.append(True)

    page = probes.routes(Health(VirtualClock().now), Metrics(version="1"), refresh)[probes.METRICS]
    scrapes = [threading.Thread(target=page, args=(Request(method="GET", path="/metrics"),)) for _ in range(2)]
    for scrape in scrapes:
        scrape.start()
    for scrape in scrapes:
        scrape.join(WAIT)
    assert (met, meeting.broken) == ([], True)
