"""Services on loopback that behave as badly as a test wants."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator

WAIT = 10.0

#: What a service does with one connection, of which the request has been read: again and again until it raises.
Behave = Callable[[socket.socket, bytes], None]


def answer(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    """A whole answer of HTTP."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def says(body: bytes, status: str = "200 OK", **headers: str) -> Behave:
    """Answers every request alike."""
    return lambda sock, _request: sock.sendall(answer(body, status, **headers))


class Service:
    """Listens on loopback; keeps every request that it has read."""

    def __init__(self, behave: Behave, tls: ssl.SSLContext | None = None) -> None:
        self.behave = behave
        self.requests: list[bytes] = []
        self.connections = 0
        #: Set when the test is over: whoever hangs may go.
        self.over = threading.Event()
        self._tls = tls
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._serve, daemon=True)]
        self._threads[0].start()

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._listening.getsockname()[1]}"

    def close(self) -> None:
        """End all threads."""
        self.over.set()
        # Closing alone does not wake whoever accepts.
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for thread in self._threads:
            thread.join(WAIT)

    def _serve(self) -> None:
        while True:
            try:
                sock, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            thread = threading.Thread(target=self._talk, args=(sock,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _talk(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError), sock:
            sock.settimeout(WAIT)
            talking = self._tls.wrap_socket(sock, server_side=True) if self._tls else sock
            with talking:
                while request := _request(talking):
                    self.requests.append(request)
                    self.behave(talking, request)


def _request(sock: socket.socket) -> bytes:
    """One whole request; empty at the end of the connection."""
    text = b""
    while b"\r\n\r\n" not in text:
        piece = sock.recv(1 << 16)
        if not piece:
            return b""
        text += piece
    head, _, body = text.partition(b"\r\n\r\n")
    length = next(
        (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")), 0
    )
    while len(body) < length:
        body += sock.recv(1 << 16)
    return head + b"\r\n\r\n" + body


@contextlib.contextmanager
def serving(behave: Behave, tls: ssl.SSLContext | None = None) -> Iterator[Service]:
    """A service that is gone afterwards."""
    service = Service(behave, tls)
    try:
        yield service
    finally:
        service.close()
