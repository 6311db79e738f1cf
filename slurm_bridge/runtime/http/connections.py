"""Pools of urllib3 whose connections know when nothing was sent, and whose answers have one deadline.

urllib3 tells a broken TLS handshake and a broken answer with the same errors; here everything that goes wrong while a
connection is made is known as such. Its time limits are for each read, so that a server that sends a byte now and then
would never be late; here every read of an answer, its head included, may only take what is left of the whole.
"""

import dataclasses
import functools
import http.client
import io
import pathlib
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import urllib3
import urllib3.connection
from urllib3 import exceptions

from slurm_bridge import errors
from slurm_bridge.runtime.http import failures
from slurm_bridge.runtime.http.messages import Limits, Request, Response

Now = Callable[[], float]

_NEVER = urllib3.Retry(total=False, redirect=False)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Where a server is, and how both sides prove who they are. Nothing is taken from the environment.

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
        """The address without a password that somebody may have written into it."""
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


class Urllib3Pool:
    """Implements messages.Pool for one server."""

    def __init__(self, server: Server, limits: Limits, now: Now, *, endless: bool = False) -> None:
        self._connect = limits.connect
        self._pool = raw_pool(server, limits.connections)
        kind: type[_Tcp | _Tls | _Unix] = _Tls if self._pool.scheme == "https" else _Tcp
        more: dict[str, str] = {}
        if server.unix_socket:
            kind, more = _Unix, {"path": server.unix_socket}
        whole = float("inf") if endless else limits.whole_answer
        self._pool.ConnectionCls = functools.partial(kind, now=now, whole=whole, **more)  # type: ignore[assignment]

    def send(self, request: Request, target: str, headers: Mapping[str, str], silence: float) -> Response:
        """Raises an error that says whether the request was sent."""
        if request.seconds is None:
            timeout = urllib3.Timeout(connect=self._connect, read=silence)
        else:
            timeout = urllib3.Timeout(connect=min(self._connect, request.seconds), total=request.seconds)
        try:
            response = self._pool.urlopen(
                request.method,
                target,
                body=request.body,
                headers=headers,
                timeout=timeout,
                retries=_NEVER,
                redirect=False,
                preload_content=False,
                # Asked for or not: a few packed bytes become more than the limit before they are counted.
                decode_content=False,
            )
        except _Unsent as unsent:
            raise failures.while_connecting(unsent.problem, str(request)) from unsent.problem
        except (exceptions.HTTPError, OSError) as problem:
            raise failures.while_sending(problem, str(request)) from problem
        except ValueError:
            # Not chained: http.client quotes the header that it cannot send.
            raise errors.BadConfiguration(f"{request}: cannot be asked: a header or path cannot be sent") from None
        return _Response(request, response)

    def close(self) -> None:
        """Drop idle connections; those in use end with their requests."""
        self._pool.close()


class _Response:
    """Implements messages.Response."""

    __slots__ = ("_request", "_response", "headers", "status")

    def __init__(self, request: Request, response: urllib3.BaseHTTPResponse) -> None:
        self._request, self._response = request, response
        self.status, self.headers = response.status, response.headers

    def read(self, amt: int, /) -> bytes:
        try:
            return self._response.read(amt)
        except (exceptions.HTTPError, OSError, ValueError) as problem:
            raise failures.while_reading(problem, str(self._request)) from problem

    def read1(self, amt: int, /) -> bytes:
        try:
            return self._response.read1(amt)
        except (exceptions.HTTPError, OSError, ValueError) as problem:
            raise failures.while_reading(problem, str(self._request)) from problem

    def close(self) -> None:
        self._response.close()

    def shutdown(self) -> None:
        self._response.shutdown()


def raw_pool(server: Server, connections: int) -> urllib3.HTTPConnectionPool:
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


class _Unsent(Exception):
    """Carries past urllib3 what went wrong while a connection was made."""

    def __init__(self, problem: Exception) -> None:
        super().__init__()
        self.problem = problem


class _Reader(io.RawIOBase):
    """A socket's bytes until a moment, and never after a silence that is too long."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, now: Now, until: float, silence: float) -> None:
        self._raw, self._sock, self._now, self._until, self._silence = raw, sock, now, until, silence

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        left = self._until - self._now()
        if left <= 0:
            raise TimeoutError("no whole answer in time")
        if left < self._silence:
            self._sock.settimeout(left)
        try:
            return self._sock.recv_into(buffer)
        except TimeoutError:
            pass
        raise TimeoutError("silent for too long" if self._silence < left else "no whole answer in time")

    def close(self) -> None:
        super().close()
        self._raw.close()


class _Timed(urllib3.connection.HTTPConnection):
    """The part that connections of all kinds share."""

    def __init__(self, *args: Any, now: Now, whole: float, **more: Any) -> None:
        super().__init__(*args, **more)
        self._now, self._whole = now, whole
        self.response_class = self._response  # type: ignore[assignment]

    def connect(self) -> None:
        try:
            super().connect()
        except (exceptions.HTTPError, OSError, ValueError) as problem:
            raise _Unsent(problem) from problem

    def _response(self, sock: socket.socket, *args: Any, **more: Any) -> http.client.HTTPResponse:
        """By now the connection's time limit is the longest silence, or what is left of the request's own deadline."""
        response = http.client.HTTPResponse(sock, *args, **more)
        silence = float(self.timeout or 0)
        until = self._now() + max(self._whole, silence)
        response.fp = io.BufferedReader(_Reader(response.fp.detach(), sock, self._now, until, silence))
        return response


class _Tcp(_Timed):
    pass


class _Tls(_Timed, urllib3.connection.HTTPSConnection):
    pass


class _UnixSocket(urllib3.connection.HTTPConnection):
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


class _Unix(_Timed, _UnixSocket):
    pass
