"""The connections that a door has, by client address: so many of one address, so many in all.

A connection that waits for its client to send is idle. When a bound is reached, the connection that has been idle
longest is closed for the new one; a connection whose request is being answered is never closed.
"""

import contextlib
import socket
import threading
import time
from collections.abc import Sequence


class Guest:
    """One connection. `idle_since` is None while its request is being answered."""

    __slots__ = ("address", "idle_since", "sock")

    def __init__(self, sock: socket.socket, address: str) -> None:
        self.sock, self.address = sock, address
        self.idle_since: float | None = time.monotonic()

    def waits(self) -> None:
        """From now on the client has to send something."""
        self.idle_since = time.monotonic()

    def answered(self) -> None:
        """From now on its request is being answered."""
        self.idle_since = None


class Guests:
    """Thread-safe."""

    def __init__(self, most: int, most_of_one: int) -> None:
        self._most, self._most_of_one = most, most_of_one
        self._lock = threading.Lock()
        self._inside: dict[int, Guest] = {}

    def __len__(self) -> int:
        return len(self._inside)

    def enter(self, sock: socket.socket, address: str) -> Guest | None:
        """A new connection; None when there is no room for it."""
        with self._lock:
            of_one = [guest for guest in self._inside.values() if guest.address == address]
            if len(of_one) >= self._most_of_one and not self._leave(of_one):
                return None
            if len(self._inside) >= self._most and not self._leave(tuple(self._inside.values())):
                return None
            guest = self._inside[id(sock)] = Guest(sock, address)
            return guest

    def of(self, sock: socket.socket) -> Guest:
        """The guest of a connection that has entered; one that had to leave meanwhile counts no more."""
        with self._lock:
            return self._inside.get(id(sock)) or Guest(sock, "")

    def left(self, sock: socket.socket) -> None:
        """The connection is over."""
        with self._lock:
            self._inside.pop(id(sock), None)

    def _leave(self, among: Sequence[Guest]) -> bool:
        """The connection that has been idle longest is closed; False when all of these are being answered."""
        idle = [(guest.idle_since, key) for key, guest in self._inside.items() if guest in among and guest.idle_since]
        if not idle:
            return False
        _, key = min(idle)
        _close(self._inside.pop(key).sock)
        return True


def _close(sock: socket.socket) -> None:
    """The thread that reads from it wakes up and ends the conversation."""
    with contextlib.suppress(OSError):
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
