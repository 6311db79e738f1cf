"""Connections that know when nothing was sent: over TCP, TLS, or a unix socket of slurmrestd beside us.

urllib3 tells a broken TLS handshake and a broken answer with the same errors. Here everything that goes wrong while a
connection is made is told at once as an error of ours, which urllib3 lets pass.
"""

import contextlib
import pathlib
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import urllib3
import urllib3.connection
from urllib3 import exceptions

from slurm_bridge import errors
from slurm_bridge.slurm import failures
from slurm_bridge.slurm.settings import SlurmSettings


class _Tcp(urllib3.connection.HTTPConnection):
    def connect(self) -> None:
        with _connecting():
            super().connect()


class _Tls(urllib3.connection.HTTPSConnection):
    def connect(self) -> None:
        with _connecting():
            super().connect()


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
            raise errors.Unavailable(f"slurmrestd is not reached: unix socket {self._path}: {problem}") from problem
        self.sock = dialled


class _TcpPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Tcp


class _TlsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _Tls


class _UnixPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Unix


def base(settings: SlurmSettings) -> str:
    """What stands before every path, where slurmrestd shares its host."""
    return "" if settings.socket_path is not None else (_address(settings).path or "").rstrip("/")


def pool(settings: SlurmSettings) -> urllib3.HTTPConnectionPool:
    """Kept connections to this slurmrestd, and to nobody else: urllib3's pools take no proxy from the environment."""
    size = settings.connections
    if settings.socket_path is not None:
        return _UnixPool("localhost", maxsize=size, path=settings.socket_path)
    address = _address(settings)
    host, port = address.host or "", address.port
    if address.scheme == "http":
        return _TcpPool(host, port, maxsize=size)
    bundle, folder = _authorities(settings.ca_file)
    # Named, not loaded: every new connection reads the files again, so certificates may be renewed in place.
    return _TlsPool(
        host,
        port,
        maxsize=size,
        cert_file=_text(settings.cert_file),
        key_file=_text(settings.key_file),
        ca_certs=bundle,
        ca_cert_dir=folder,
    )


def _address(settings: SlurmSettings) -> urllib3.util.Url:
    try:
        address = urllib3.util.parse_url(settings.url)
    except exceptions.LocationParseError as problem:
        raise errors.BadConfiguration(f"the address of slurmrestd cannot be used: {settings.url}") from problem
    if not address.host:
        raise errors.BadConfiguration(f"the address of slurmrestd names no host: {settings.url}")
    return address


def _authorities(ca_file: pathlib.Path | None) -> tuple[str | None, str | None]:
    """A file and a folder: our own CA, or the system's. Told neither, OpenSSL would obey SSL_CERT_FILE and _DIR."""
    if ca_file is not None:
        return str(ca_file), None
    known = ssl.get_default_verify_paths()
    return known.openssl_cafile if pathlib.Path(known.openssl_cafile).is_file() else None, known.openssl_capath


def _text(path: pathlib.Path | None) -> str | None:
    return None if path is None else str(path)


@contextlib.contextmanager
def _connecting() -> Iterator[None]:
    try:
        yield
    except (exceptions.HTTPError, OSError, ValueError) as problem:
        raise failures.while_connecting(problem) from problem
