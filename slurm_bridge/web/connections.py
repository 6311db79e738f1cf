"""The connections of a server, bounded in all and per client address.

A connection that waits for its client to send is idle. When a bound is reached, the connection that has been idle
longest is closed for the new one; a connection whose request is being answered is never closed.
"""

import contextlib
import socket
import threading
import time
from collections.abc import Sequence


class ClientConnection:
    """One connection. `idle_since` is set while the client has to send, and None while its request is answered."""

    __slots__ = ("address", "idle_since", "sock")

    def __init__(self, sock: socket.socket, address: str) -> None:
        self.sock, self.address = sock, address
        self.idle_since: float | None = time.monotonic()


class Connections:
    """Thread-safe."""

    def __init__(self, most: int, most_of_one: int) -> None:
        self._most, self._most_of_one = most, most_of_one
        self._lock = threading.Lock()
        self._inside: dict[int, ClientConnection] = {}

    def __len__(self) -> int:
        return len(self._inside)

    def enter(self, sock: socket.socket, address: str) -> ClientConnection | None:
        """Add a connection; None if there is no room for it."""
        with self._lock:
            of_one = [connection for connection in self._inside.values() if connection.address == address]
            if len(of_one) >= self._most_of_one and not self._leave(of_one):
                return None
            if len(self._inside) >= self._most and not self._leave(tuple(self._inside.values())):
                return None
            connection = self._inside[id(sock)] = ClientConnection(sock, address)
            return connection

    def of(self, sock: socket.socket) -> ClientConnection:
        """The record of a connection. One that was closed for another gets a record that counts no more."""
        with self._lock:
            return self._inside.get(id(sock)) or ClientConnection(sock, "")

    def left(self, sock: socket.socket) -> None:
        """Remove a connection that has ended."""
        with self._lock:
            self._inside.pop(id(sock), None)

    def _leave(self, among: Sequence[ClientConnection]) -> bool:
        """Close the connection that has been idle longest; False if all of these are busy."""
        idle = [
            (connection.idle_since, key)
            for key, connection in self._inside.items()
            if connection in among and connection.idle_since
        ]
        if not idle:
            return False
        _, key = min(idle)
        sock = self._inside.pop(key).sock
        with contextlib.suppress(OSError):
            socket.socket.shutdown(sock, socket.SHUT_RDWR)
        return True
