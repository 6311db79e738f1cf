"""The answers of routes."""

import dataclasses
import http
import json
from collections.abc import Generator, Mapping
from typing import Self

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A complete answer; or, with `stream`, the beginning of one that is sent piece by piece.

    An empty piece sends nothing: it lets the server look whether it has to stop, or the client has left. The connection
    ends with the stream.
    """

    body: bytes = b""
    status: http.HTTPStatus = http.HTTPStatus.OK
    content_type: str = TEXT
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    stream: Generator[bytes, None, None] | None = None

    def __post_init__(self) -> None:
        for name, value in self.headers.items():
            # A line break in a value that came from a client would let the client add headers, or a second answer.
            if not f"{name}{value}".isprintable():
                raise ValueError(f"header {name!r} of a reply: {value!r} has characters that cannot be sent")

    @classmethod
    def text(cls, words: str, status: http.HTTPStatus = http.HTTPStatus.OK, **headers: str) -> Self:
        """Text for people; `retry_after="1"` becomes a header."""
        return cls(body=words.encode(), status=status, headers=_spelled(headers))

    @classmethod
    def json(cls, value: object, status: http.HTTPStatus = http.HTTPStatus.OK, **headers: str) -> Self:
        """A JSON value; `retry_after="1"` becomes a header."""
        body = json.dumps(value).encode() + b"\n"
        return cls(body=body, status=status, content_type=JSON, headers=_spelled(headers))


def _spelled(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-").title(): value for name, value in headers.items()}
