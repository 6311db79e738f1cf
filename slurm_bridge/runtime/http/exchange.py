"""One request and its answer, in the words of HTTP/1.1, on a connection that is made already.

A request is written in one piece. Of an answer the head is read first, and the body as the caller wants it: by its
length, in chunks, or to the end of the connection. What a server says is bounded, and what does not follow the rules
ends the exchange: nothing of an answer that was read wrongly may be taken for the next one.
"""

import re
import socket
from collections.abc import Callable, Iterator, Mapping
from typing import Final
from urllib.parse import quote

from slurm_bridge.runtime.http import failures
from slurm_bridge.runtime.http.messages import HttpRequest

#: Below the size from which malloc maps memory anew for every piece: beyond, megabytes cost 2.5 times as much.
PIECE: Final = 120 << 10
#: Bytes of a head, of the trailers of a body, and of a line that tells the length of a chunk.
_MOST_HEAD: Final = 64 << 10
_MOST_LINE: Final = 4 << 10
_BEGIN: Final = b"HTTP/1."
#: Answers that only say that another one is to come.
_MOST_INTERIM: Final = 10
_INTERIM: Final = frozenset({100, *range(102, 200)})
#: Statuses of answers without a body.
_EMPTY: Final = (204, 304)
_MOST_TRAILERS: Final = 100
#: Lengths of a body, and of a chunk.
_LENGTH: Final = re.compile(r"[0-9]{1,15}").fullmatch
_SIZE: Final = re.compile(rb"[0-9A-Fa-f]{1,12}").fullmatch

_PLAIN_TARGET: Final = re.compile(r"[A-Za-z0-9\-._~!$&'()*+,;=:@/%?]+").fullmatch
_SAFE: Final = "/?%:@!$&'()*+,;=-._~"
_BAD_TARGET: Final = re.compile(r"[\x00-\x20\x7f]").search
_HEADERS: Final = re.compile(r"(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+: [^\x00-\x08\x0a-\x1f\x7f]*\r\n)*").fullmatch
_STATUS: Final = re.compile(r"HTTP/1\.([01]) ([1-9][0-9]{2})(?: .*)?").fullmatch
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})


class Malformed(Exception):
    """The server does not speak HTTP; the message says what is wrong."""


def written(request: HttpRequest, host: str, target: str, headers: Mapping[str, str]) -> bytes:
    """The whole request. ValueError where a header or path cannot be sent."""
    if not _PLAIN_TARGET(target):
        if _BAD_TARGET(target):
            raise ValueError("the path has a control character or a space")
        target = quote(target, safe=_SAFE)
    told = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    if not _HEADERS(told) or told.count("\n") != len(headers):
        raise ValueError("a header has a control character")
    body = request.body or b""
    length = f"content-length: {len(body)}\r\n" if body or request.method in _WITH_BODY else ""
    return f"{request.method} {target} HTTP/1.1\r\nhost: {host}\r\n{told}{length}\r\n".encode("latin-1") + body


class ReadLimits:
    """Until when the socket is read, and how long it may be silent."""

    __slots__ = ("_now", "_silence", "_until")

    def __init__(self, now: Callable[[], float], whole: float, silence: float) -> None:
        self._now, self._silence = now, silence
        self._until = now() + max(whole, silence)

    def more(self, sock: socket.socket) -> bytes:
        """The next bytes; none at the end of the connection. The socket's own limit is the longest silence."""
        left = self._until - self._now()
        if left <= 0:
            raise TimeoutError("no whole answer in time")
        if left < self._silence:
            sock.settimeout(left)
        try:
            # TLS within TLS tells an early end by a zero.
            return sock.recv(PIECE) or b""
        except TimeoutError:
            pass
        raise TimeoutError("silent for too long" if self._silence < left else "no whole answer in time")


