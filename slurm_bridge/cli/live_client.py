"""The client of the live view of a running daemon. A token is sent to the daemon and shown nowhere."""

import contextlib
import dataclasses
import http
import json
import pathlib
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Any, Final

from slurm_bridge import errors
from slurm_bridge.cli import admin_client, pages
from slurm_bridge.cli.admin_client import TokenSource
from slurm_bridge.view.pages import EXPLAIN, NODE, SNAPSHOT, STREAM, WORKLOAD

_SECONDS: Final = 30.0
#: An explanation lists nodes and pods.
_SLOW: Final = 120.0
#: A stream says at least every 10 s that it is alive.
_SILENCE: Final = 30.0
_MOST_BYTES: Final = 64 << 20
_MOST_LINE: Final = 16 << 20


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LiveClient:
    """Asks the daemon at `url`. Without any source of a token none is sent: on loopback none is needed.

    `assumed`: the user has not named the URL.
    """

    url: str
    credentials: TokenSource
    ca: pathlib.Path | None = None
    plain_http: bool = False
    namespace: str = ""
    assumed: bool = False

    def snapshot(self) -> Mapping[str, Any]:
        """All rows as they are now."""
        return self._asked(SNAPSHOT, self._query())

    def workload(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """Members, jobs and timeline of the workload of this row."""
        return self._asked(WORKLOAD, {key: str(row[key]) for key in ("kind", "namespace", "name", "uid")})

    def node(self, name: str) -> Mapping[str, Any]:
        """The pods on this node."""
        return self._asked(NODE, {"name": name})

    def explain(self, namespace: str, pod: str) -> Mapping[str, Any]:
        """How this pod would be scheduled now."""
        return self._asked(EXPLAIN, {"namespace": namespace, "pod": pod}, _SLOW)

    @contextlib.contextmanager
    def events(self) -> Iterator[Iterator[tuple[str, Mapping[str, Any]]]]:
        """The events of one stream, by name; they end with the connection."""
        path = _path(STREAM, self._query())
        with (
            pages.default_server(assumed=self.assumed),
            pages.stream(
                self.url, path, ca=self.ca, silence=_SILENCE, most_line=_MOST_LINE, headers=self._headers()
            ) as (status, lines),
        ):
            if status != http.HTTPStatus.OK:
                self._refused(status, b"".join(lines))
            yield _events(lines)

    def _query(self) -> Mapping[str, str]:
        return {"namespace": self.namespace} if self.namespace else {}

    def _asked(self, page: str, query: Mapping[str, str], seconds: float = _SECONDS) -> Mapping[str, Any]:
        with pages.default_server(assumed=self.assumed):
            status, body = pages.ask(
                "GET",
                self.url,
                _path(page, query),
                ca=self.ca,
                seconds=seconds,
                most_bytes=_MOST_BYTES,
                headers=self._headers(),
            )
        if status != http.HTTPStatus.OK:
            self._refused(status, body)
        return _object(body)

    def _refused(self, status: int, body: bytes) -> None:
        """Raise the error that this answer stands for."""
        words = f"{self.url} answered {status}"
        with contextlib.suppress(ValueError, errors.BadAnswer):
            words = f"{self.url}: {_object(body).get('message') or status}"
        if status == http.HTTPStatus.NOT_FOUND and b"nothing here" in body:
            words = f"{self.url}: the daemon has no live view: web.live_view.enabled is false"
        if status == http.HTTPStatus.UNAUTHORIZED and self._withheld:
            words += f"; {admin_client.WITHHELD}"
        raise admin_client.ERRORS.get(status, errors.BadAnswer)(words)

    @property
    def _withheld(self) -> bool:
        """There is a token that is not sent."""
        return admin_client.withheld(self.url, self.credentials, assumed=self.assumed, plain_http=self.plain_http)

    def _headers(self) -> Mapping[str, str]:
        if not self.credentials.given or self._withheld:
            return {}
        admin_client.private(self.url, plain_http=self.plain_http)
        return {"Authorization": f"Bearer {self.credentials.token().words}"}


def _path(page: str, query: Mapping[str, str]) -> str:
    return f"{page}?{urllib.parse.urlencode(query)}" if query else page


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(body)
    except ValueError as error:
        raise errors.BadAnswer(f"the live view answered without JSON: {error}") from error
    if not isinstance(found, dict):
        raise errors.BadAnswer("the live view answered without an object")
    return found


def _events(lines: Iterator[bytes]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """By the rules of server-sent events, as far as this server uses them."""
    name = "message"
    for line in lines:
        if line.startswith(b"event: "):
            name = line[7:].decode(errors="replace")
        elif line.startswith(b"data: "):
            yield name, _object(line[6:])
            name = "message"
