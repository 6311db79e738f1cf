"""Both servers without our adapters: a kept connection, a body, and the answer's bytes.

This is what the raw loop and the loader speak: as little work around a call as Python allows.
"""

import http
import pathlib
from collections.abc import Mapping

import urllib3

from slurm_bridge.kube import config
from slurm_bridge.runtime.http.connections import raw_pool

_TIMEOUT = urllib3.Timeout(connect=5, read=60)


class Refused(Exception):
    """A server answered anything but success."""


class Server:
    """Calls on one pool of connections."""

    def __init__(self, pool: urllib3.HTTPConnectionPool, prefix: str, headers: Mapping[str, str]) -> None:
        self._pool = pool
        self._prefix = prefix
        self._headers = {**headers, "content-type": "application/json", "accept": "application/json"}

    def call(self, method: str, path: str, body: bytes | None = None, content_type: str = "") -> bytes:
        """The body of a success; anything else is raised with the server's words."""
        headers = {**self._headers, "content-type": content_type} if content_type else self._headers
        response = self._pool.urlopen(
            method, self._prefix + path, body=body, headers=headers, timeout=_TIMEOUT, retries=False
        )
        if response.status >= http.HTTPStatus.MULTIPLE_CHOICES:
            raise Refused(f"{method} {path[:100]}: {response.status} {response.data[:500]!r}")
        return response.data


def kubernetes(kubeconfig: pathlib.Path, connections: int) -> Server:
    """The API server."""
    access = config.from_kubeconfig(kubeconfig)
    return Server(raw_pool(access.server, connections), "", access.headers())


def slurm(url: str, token_file: pathlib.Path, version: str, connections: int) -> Server:
    """slurmrestd."""
    token = token_file.read_text().strip().removeprefix("SLURM_JWT=")
    address = urllib3.util.parse_url(url)
    assert address.host is not None
    pool = urllib3.HTTPConnectionPool(address.host, address.port, maxsize=connections)
    return Server(pool, f"/slurm/{version}", {"x-slurm-user-token": token})