class Exchange:
    """Implements messages.HttpResponse. `left` is told once whether the connection may be used again."""

    __slots__ = ("_deadline", "_held", "_keep", "_left", "_pieces", "_request", "_sock", "headers", "status")

    def __init__(
        self, request: HttpRequest, sock: socket.socket, deadline: ReadLimits, left: Callable[[bool], None]
    ) -> None:
        self._request, self._sock, self._deadline = request, sock, deadline
        self._left: Callable[[bool], None] | None = left
        self._held = b""
        self.status, self.headers, self._keep = self._head()
        self._pieces = self._body()

    def read(self) -> bytes:
        """The next piece of the body; none at its end."""
        try:
            piece = next(self._pieces, b"")
        except (OSError, ValueError, Malformed) as problem:
            self._leave(whole=False)
            raise failures.while_reading(problem, str(self._request)) from problem
        if not piece:
            self._leave(whole=True)
        return piece

    def close(self) -> None:
        """Give the connection up, unless the body was read to its end."""
        self._leave(whole=False)

    def shutdown(self) -> None:
        """Wake the thread that reads; after the end the connection may be another's."""
        if self._left is not None:
            # TLS within TLS has no such method of its own.
            getattr(self._sock, "socket", self._sock).shutdown(socket.SHUT_RD)

    def _leave(self, *, whole: bool) -> None:
        left, self._left = self._left, None
        if left is not None:
            self._pieces = iter(())
            left(whole and self._keep and not self._held)

    def _head(self) -> tuple[int, Mapping[str, str], bool]:
        """Status, headers by their names in small letters, and whether the connection stays open."""
        for number in range(_MOST_INTERIM):
            first, _, rest = self._until_empty_line(begun=number > 0).partition("\r\n")
            told = _STATUS(first)
            if told is None:
                raise Malformed("no head of HTTP/1.1")
            status = int(told[2])
            if status not in _INTERIM:
                headers = _fields(rest)
                return status, headers, told[1] == "1" and "close" not in headers.get("connection", "").lower()
        raise Malformed("no answer but interim ones")

    def _until_empty_line(self, *, begun: bool) -> str:
        """The next head; `begun`: the server has said something, so that it has read the request."""
        while (end := self._held.find(b"\r\n\r\n", 0, _MOST_HEAD)) < 0:
            if len(self._held) >= _MOST_HEAD:
                raise Malformed(f"a head of more than {_MOST_HEAD} bytes")
            begun = begun or bool(self._held)
            try:
                piece = self._deadline.more(self._sock)
            except ConnectionResetError:
                if not begun:
                    raise
                piece = b""
            if not piece and not begun:
                raise ConnectionResetError("closed by the server without an answer")
            if not piece:
                raise Malformed("the head ended early")
            self._held += piece
            if self._held[: len(_BEGIN)] != _BEGIN[: len(self._held)]:
                # A server of another protocol may wait for us to go on.
                raise Malformed("no head of HTTP/1.1")
        head, self._held = self._held[:end], self._held[end + 4 :]
        return head.decode("latin-1")

    def _body(self) -> Iterator[bytes]:
        coding, length = self.headers.get("transfer-encoding"), self.headers.get("content-length")
        if self.status in _EMPTY:
            return iter(())
        if coding is not None:
            return self._chunks() if coding.lower() == "chunked" else _refused("a transfer encoding without a need")
        if length is None:
            self._keep = False
            return iter(self._next, b"")
        return self._whole(int(length)) if _LENGTH(length) else _refused("a length that is no number")

    def _next(self, most: int = PIECE) -> bytes:
        """What was read already, or what comes next, at most so much; none at the end of the connection."""
        piece = self._held or self._deadline.more(self._sock)
        self._held = piece[most:]
        return piece[:most] if self._held else piece

    def _whole(self, left: int) -> Iterator[bytes]:
        while left:
            piece = self._next(left)
            if not piece:
                raise Malformed(f"{left} bytes are missing")
            left -= len(piece)
            yield piece

    def _chunks(self) -> Iterator[bytes]:
        """All chunks that have come are one piece."""
        ready: list[bytes] = []
        while True:
            if ready and b"\n" not in self._held:
                yield b"".join(ready)
                ready.clear()
            left = self._size()
            if not left:
                break
            for piece in self._whole(left):
                ready.append(piece)
                if not self._held:
                    yield b"".join(ready)
                    ready.clear()
            if self._line():
                raise Malformed("a chunk that is longer than its length")
        for _ in range(_MOST_TRAILERS):
            if not self._line():
                break
        else:
            raise Malformed("too many trailers")
        if ready:
            yield b"".join(ready)

    def _size(self) -> int:
        """The length that stands before a chunk."""
        text = self._line().partition(b";")[0].strip()
        if not _SIZE(text):
            raise Malformed("a chunk without a length")
        return int(text, 16)

    def _line(self) -> bytes:
        while (end := self._held.find(b"\r\n", 0, _MOST_LINE)) < 0:
            if len(self._held) >= _MOST_LINE:
                raise Malformed(f"a line of more than {_MOST_LINE} bytes")
            piece = self._deadline.more(self._sock)
            if not piece:
                raise Malformed("the last chunk is missing")
            self._held += piece
        line, self._held = self._held[:end], self._held[end + 2 :]
        return line


def _fields(text: str) -> Mapping[str, str]:
    """Headers by name; one that comes twice has both values."""
    found: dict[str, str] = {}
    for line in text.split("\r\n") if text else ():
        name, colon, value = line.partition(":")
        if not colon or name != name.strip() or not name:
            raise Malformed("a header that is none")
        name, value = name.lower(), value.strip()
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def _refused(why: str) -> Iterator[bytes]:
    """A body that cannot be read."""
    raise Malformed(why)
    yield b""
