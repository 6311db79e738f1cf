"""A small HTTP/1.1 server for the pocket servers: fast enough for load tests, and able to break on purpose.

The standard library's server answers about a thousand calls per second and cannot drop an answer on purpose. This one
keeps connections, bounds bodies, streams watches piece by piece, closes everything at once when it stops, and asks
`sim.faults` for faults.
"""

import contextlib
import socket
import ssl
import threading
import urllib.parse
from pathlib import Path
from types import TracebackType
from typing import Self

from slurm_bridge.sim import connection
from slurm_bridge.sim import faults as faults_
from slurm_bridge.sim.wire import Handler, Request, Response

__all__ = ["Handler", "Request", "Response", "Server"]

#: `stop` waits this long for the threads of connections, whose sockets are closed by then.
_PATIENCE = 2.0


class Server:
    """Serves a handler on loopback, or on a Unix socket; after `stop` it may start again at the same address."""

    def __init__(
        self,
        handler: Handler,
        *,
        faults: faults_.Faults | None = None,
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        unix_socket: Path | None = None,
    ) -> None:
        self.faults = faults if faults is not None else faults_.Faults()
        self._handler = handler
        self._port = port
        self._tls = tls
        self._unix_socket = unix_socket
        self._lock = threading.Lock()
        self._listening: socket.socket | None = None
        self._accepting: threading.Thread | None = None
        self._stopping = threading.Event()
        self._open: dict[socket.socket, threading.Thread] = {}

    @property
    def url(self) -> str:
        """Where it listens; a Unix socket is written http+unix://, its path quoted."""
        if self._unix_socket is not None:
            return "http+unix://" + urllib.parse.quote(str(self._unix_socket), safe="")
        if not self._port:
            raise RuntimeError("the port is known once the server has been started")
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._port}"

    def start(self) -> Self:
        """Listen and serve, in its own threads."""
        if self._listening is not None:
            raise RuntimeError("already started")
        self._stopping = threading.Event()
        self._listening = self._listen()
        name = f"pocket-accept {self.url}"
        self._accepting = threading.Thread(
            target=self._accept, args=(self._listening, self._stopping), name=name, daemon=True
        )
        self._accepting.start()
        return self

    def stop(self) -> None:
        """Close every connection and stream at once; harmless if it is stopped already."""
        if self._listening is None or self._accepting is None:
            return
        self._stopping.set()
        _hang_up(self._listening)
        self._accepting.join(_PATIENCE)
        self._listening.close()
        self._listening = None
        self.hang_up()
        if self._unix_socket is not None:
            self._unix_socket.unlink(missing_ok=True)

    def hang_up(self) -> None:
        """Close all current connections, like a proxy that restarts; new ones are accepted unless it is stopped."""
        with self._lock:
            connections = dict(self._open)
        for sock in connections:
            _hang_up(sock)
        if self._stopping.is_set():
            self.faults.release()
            for thread in connections.values():
                thread.join(_PATIENCE)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _listen(self) -> socket.socket:
        if self._unix_socket is not None:
            listening = socket.socket(socket.AF_UNIX)
            self._unix_socket.unlink(missing_ok=True)
            listening.bind(str(self._unix_socket))
        else:
            listening = socket.socket(socket.AF_INET)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(("127.0.0.1", self._port))
            self._port = listening.getsockname()[1]
        listening.listen(1024)
        return listening

    def _accept(self, listening: socket.socket, stopping: threading.Event) -> None:
        while not stopping.is_set():
            try:
                sock, _ = listening.accept()
            except OSError:
                return  # the socket was shut down, which is how `stop` wakes this thread
            thread = threading.Thread(target=self._serve, args=(sock, stopping), name="pocket-call", daemon=True)
            with self._lock:
                self._open[sock] = thread
            try:
                thread.start()
            except RuntimeError:  # the system has no further thread: the next client is served
                with self._lock:
                    del self._open[sock]
                sock.close()

    def _serve(self, sock: socket.socket, stopping: threading.Event) -> None:
        talking: socket.socket = sock
        try:
            talking = self._secure(sock)
            connection.Connection(talking, self._handler, self.faults, stopping).serve()
        except OSError:
            pass  # it closed before the handshake, or has no TLS certificate that we trust
        finally:
            with self._lock:
                self._open.pop(sock, None)
                self._open.pop(talking, None)
            talking.close()

    def _secure(self, sock: socket.socket) -> socket.socket:
        if sock.family == socket.AF_INET:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is None:
            return sock
        sock.settimeout(_PATIENCE)
        wrapped = self._tls.wrap_socket(sock, server_side=True)
        wrapped.settimeout(None)
        with self._lock:
            self._open[wrapped] = self._open.pop(sock)
        return wrapped


def _hang_up(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it may be closed already
        sock.shutdown(socket.SHUT_RDWR)
