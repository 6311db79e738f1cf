"""A small HTTP server for a few GET routes: bounded in size, time and threads, whoever knocks.

The standard library's handler reads a slow or endless request for as long as it drips. Here every connection carries
one request, has one deadline to send it and one to take the answer, and may send so many bytes; so many are served at
once, and the next is told to come back.
"""

import contextlib
import dataclasses
import http
import socket
import socketserver
import threading
import time
from collections.abc import Mapping
from typing import Final

from loguru import logger

from slurm_bridge import errors
from slurm_bridge.web.replies import Reply, Route

#: How soon a stop is noticed by a door at which nobody knocks.
_LOOK: Final = 0.2
_FULL: Final = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_END: Final = b"\r\n\r\n"
_WORDS_OF_REQUEST_LINE: Final = 3


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What one client, and all of them together, may take."""

    seconds: float = 5.0
    most_bytes: int = 16 << 10
    connections: int = 32


class Door:
    """Listens as soon as it is made; serves while `run` runs."""

    def __init__(self, host: str, port: int, routes: Mapping[str, Route], *, bounds: Bounds | None = None) -> None:
        try:
            self._server = _Server((host, port), routes, bounds or Bounds())
        except (OSError, OverflowError) as error:
            raise errors.BadConfiguration(f"web: cannot listen on {host} port {port}: {error}") from error

    @property
    def port(self) -> int:
        """Where it listens; of use where 0 was asked for."""
        return int(self._server.server_address[1])

    def run(self, stop: threading.Event) -> None:
        """Serve until `stop` is set, then let those inside finish; their deadlines bound how long that takes."""
        try:
            while not stop.is_set():
                self._server.handle_request()
        finally:
            self.close()

    def close(self) -> None:
        """Listen no more; of use where it never served."""
        self._server.server_close()


class _Server(socketserver.ThreadingTCPServer):
    """One thread for each connection, up to a number."""

    allow_reuse_address = True
    request_queue_size = 64
    timeout = _LOOK

    def __init__(self, address: tuple[str, int], routes: Mapping[str, Route], bounds: Bounds) -> None:
        self.routes = routes
        self.bounds = bounds
        self._free = threading.BoundedSemaphore(bounds.connections)
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, _Conversation)

    def process_request(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
            return
        if isinstance(request, socket.socket):
            with contextlib.suppress(OSError):
                request.settimeout(_LOOK)
                request.sendall(_FULL)
        self.shutdown_request(request)

    def process_request_thread(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: object
    ) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, _request: object, client_address: object) -> None:
        """Whatever reaches this point was not foreseen."""
        logger.bind(client=str(client_address)).exception("a conversation broke")


class _Conversation(socketserver.BaseRequestHandler):
    """One request and its answer."""

    server: _Server
    request: socket.socket

    def handle(self) -> None:
        journal = logger.bind(client=str(self.client_address[0]))
        try:
            line = _request_line(self.request, self.server.bounds)
            reply = self._reply(line)
            journal.trace("{} {}", line, reply.status.value)
            self.request.settimeout(self.server.bounds.seconds)
            self.request.sendall(_written(reply, with_body=not line.startswith("HEAD ")))
        except OSError as error:
            journal.debug("the client left, or was too slow: {}", error)

    def _reply(self, line: str) -> Reply:
        words = line.split(" ")
        if not line:
            return _refusal(http.HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        if len(words) != _WORDS_OF_REQUEST_LINE or not words[2].startswith("HTTP/1."):
            return _refusal(http.HTTPStatus.BAD_REQUEST)
        if words[0] not in ("GET", "HEAD"):
            return _refusal(http.HTTPStatus.METHOD_NOT_ALLOWED)
        return self._answer(words[1].partition("?")[0])

    def _answer(self, path: str) -> Reply:
        route = self.server.routes.get(path)
        if route is None:
            paths = ", ".join(sorted(self.server.routes))
            return Reply.text(f"nothing here; there is {paths}\n", http.HTTPStatus.NOT_FOUND)
        try:
            return route()
        except Exception:  # noqa: BLE001 - a broken answer must not end the door, and must not go unseen
            logger.bind(path=path).exception("no answer could be made")
            return _refusal(http.HTTPStatus.INTERNAL_SERVER_ERROR)


def _request_line(sock: socket.socket, bounds: Bounds) -> str:
    """The first line of a request whose head arrives in time; empty when the head is longer than allowed."""
    until = time.monotonic() + bounds.seconds
    head = b""
    while _END not in head:
        if len(head) >= bounds.most_bytes:
            return ""
        remaining = until - time.monotonic()
        if remaining <= 0:
            raise TimeoutError("the request did not arrive in time")
        sock.settimeout(remaining)
        piece = sock.recv(bounds.most_bytes - len(head))
        if not piece:
            raise ConnectionError("closed before the end of the request")
        head += piece
    return head.partition(b"\r\n")[0].decode("latin-1")


def _refusal(status: http.HTTPStatus) -> Reply:
    return Reply.text(f"{status.phrase}\n", status)


def _written(reply: Reply, *, with_body: bool) -> bytes:
    lines = [
        f"HTTP/1.1 {reply.status.value} {reply.status.phrase}",
        f"Content-Type: {reply.content_type}",
        f"Content-Length: {len(reply.body)}",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        "Connection: close",
    ]
    if reply.status is http.HTTPStatus.METHOD_NOT_ALLOWED:
        lines.append("Allow: GET, HEAD")
    head = "\r\n".join(lines).encode("latin-1") + _END
    return head + reply.body if with_body else head
