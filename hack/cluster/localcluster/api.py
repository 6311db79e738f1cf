"""The few calls to the Kubernetes API that setting up a cluster needs, on kept connections, as the administrator."""

import http.client
import json
import ssl
import threading
from typing import Any
from urllib.parse import quote

from localcluster import certs, manifests
from localcluster.config import Config
from localcluster.part import PartError

_SECONDS = 10.0
_FIELD_MANAGER = "local-cluster"
#: YAML is a superset of JSON, so one content type serves manifests from files and from here.
_APPLY = "application/apply-patch+yaml"


class ApiError(PartError):
    """The API server refused."""

    def __init__(self, call: str, status: int, message: str) -> None:
        super().__init__(f"{call}: {status} {message}")
        self.status = status


class Client:
    """One connection per thread; a connection that the server closed meanwhile is replaced once."""

    def __init__(self, config: Config) -> None:
        if not certs.present(config):
            raise PartError("there are no credentials yet")
        self._port = config.port("apiserver")
        self._context = ssl.create_default_context(cafile=certs.path(config, "ca.crt"))
        self._authorization = f"Bearer {certs.token(config, 'admin')}"
        self._local = threading.local()

    def get(self, path: str) -> Any:
        return self.call("GET", path)

    def find(self, path: str) -> Any | None:
        """The object, or None when there is none."""
        try:
            return self.get(path)
        except ApiError as error:
            if error.status == http.client.NOT_FOUND:
                return None
            raise

    def create(self, path: str, body: dict[str, Any]) -> Any:
        return self.call("POST", path, json.dumps(body).encode())

    def delete(self, path: str) -> None:
        """A missing object is as good as a deleted one."""
        try:
            self.call("DELETE", path)
        except ApiError as error:
            if error.status != http.client.NOT_FOUND:
                raise

    def apply(self, document: manifests.Document) -> None:
        """Server-side apply: creates or converges, and never takes what it does not name."""
        path = f"{document.path}?fieldManager={quote(_FIELD_MANAGER)}&force=true"
        self.call("PATCH", path, document.text.encode(), _APPLY)

    def call(self, method: str, path: str, body: bytes | None = None, kind: str = "application/json") -> Any:
        headers = {"Authorization": self._authorization, "Content-Type": kind, "Accept": "application/json"}
        try:
            status, answer = self._exchange(method, path, body, headers)
        except (OSError, http.client.HTTPException) as error:
            raise PartError(f"{method} {path}: {error}") from error
        content = json.loads(answer) if answer else {}
        if status >= http.client.BAD_REQUEST:
            raise ApiError(f"{method} {path}", status, content.get("message", ""))
        return content

    def _exchange(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
        try:
            return self._once(method, path, body, headers)
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            return self._once(method, path, body, headers)  # the kept connection was closed while idle

    def _once(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
        connection = self._connection()
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, response.read()
        except BaseException:
            connection.close()
            raise

    def _connection(self) -> http.client.HTTPSConnection:
        connection: http.client.HTTPSConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = http.client.HTTPSConnection("127.0.0.1", self._port, timeout=_SECONDS, context=self._context)
            self._local.connection = connection
        return connection
