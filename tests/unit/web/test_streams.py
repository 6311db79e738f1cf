"""Answers that are sent piece by piece: no client can hold more than its connection."""

import contextlib
import socket
import threading
from collections.abc import Generator, Iterator

import pytest

from slurm_bridge.web.replies import Reply
from slurm_bridge.web.routes import Request
from slurm_bridge.web.server import Bounds, HttpServer
from tests import wait

WAIT = 10.0


class Streams:
    """A server with one stream: numbers without end, or as many as were asked for; `/flood` sends without a pause."""

    def __init__(self) -> None:
        self.open = 0
        self.ended = threading.Event()
        self.shut = threading.Event()
        bounds = Bounds(seconds=0.5, connections=2)
        routes = {
            ("GET", "/numbers"): self._numbers,
            ("GET", "/flood"): self._flood,
            ("GET", "/quiet"): lambda _request: Reply(stream=self._silence()),
        }
        self.server = HttpServer("127.0.0.1", 0, routes, bounds=bounds)
        self.thread = threading.Thread(target=self.server.run, args=(self.shut,))
        self.thread.start()

    def _numbers(self, request: Request) -> Reply:
        return Reply(content_type="text/event-stream", stream=self._pieces(int(request.query.get("most", "1000000"))))

    def _flood(self, _request: Request) -> Reply:
        return Reply(stream=self._pieces(1 << 30, b"x" * (1 << 20)))

    def _silence(self) -> Generator[bytes, None, None]:
        try:
            while not self.shut.wait(0.01):
                yield b""
        finally:
            self.ended.set()

    def _pieces(self, most: int, piece: bytes = b"") -> Generator[bytes, None, None]:
        self.open += 1
        try:
            for number in range(most):
                yield piece or (b"%d\n" % number)
                if not piece:
                    yield b""
                    self.shut.wait(0.01)
        finally:
            self.open -= 1
            self.ended.set()

    def begin(self, path: str, *, version: str = "1.1", method: str = "GET") -> socket.socket:
        """A client that has sent its request."""
        sock = socket.create_connection(("127.0.0.1", self.server.port), timeout=WAIT)
        sock.sendall(f"{method} {path} HTTP/{version}\r\nHost: x\r\n\r\n".encode())
        return sock


@pytest.fixture
def streams() -> Iterator[Streams]:
    """Stopped with the case."""
    made = Streams()
    yield made
    made.shut.set()
    made.thread.join(WAIT)
    assert not made.thread.is_alive()


def everything(sock: socket.socket) -> bytes:
    """Until the server closes."""
    with contextlib.closing(sock):
        return b"".join(iter(lambda: sock.recv(4096), b""))


def test_each_piece_is_a_chunk_and_the_last_one_ends_the_answer(streams: Streams) -> None:
    """A client knows whether it has all of it; the connection is closed."""
    head, _, body = everything(streams.begin("/numbers?most=2")).partition(b"\r\n\r\n")
    assert b"Transfer-Encoding: chunked" in head
    assert b"Content-Length" not in head
    assert b"Connection: close" in head
    assert body == b"2\r\n0\n\r\n2\r\n1\n\r\n0\r\n\r\n"


def test_a_client_of_http_1_0_gets_the_pieces_as_they_are(streams: Streams) -> None:
    """It knows no chunks."""
    head, _, body = everything(streams.begin("/numbers?most=2", version="1.0")).partition(b"\r\n\r\n")
    assert b"chunked" not in head
    assert body == b"0\n1\n"


def test_a_stream_ends_when_its_client_has_left(streams: Streams) -> None:
    """Its place is free for another client."""
    sock = streams.begin("/numbers")
    sock.recv(100)
    sock.close()
    assert streams.ended.wait(WAIT)


def test_a_quiet_stream_ends_when_its_client_has_left(streams: Streams) -> None:
    """Before there is anything to send to it."""
    sock = streams.begin("/quiet")
    sock.recv(100)
    sock.close()
    assert streams.ended.wait(WAIT)


def test_a_client_that_does_not_read_loses_its_stream(streams: Streams) -> None:
    """What it has not read is bounded by its connection, and its neighbour is served meanwhile."""
    slow = streams.begin("/flood")
    assert everything(streams.begin("/numbers?most=1")).endswith(b"0\r\n\r\n")
    wait.until(lambda: not streams.open, "end of the flood", WAIT, every=0.02)
    slow.close()


def test_nothing_is_streamed_to_a_question_for_the_head(streams: Streams) -> None:
    """The stream has not even begun."""
    answer = everything(streams.begin("/numbers", method="HEAD"))
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(b"\r\n\r\n")
    assert not streams.open


def test_streams_end_with_the_server(streams: Streams) -> None:
    """A daemon that stops does not wait for its viewers."""
    sock = streams.begin("/numbers")
    sock.recv(100)
    streams.shut.set()
    streams.thread.join(WAIT)
    assert not streams.thread.is_alive()
    everything(sock)
