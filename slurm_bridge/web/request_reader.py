"""Reads requests from a connection. One deadline and one size hold for each whole request."""

import dataclasses
import http
import re
import socket
import time
from collections.abc import Mapping
from typing import Final

_END: Final = b"\r\n\r\n"
_PIECE: Final = 1 << 16
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_LENGTH: Final = re.compile(r"[0-9]{1,18}")
#: A token by RFC 9110. Only some servers accept anything else as the name of a header.
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_REQUEST_LINE: Final = re.compile(rf"({_TOKEN.pattern}) ([^ ]+) (HTTP/1\.[0-9])")
#: Control characters besides tabs. A single line feed ends a line for some servers only.
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
#: With two of one of these, a proxy between the client and us may read another request than we do.
_ONCE: Final = frozenset({"authorization", "content-length", "content-type", "host", "transfer-encoding"})


class ClientLeft(ConnectionError):
    """The client closed the connection before its request was complete."""


class RequestRefused(Exception):
    """A request that reaches no route: the status, and what the client can do about it."""

    def __init__(self, status: http.HTTPStatus, words: str = "") -> None:
        super().__init__(words or status.phrase)
        self.status = status


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The request line and the headers."""

    method: str
    target: str
    version: str
    headers: Mapping[str, str] = dataclasses.field(repr=False)

    @property
    def length(self) -> int:
        """The number of bytes that the body is announced to have; 0 where this is not a number."""
        said = self.headers.get("content-length", "0")
        return int(said) if _LENGTH.fullmatch(said) else 0

    @property
    def kept(self) -> bool:
        """Whether the client wants to keep the connection."""
        said = self.headers.get("connection", "").lower()
        return "close" not in said and (self.version != "HTTP/1.0" or "keep-alive" in said)


class RequestReader:
    """Reads one connection; bytes beyond a request are kept for the next one."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._unread = b""

    def begins(self, *, within: float) -> bool:
        """Whether the next request begins within this time."""
        if self._unread:
            return True
        try:
            self._unread = self.receive(_PIECE, until=time.monotonic() + within)
        except TimeoutError:
            return False
        return True

    def head(self, *, until: float, most: int) -> Head:
        """Read the next head. One longer than `most` bytes is refused."""
        while _END not in self._unread:
            if len(self._unread) >= most:
                raise RequestRefused(http.HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            self._unread += self.receive(most - len(self._unread), until=until)
        text, _, self._unread = self._unread.partition(_END)
        return _head(text.decode("latin-1"))

    def body(self, head: Head, *, until: float, most: int) -> bytes:
        """Read the body. A body that announces more than `most` bytes is refused unread."""
        if "transfer-encoding" in head.headers:
            raise RequestRefused(http.HTTPStatus.LENGTH_REQUIRED, "send the body with a Content-Length, not in chunks")
        if not _LENGTH.fullmatch(head.headers.get("content-length", "0")):
            raise RequestRefused(http.HTTPStatus.BAD_REQUEST, "Content-Length has to be a number")
        length = head.length
        if length > most:
            words = f"a body of {length} bytes is too large; at most {most} are allowed"
            raise RequestRefused(http.HTTPStatus.REQUEST_ENTITY_TOO_LARGE, words)
        if length > len(self._unread) and head.headers.get("expect", "").lower() == "100-continue":
            self.send(_CONTINUE, until=until)
        pieces = [self._unread]
        have = len(self._unread)
        while have < length:
            pieces.append(self.receive(min(_PIECE, length - have), until=until))
            have += len(pieces[-1])
        everything = b"".join(pieces)
        self._unread = everything[length:]
        return everything[:length]

    def receive(self, most: int, *, until: float) -> bytes:
        """Read at least one byte before the deadline."""
        self._sock.settimeout(_remaining(until))
        piece = self._sock.recv(most)
        if not piece:
            raise ClientLeft("the connection was closed before the end of the request")
        return piece

    def send(self, words: bytes, *, until: float) -> None:
        """Send everything before the deadline, however slowly the client reads."""
        left = memoryview(words)
        while left:
            self._sock.settimeout(_remaining(until))
            left = left[self._sock.send(left) :]


def _remaining(until: float) -> float:
    remaining = until - time.monotonic()
    if remaining <= 0:
        raise TimeoutError("the client was too slow")
    return remaining


def _head(text: str) -> Head:
    first, *lines = text.split("\r\n")
    words = _REQUEST_LINE.fullmatch(first)
    if words is None:
        raise RequestRefused(http.HTTPStatus.BAD_REQUEST)
    if any(map(_CONTROL.search, (first, *lines))):
        raise RequestRefused(
            http.HTTPStatus.BAD_REQUEST, "lines have to end with CR LF and contain no other control character than tabs"
        )
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        # Servers disagree about a space before the colon and about folded lines.
        if not colon or not _TOKEN.fullmatch(name):
            raise RequestRefused(http.HTTPStatus.BAD_REQUEST, "a header is not `name: value`")
        name, value = name.lower(), value.strip()
        if name in headers and name in _ONCE:
            raise RequestRefused(http.HTTPStatus.BAD_REQUEST, f"header {name}occurs twice")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return Head(method=words[1], target=words[2], version=words[3], headers=headers)
