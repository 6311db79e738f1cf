"""A small HTTP server, bounded in size, time and threads.

The handler of the standard library reads a slow or endless request for as long as bytes arrive. Here each request and
each answer of a connection has a deadline and a size, and the number of connections is bounded. At that bound, the
connection that has been idle longest is closed for the new one; if none is idle, the new one gets 503. A route that
raises is answered with 500 and logged. An answer may be a stream: it holds its connection, and a route that streams
bounds how many there are and for how long.
"""

import contextlib
import dataclasses
import http
import socket
import socketserver
import threading
import time
from collections.abc import Generator
from typing import Final

from loguru import logger

from slurm_bridge import errors
from slurm_bridge.web import request_reader, routes, tls
from slurm_bridge.web.connections import Connections
from slurm_bridge.web.replies import Reply
from slurm_bridge.web.routes import Request, Routes, RouteTable

#: A body of so many bytes is small, and never waits for others.
SMALL: Final = 64 << 10

#: How long a stream that has nothing to send looks for the end of its client.
_GLANCE: Final = 0.001
#: The longest time until an idle server notices a stop.
_LOOK: Final = 0.2
_FULL: Final = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What one client, and all clients together, may use.

    `seconds`: for a whole request, and again for its answer. `most_bytes`: of a head. `idle`: how long a connection is
    kept for the next request; with 0 each carries one. `of_one_client`: connections per client address, None: no own
    bound. `large`: how many requests with a body above SMALL are in memory at once; others wait within their time.
    """

    seconds: float = 5.0
    most_bytes: int = 16 << 10
    most_body: int = 1 << 20
    connections: int = 32
    of_one_client: int | None = None
    idle: float = 0.0
    large: int | None = None


class HttpServer:
    """Listens as soon as it is created; serves while `run` runs."""

    def __init__(
        self, host: str, port: int, routes: Routes, *, bounds: Bounds | None = None, files: tls.Files | None = None
    ) -> None:
        certificate = tls.Certificate(files) if files else None
        try:
            self._server = _Server((host, port), RouteTable(routes), bounds or Bounds(), certificate)
        except (OSError, OverflowError) as error:
            raise errors.BadConfiguration(f"web: cannot listen on {host} port {port}: {error}") from error

    @property
    def port(self) -> int:
        """The port it listens on, also if 0 was requested."""
        return int(self._server.server_address[1])

    def run(self, stop: threading.Event) -> None:
        """Serve until `stop` is set; requests in progress are finished within their deadlines."""
        try:
            while not stop.is_set():
                self._server.handle_request()
        finally:
            self.close()

    def close(self) -> None:
        """Stop listening, for a server that never ran."""
        self._server.closing.set()
        self._server.server_close()


class _Server(socketserver.ThreadingTCPServer):
    """One thread per connection, up to a bound."""

    allow_reuse_address = True
    request_queue_size = 64
    timeout = _LOOK

    def __init__(
        self, address: tuple[str, int], table: RouteTable, bounds: Bounds, certificate: tls.Certificate | None
    ) -> None:
        self.table = table
        self.bounds = bounds
        self.certificate = certificate
        self.closing = threading.Event()
        self.large = threading.BoundedSemaphore(bounds.large or bounds.connections)
        self.connections = Connections(bounds.connections, bounds.of_one_client or bounds.connections)
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, _Conversation)

    def process_request(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        assert isinstance(request, socket.socket)
        if self.connections.enter(request, _address(client_address)) is not None:
            try:
                super().process_request(request, client_address)
            except RuntimeError:
                # The system has no further thread, so no handler gives this place back.
                self.connections.left(request)
                raise
            return
        if self.certificate is None:
            with contextlib.suppress(OSError):
                request.settimeout(_LOOK)
                request.sendall(_FULL)
        self.shutdown_request(request)

    def process_request_thread(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: object
    ) -> None:
        try:
            self.finish_request(request, client_address)
        except Exception:  # noqa: BLE001 - it is logged, and ends one connection only
            self.handle_error(request, client_address)
        finally:
            # Before the client sees the end: if the client reconnects at once, this place is free.
            if isinstance(request, socket.socket):
                self.connections.left(request)
            self.shutdown_request(request)

    def handle_error(self, _request: object, client_address: object) -> None:
        """Log an unexpected error."""
        logger.bind(client=str(client_address)).exception("a connection failed")


class _Conversation(socketserver.BaseRequestHandler):
    """The requests of one connection, and their answers."""

    server: _Server
    request: socket.socket

    def handle(self) -> None:
        self._client = _address(self.client_address)
        self._connection = self.server.connections.of(self.request)
        try:
            with self._secured() as sock:
                line = request_reader.RequestReader(sock)
                while self._one(line) and self._next(line):
                    pass
        except OSError as error:
            logger.bind(client=self._client).debug("the client closed the connection or was too slow: {}", error)

    def _secured(self) -> contextlib.AbstractContextManager[socket.socket]:
        """The socket to read from; with TLS, after a handshake within the time limit."""
        if self.server.certificate is None:
            return contextlib.nullcontext(self.request)
        self.request.settimeout(self.server.bounds.seconds)
        context = self.server.certificate.context()
        secured = context.wrap_socket(self.request, server_side=True, do_handshake_on_connect=False)
        self._connection.sock = secured
        with contextlib.ExitStack() as stack:
            stack.enter_context(secured)
            secured.do_handshake()
            stack.pop_all()
        return secured

    def _one(self, line: request_reader.RequestReader) -> bool:
        """Read and answer one request; returns whether the connection is kept."""
        with contextlib.ExitStack() as held:
            return self._within(line, held)

    def _within(self, line: request_reader.RequestReader, held: contextlib.ExitStack) -> bool:
        bounds, head = self.server.bounds, None
        until = time.monotonic() + bounds.seconds
        try:
            head = line.head(until=until, most=bounds.most_bytes)
            self._take_room(head, until, held)
            body = line.body(head, until=until, most=bounds.most_body)
        except request_reader.RequestRefused as refusal:
            self._send(line, head, Reply.text(f"{refusal}\n", refusal.status), kept=False)
            # Read what the client is still sending: closing the connection over it would discard our answer.
            until, taken = time.monotonic() + min(bounds.seconds, 1.0), 0
            with contextlib.suppress(OSError):
                while taken <= bounds.most_body:
                    taken += len(line.receive(1 << 16, until=until))
            return False
        self._connection.idle_since = None
        kept = bounds.idle > 0 and head.kept and not self.server.closing.is_set()
        path, _, query = head.target.partition("?")
        request = Request(
            method=head.method,
            path=path,
            query=routes.query(query),
            headers=head.headers,
            body=body,
            client=self._client,
        )
        reply = self._answer(request)
        kept = kept and reply.stream is None
        self._send(line, head, reply, kept=kept)
        return kept

    def _take_room(self, head: request_reader.Head, until: float, held: contextlib.ExitStack) -> None:
        """A place for a large body, until it is answered: clients that send many at once do not fill the memory."""
        if head.length <= SMALL or head.length > self.server.bounds.most_body:
            return
        if not self.server.large.acquire(timeout=max(0.0, until - time.monotonic())):
            raise request_reader.RequestRefused(http.HTTPStatus.SERVICE_UNAVAILABLE, "too many large requests at once")
        held.callback(self.server.large.release)

    def _answer(self, request: Request) -> Reply:
        try:
            return self.server.table.answer(request)
        except Exception:  # noqa: BLE001 - an error in a route must not end the server, and is logged
            logger.bind(path=request.path).exception("the answer could not be made")
            status = http.HTTPStatus.INTERNAL_SERVER_ERROR
            return Reply.text(f"{status.phrase}\n", status)

    def _send(
        self, line: request_reader.RequestReader, head: request_reader.Head | None, reply: Reply, *, kept: bool
    ) -> None:
        method = head.method if head else "-"
        # Without the query: some clients put tokens there.
        path = head.target.partition("?")[0] if head else "-"
        logger.bind(client=self._client).trace("{} {} {}", method, path, reply.status.value)
        chunked = reply.stream is not None and head is not None and head.version == "HTTP/1.1"
        length = {"Content-Length": str(len(reply.body))} if reply.stream is None else {}
        length = {"Transfer-Encoding": "chunked"} if chunked else length
        headers = {
            "Content-Type": reply.content_type,
            **length,
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "Connection": "keep-alive" if kept else "close",
            **reply.headers,
        }
        status = f"HTTP/1.1 {reply.status.value} {reply.status.phrase}"
        lines = [status, *(f"{name}: {value}" for name, value in headers.items())]
        written = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
        if method != "HEAD":
            written += reply.body
        with contextlib.closing(reply.stream) if reply.stream is not None else contextlib.nullcontext():
            line.send(written, until=time.monotonic() + self.server.bounds.seconds)
            if reply.stream is not None and method != "HEAD":
                self._send_stream(line, reply.stream, chunked=chunked)

    def _send_stream(
        self, line: request_reader.RequestReader, stream: Generator[bytes, None, None], *, chunked: bool
    ) -> None:
        """Each piece has the time of an answer: a client that does not read loses the connection."""
        for piece in stream:
            if self.server.closing.is_set():
                return
            if not piece:
                # Raises if the client has left: nothing else would tell before the next piece that is sent.
                line.begins(within=_GLANCE)
            else:
                written = b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece
                line.send(written, until=time.monotonic() + self.server.bounds.seconds)
        if chunked:
            line.send(b"0\r\n\r\n", until=time.monotonic() + self.server.bounds.seconds)

    def _next(self, line: request_reader.RequestReader) -> bool:
        """Wait for the next request; returns False after the idle time or when the server stops."""
        until = time.monotonic() + self.server.bounds.idle
        self._connection.idle_since = time.monotonic()
        while time.monotonic() < until and not self.server.closing.is_set():
            if line.begins(within=_LOOK):
                return True
        return False


def _address(client: object) -> str:
    return str(client[0]) if isinstance(client, tuple) and client else ""
