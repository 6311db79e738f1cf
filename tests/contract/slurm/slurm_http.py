"""One HTTP request at a time to slurmrestd, exactly as written: no retries, no classification, no adapter.

The facts are stated through this, so that a mistake of the adapter cannot hide in them.
"""

import dataclasses
import http.client
import json
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any

#: Longer than the longest answer of a slurmrestd whose slurmctld is gone.
SECONDS = 50.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> dict[str, Any]:
        """The body as JSON; empty when it is not."""
        try:
            body = json.loads(self.text)
        except ValueError:
            return {}
        return body if isinstance(body, dict) else {}

    @property
    def job_id(self) -> int:
        """The id of the job that this answer speaks of, 0 when it names none."""
        return int(self.json.get("job_id") or 0)

    @property
    def errors(self) -> list[int]:
        """The numbers of the errors."""
        return [error["error_number"] for error in self.json.get("errors") or []]

    @property
    def complaint(self) -> str:
        """Status and errors in the server's words, for people."""
        told = [str(error.get("description") or error.get("error")) for error in self.json.get("errors") or []]
        return f"{self.status} {'; '.join(told) or self.text[:200]}"

    @property
    def warnings(self) -> str:
        """All warnings as one text."""
        return "\n".join(warning["description"] for warning in self.json.get("warnings") or [])

    @property
    def verdict(self) -> tuple[int, list[int]]:
        """Status and error numbers, the two that the tables of facts have."""
        return self.status, self.errors


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """Where slurmrestd listens, and with which token to knock."""

    url: str
    token: str | None = dataclasses.field(repr=False)

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        headers: Mapping[str, str] | None = None,
        seconds: float = SECONDS,
    ) -> Answer:
        """One request on a connection of its own; `body` is text as it is, or a value for JSON."""
        address = urllib.parse.urlsplit(self.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=seconds)
        try:
            connection.request(method, path, _encode(body), {**self._identity(), **_kind(body), **(headers or {})})
            response = connection.getresponse()
            return _answer(response)
        finally:
            connection.close()

    def ask_in_turn(self, paths: Sequence[str]) -> list[Answer]:
        """Several reads on one connection, which the client opens again only when the server has closed it."""
        address = urllib.parse.urlsplit(self.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=SECONDS)
        answers = []
        try:
            for path in paths:
                connection.request("GET", path, headers=self._identity())
                answers.append(_answer(connection.getresponse()))
        finally:
            connection.close()
        return answers

    def _identity(self) -> dict[str, str]:
        return {} if self.token is None else {"X-SLURM-USER-TOKEN": self.token}


def _encode(body: object) -> bytes | None:
    if body is None:
        return None
    return (body if isinstance(body, str) else json.dumps(body)).encode()


def _kind(body: object) -> dict[str, str]:
    return {} if body is None else {"Content-Type": "application/json"}


def _answer(response: http.client.HTTPResponse) -> Answer:
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Answer(status=response.status, headers=headers, text=response.read().decode(errors="surrogateescape"))
