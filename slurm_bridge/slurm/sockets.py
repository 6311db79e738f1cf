"""HTTP over a unix socket, for slurmrestd beside us on the same machine.

`requests` only knows addresses with a host; this adapter gives its connection pool a connection that dials a path.
"""

import socket
from typing import Any

import requests
import requests.adapters
import urllib3
import urllib3.connection
import urllib3.exceptions

#: What stands in URLs in place of a host; it is sent as the Host header and resolved by nobody.
BASE_URL = "http://localhost"


class _Connection(urllib3.connection.HTTPConnection):
    """Dials a path instead of a host."""

    path = ""

    def _new_conn(self) -> socket.socket:
        dialled = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        dialled.settimeout(self.timeout if isinstance(self.timeout, int | float) else None)
        try:
            dialled.connect(self.path)
        except OSError as problem:
            dialled.close()
            raise urllib3.exceptions.NewConnectionError(self, f"unix socket {self.path}: {problem}") from problem
        return dialled


class _Pool(urllib3.HTTPConnectionPool):
    """Keeps connections to one socket."""

    def __init__(self, path: str, size: int) -> None:
        super().__init__("localhost", maxsize=size)
        self._path = path

    def _new_conn(self) -> Any:
        made: Any = super()._new_conn()
        made.path = self._path
        return made

    ConnectionCls = _Connection


class UnixAdapter(requests.adapters.HTTPAdapter):
    """Sends every request of a session to one unix socket."""

    def __init__(self, path: str, size: int) -> None:
        super().__init__(max_retries=0)
        self._unix_pool = _Pool(path, size)

    def get_connection_with_tls_context(self, *_: Any, **__: Any) -> _Pool:
        """The same pool, whatever the URL says."""
        return self._unix_pool

    def close(self) -> None:
        """Drop all kept connections."""
        self._unix_pool.close()
        super().close()
