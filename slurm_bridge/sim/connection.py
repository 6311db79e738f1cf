"""One client's connection to a pocket server: reads requests, sends answers, and injects faults between them."""

import contextlib
import socket
import ssl
import struct
import threading
import urllib.parse
from collections.abc import Generator, Iterator, Mapping

from slurm_bridge.sim import faults as faults_
from slurm_bridge.sim import wire


class _Over(Exception):
    """The connection ends here."""


class Connection:
    """Serves the requests of one connection, one after the other."""

    def __init__(
        self, sock: socket.socket, handler: wire.Handler, faults: faults_.Faults, stopping: threading.Event
    ) -> None:
        self._socket = sock
        self._handler = handler
        self._faults = faults
        self._stopping = stopping
        self._unread = b""

    def serve(self) -> None:
        """Serve until either side closes the connection."""
        try:
            while (request := self._read()) is not None:
                if not self._obey(request) or request.headers.get("connection", "").lower() == "close":
                    break
        except (_Over, OSError):
            pass  # the client or the server closed the connection: there is no receiver for an error
        except wire.BadRequest as refusal:
            with contextlib.suppress(OSError):
                self._send(wire.Response(status=refusal.status, body=str(refusal).encode(), close=True), None)
        finally:
            self._socket.close()

    def _obey(self, request: wire.Request) -> bool:
        """Answer the request; returns whether the connection stays open."""
        fault = self._faults.strike(request.method, request.target)
        if fault is not None:
            self._before(request, fault)
        if isinstance(fault, faults_.Answer):
            response = wire.Response(
                status=fault.status, body=fault.body, content_type=fault.content_type, headers=dict(fault.headers)
            )
        else:
            response = self._handler(request)
        if fault is not None:
            response = self._after(request, fault, response)
        self._note(request, response.status)
        self._send(response, fault)
        return not response.close

    def _note(self, request: wire.Request, status: int) -> None:
        self._faults.note(faults_.Call(method=request.method, target=request.target, status=status))

    def _before(self, request: wire.Request, fault: faults_.Fault) -> None:
        match fault:
            case faults_.Delay(seconds):
                self._stopping.wait(seconds)
            case faults_.Meanwhile(action):
                action()
            case faults_.Hang(acted=False) | faults_.Reset(acted=False):
                self._vanish(request, fault)

    def _after(self, request: wire.Request, fault: faults_.Fault, response: wire.Response) -> wire.Response:
        match fault:
            case faults_.Hang() | faults_.Reset() | faults_.Drop():
                self._vanish(request, fault)
            case faults_.Garble(_, content_type, status):
                body = fault.sent(response.body)
                return wire.Response(status=status or response.status, body=body, content_type=content_type)
        return response

    def _vanish(self, request: wire.Request, fault: faults_.Fault) -> None:
        # Counted before the call is in the journal: a test that sees the call and releases it means this call, too.
        releases = self._faults.releases
        self._note(request, 0)
        if isinstance(fault, faults_.Hang) and not self._stopping.is_set():
            self._faults.hang(releases)
        if isinstance(fault, faults_.Reset):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise _Over

    def _send(self, response: wire.Response, fault: faults_.Fault | None) -> None:
        if isinstance(response.body, bytes):
            body = response.body[: fault.after] if isinstance(fault, faults_.Truncate) else response.body
            self._socket.sendall(wire.head(response, len(response.body)) + body)
            if isinstance(fault, faults_.Truncate):
                raise _Over
            return
        self._socket.sendall(wire.head(response, None))
        with contextlib.closing(_closable(response.body)) as pieces:
            self._stream(pieces, fault.after if isinstance(fault, faults_.Cut) else None)

    def _stream(self, pieces: Iterator[bytes], cut: int | None) -> None:
        sent = 0
        while sent != cut and (piece := next(pieces, None)) is not None:
            if self._stopping.is_set() or (not piece and self._client_left()):
                raise _Over
            if piece:
                self._socket.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))
                sent += 1
        if sent == cut:
            raise _Over
        self._socket.sendall(b"0\r\n\r\n")

    def _client_left(self) -> bool:
        if isinstance(self._socket, ssl.SSLSocket):
            return False  # TLS cannot peek; the next piece will tell
        try:
            return not self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False

    def _read(self) -> wire.Request | None:
        while (end := self._unread.find(b"\r\n\r\n")) < 0:
            if len(self._unread) > wire.MOST_HEAD:
                raise wire.BadRequest(431, "head too large")
            piece = self._socket.recv(65536)
            if not piece:
                return None
            self._unread += piece
        method, target, headers = wire.parse_head(self._unread[:end])
        body = self._read_body(end + 4, headers)
        path, _, query = target.partition("?")
        return wire.Request(
            method=method,
            path=urllib.parse.unquote(path),
            query=wire.parse_query(query),
            headers=headers,
            body=body,
            target=target,
        )

    def _read_body(self, start: int, headers: Mapping[str, str]) -> bytes:
        length = wire.body_length(headers)
        if length and headers.get("expect", "").lower() == "100-continue":
            self._socket.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        pieces = [self._unread[start:]]
        have = len(pieces[0])
        while have < length:
            pieces.append(self._socket.recv(min(1 << 18, length - have)))
            if not pieces[-1]:
                raise _Over
            have += len(pieces[-1])
        everything = b"".join(pieces)
        self._unread = everything[length:]
        return everything[:length]


def _closable(pieces: Iterator[bytes]) -> Generator[bytes, None, None]:
    yield from pieces
