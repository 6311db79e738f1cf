"""Kept connections whose answers have one deadline, however slowly they drip.

urllib3's time limits are for each read: a server that sends a byte now and then would never be late. Here every read of
an answer, its head included, may only take what is left of the whole.
"""

import dataclasses
import http.client
import io
import pathlib
import socket
import ssl
from collections.abc import Callable
from typing import Any

import urllib3
import urllib3.connection
from urllib3 import exceptions

Now = Callable[[], float]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A service; its text is for messages and holds no password that somebody may have written into the address."""

    url: str
    ca_file: str = ""

    def __str__(self) -> str:
        try:
            told = urllib3.util.parse_url(self.url)
        except exceptions.LocationParseError:
            return "an address that cannot be read"
        port = "" if told.port is None else f":{told.port}"
        return f"{told.scheme or 'http'}://{told.host or ''}{port}{(told.path or '').rstrip('/')}"


class _Reader(io.RawIOBase):
    """A socket's bytes until a moment."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, now: Now, until: float) -> None:
        self._raw, self._sock, self._now, self._until = raw, sock, now, until

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        left = self._until - self._now()
        if left <= 0:
            raise TimeoutError("the answer takes too long")
        self._sock.settimeout(left)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        super().close()
        self._raw.close()


def _timed(connection: urllib3.connection.HTTPConnection, now: Now) -> Callable[..., http.client.HTTPResponse]:
    """Makes the connection's answers; its time limit is by then what urllib3 has left of the request's whole."""

    def made(sock: socket.socket, *args: Any, **more: Any) -> http.client.HTTPResponse:
        response = http.client.HTTPResponse(sock, *args, **more)
        until = now() + float(connection.timeout or 0)
        response.fp = io.BufferedReader(_Reader(response.fp.detach(), sock, now, until))
        return response

    return made


class _Tcp(urllib3.connection.HTTPConnection):
    def __init__(self, *args: Any, now: Now, **more: Any) -> None:
        super().__init__(*args, **more)
        self.response_class = _timed(self, now)  # type: ignore[assignment]


class _Tls(urllib3.connection.HTTPSConnection):
    def __init__(self, *args: Any, now: Now, **more: Any) -> None:
        super().__init__(*args, **more)
        self.response_class = _timed(self, now)  # type: ignore[assignment]


class _TcpPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Tcp


class _TlsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _Tls


def pool(address: Address, now: Now, *, connections: int) -> urllib3.HTTPConnectionPool:
    """Connections to this service and to nobody else: no proxy is taken from the environment.

    ValueError says what is wrong with the address.
    """
    told = _parsed(address.url)
    host, port = told.host or "", told.port
    if told.scheme == "http":
        return _TcpPool(host, port, maxsize=connections, now=now)
    bundle, folder = _authorities(address.ca_file)
    # Named, not loaded: every new connection reads the files again, so certificates may be renewed in place.
    return _TlsPool(host, port, maxsize=connections, ca_certs=bundle, ca_cert_dir=folder, now=now)


def base(address: Address) -> str:
    """What stands before every path."""
    return (_parsed(address.url).path or "").rstrip("/")


def _parsed(url: str) -> urllib3.util.Url:
    try:
        told = urllib3.util.parse_url(url)
    except exceptions.LocationParseError:
        raise ValueError("is not an address") from None
    if told.scheme not in ("http", "https") or not told.host:
        raise ValueError("has to begin with http:// or https:// and name a host")
    return told


def _authorities(ca_file: str) -> tuple[str | None, str | None]:
    """A file and a folder: our own CA, or the system's. Told neither, OpenSSL would obey SSL_CERT_FILE and _DIR."""
    if ca_file:
        return ca_file, None
    known = ssl.get_default_verify_paths()
    return known.openssl_cafile if pathlib.Path(known.openssl_cafile).is_file() else None, known.openssl_capath
