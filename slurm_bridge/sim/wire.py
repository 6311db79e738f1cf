"""Requests and answers of the pocket servers, as records and as bytes of HTTP/1.1."""

import dataclasses
import urllib.parse
from collections.abc import Callable, Iterator, Mapping

#: Longer than any address that a pocket server answers by itself.
MOST_HEAD = 256 * 1024
MOST_BODY = 32 * 1024 * 1024

_PHRASES = {200: "OK", 201: "Created", 202: "Accepted", 204: "No Content", 404: "Not Found"}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request; header names are lower case. If it is not `patient`, a stream ends instead of waiting."""

    method: str
    path: str
    query: Mapping[str, list[str]] = dataclasses.field(default_factory=dict)
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    body: bytes = b""
    target: str = ""
    patient: bool = True

    def asked(self, name: str, default: str = "") -> str:
        """The first value of a query parameter."""
        values = self.query.get(name)
        return values[0] if values else default


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """One answer. An iterator is streamed chunk by chunk; an empty piece only checks that the client is connected."""

    status: int = 200
    body: bytes | Iterator[bytes] = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    close: bool = False


Handler = Callable[[Request], Response]


class BadRequest(Exception):
    """The bytes are no request that this server reads."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def parse_query(text: str) -> dict[str, list[str]]:
    """The parameters of a query."""
    return urllib.parse.parse_qs(text, keep_blank_values=True) if text else {}


def parse_head(head: bytes) -> tuple[str, str, dict[str, str]]:
    """Method, target and headers."""
    first, *lines = head.decode("latin-1").split("\r\n")
    method, _, rest = first.partition(" ")
    target, _, version = rest.rpartition(" ")
    if not target or not version.startswith("HTTP/1."):
        raise BadRequest(400, "malformed request line")
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise BadRequest(400, "malformed header")
        headers[name.strip().lower()] = value.strip()
    if version == "HTTP/1.0":
        headers.setdefault("connection", "close")
    return method, target, headers


def body_length(headers: Mapping[str, str]) -> int:
    """The number of bytes after the head."""
    if "transfer-encoding" in headers:
        raise BadRequest(411, "chunked bodies are not accepted")
    length = headers.get("content-length", "0")
    if not length.isdigit():
        raise BadRequest(400, "malformed content-length")
    if int(length) > MOST_BODY:
        raise BadRequest(413, "body too large")
    return int(length)


def head(response: Response, length: int | None) -> bytes:
    """The head of an answer; without a length, its body is chunked."""
    lines = [f"HTTP/1.1 {response.status} {_PHRASES.get(response.status, 'Status')}"]
    lines.append(f"Content-Type: {response.content_type}")
    lines.append("Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}")
    lines.extend(f"{name}: {value}" for name, value in response.headers.items())
    if response.close:
        lines.append("Connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
