"""Kept connections to one server: over TCP, TLS, a unix socket or a proxy, as urllib3 makes them.

Everything that goes wrong while a connection is made is known as such: then nothing was sent. Every read of an answer,
its head included, may only take what is left of the whole, so that a server that sends a byte now and then is
late, too.
"""

import collections
import contextlib
import dataclasses
import functools
import pathlib
import select
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import urllib3
import urllib3.connection
from urllib3 import exceptions

from slurm_bridge import errors
from slurm_bridge.runtime.http import exchange, failures
from slurm_bridge.runtime.http.messages import HttpLimits, HttpRequest, HttpResponse

Now = Callable[[], float]

#: What is left of a deadline that has passed: time limits have to be positive.
_NOTHING = 0.001
_PORTS = {"http": 80, "https": 443}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a server is, and how both sides prove their identity. Nothing is taken from the environment.

    Certificate files are named, not loaded: every new connection reads them again, so they may be renewed in place.
    `tls`, where given, is used instead of the files. Without either the system's authorities are trusted.
    """

    url: str
    unix_socket: str = ""
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    tls: ssl.SSLContext | None = None
    tls_name: str | None = None
    proxy: str = ""
    socket_options: Sequence[tuple[int, int, int]] | None = None

    def __str__(self) -> str:
        """The address without a password that may stand in it."""
        try:
            told = urllib3.util.parse_url(self.url)
        except exceptions.LocationParseError:
            return "an address that cannot be read"
        port = "" if told.port is None else f":{told.port}"
        return f"{told.scheme or 'http'}://{told.host or ''}{port}{self.prefix}"

    @property
    def prefix(self) -> str:
        """What stands before every path, where the server shares its host."""
        return (urllib3.util.parse_url(self.url).path or "").rstrip("/")

    def check(self) -> None:
        """ValueError says what is wrong with the address."""
        try:
            told = urllib3.util.parse_url(self.url)
        except exceptions.LocationParseError:
            raise ValueError("is not an address") from None
        if told.scheme not in ("http", "https") or not told.host:
            raise ValueError("has to begin with http:// or https:// and name a host")


class KeptConnections:
    """Implements messages.HttpPool for one server: urllib3 makes the connections, `exchange` uses them."""

    def __init__(self, server: Endpoint, limits: HttpLimits, now: Now, *, endless: bool = False) -> None:
        self._pool, self._now, self._most = raw_pool(server, limits.connections), now, limits.connections
        if server.unix_socket:
            self._pool.ConnectionCls = functools.partial(_Unix, path=server.unix_socket)  # type: ignore[assignment]
        self._connect, self._whole = limits.connect, float("inf") if endless else limits.whole_answer
        self._host = _host(self._pool)
        self._idle: collections.deque[_Connection] = collections.deque()
        self._closed = False

    def send(self, request: HttpRequest, target: str, headers: Mapping[str, str], silence: float) -> HttpResponse:
        """Raises an error that says whether the request was sent."""
        try:
            written = exchange.written(request, self._host, target, headers)
        except ValueError:
            # Not chained: it may quote the header that cannot be sent.
            raise errors.BadConfiguration(f"{request}: cannot be asked: a header or path cannot be sent") from None
        began = self._now()
        connection = self._kept() or self._new(request)
        sock = connection.sock
        if request.seconds is not None:
            silence = max(_NOTHING, request.seconds - (self._now() - began))
        try:
            sock.settimeout(silence)
            # A server that has closed may have answered before.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                sock.sendall(written)
            deadline = exchange.ReadLimits(self._now, self._whole, silence)
            return exchange.Exchange(request, sock, deadline, functools.partial(self._left, connection))
        except (OSError, exchange.Malformed) as problem:
            connection.close()
            raise failures.while_sending(problem, str(request)) from problem

    def close(self) -> None:
        """Drop idle connections; those in use end with their requests."""
        self._closed = True
        while (connection := self._taken()) is not None:
            connection.close()

    def _kept(self) -> "_Connection | None":
        """The one that was used last, of those that the server has not closed meanwhile."""
        while (connection := self._taken()) is not None:
            if not connection.stale:
                return connection
            connection.close()
        return None

    def _taken(self) -> "_Connection | None":
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _left(self, connection: "_Connection", keep: bool) -> None:
        if keep and not self._closed and len(self._idle) < self._most:
            self._idle.append(connection)
        else:
            connection.close()

    def _new(self, request: HttpRequest) -> "_Connection":
        if self._closed:
            raise errors.Unavailable(f"{request}: not reached: the connections are closed")
        made: Any = self._pool._new_conn()  # noqa: SLF001 - a pool is asked for nothing else
        made.timeout = min(self._connect, request.seconds) if request.seconds is not None else self._connect
        try:
            if self._pool.proxy is not None and self._pool.scheme == "https":
                self._pool._prepare_proxy(made)  # noqa: SLF001 - likewise
            else:
                made.connect()
        except (exceptions.HTTPError, OSError, ValueError) as problem:
            made.close()
            raise failures.while_connecting(problem, str(request)) from problem
        return _Connection(made.sock)


class _Connection:
    """A connection that is made, and whether its server has closed it."""

    __slots__ = ("_poll", "close", "sock")

    def __init__(self, sock: socket.socket) -> None:
        self.sock, self.close = sock, sock.close
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)

    @property
    def stale(self) -> bool:
        """There is something to read before anything was asked, as an end is."""
        return bool(self._poll.poll(0))


def _host(pool: urllib3.HTTPConnectionPool) -> str:
    """What the header of that name says."""
    host = pool.host.partition("%")[0]
    told = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return told if pool.port in (None, _PORTS.get(pool.scheme or "")) else f"{told}:{pool.port}"


def raw_pool(server: Endpoint, connections: int) -> urllib3.HTTPConnectionPool:
    """The library's own pool: what a bare loop is measured with."""
    options: dict[str, Any] = {"maxsize": connections, "socket_options": server.socket_options}
    if server.socket_options is None:
        del options["socket_options"]
    if server.tls is not None:
        options |= {"ssl_context": server.tls, "server_hostname": server.tls_name}
    elif server.url.startswith("https:"):
        bundle, folder = _authorities(server.ca_file)
        options |= {"ca_certs": bundle, "ca_cert_dir": folder}
        options |= {"cert_file": server.cert_file or None, "key_file": server.key_file or None}
    manager = urllib3.ProxyManager(server.proxy, **options) if server.proxy else urllib3.PoolManager(**options)
    return manager.connection_from_url(server.url)


def _authorities(ca_file: str) -> tuple[str | None, str | None]:
    """A file and a folder: our own CA, or the system's. Told neither, OpenSSL would obey SSL_CERT_FILE and _DIR."""
    if ca_file:
        return ca_file, None
    known = ssl.get_default_verify_paths()
    return known.openssl_cafile if pathlib.Path(known.openssl_cafile).is_file() else None, known.openssl_capath


class _Unix(urllib3.connection.HTTPConnection):
    """Dials a path; the host is only what the Host header says."""

    def __init__(self, *args: Any, path: str, **more: Any) -> None:
        super().__init__(*args, **more)
        self._path = path

    def connect(self) -> None:
        dialled = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        dialled.settimeout(self.timeout if isinstance(self.timeout, int | float) else None)
        try:
            dialled.connect(self._path)
        except OSError as problem:
            dialled.close()
            raise exceptions.NewConnectionError(self, f"unix socket {self._path}: {problem}") from None
        self.sock = dialled
