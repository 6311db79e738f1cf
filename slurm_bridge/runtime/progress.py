"""How far a command has come that takes long: a bar on a terminal, and nothing anywhere else."""

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Final, Protocol, TextIO

#: Told how many of how many steps are done, and what is done now.
Progress = Callable[[int, int, str], None]

_WIDTH: Final = 24
_MOST_WORDS: Final = 40
_CLEAR: Final = "\r\x1b[K"


def silent(_done: int, _all: int, _what: str) -> None:
    """Tells nothing."""


class ProgressBar(Protocol):
    """A bar that is drawn, or not."""

    def step(self, done: int, every: int, what: str) -> None:
        """Draw it anew."""

    def line(self, text: str) -> None:
        """Print a line where the bar was."""


class _Silent:
    def step(self, done: int, every: int, what: str) -> None:
        pass

    def line(self, text: str) -> None:
        _print(text)


class _Drawn:
    """Safe to use from any thread."""

    def __init__(self, title: str, stream: TextIO) -> None:
        self._title, self._stream = title, stream
        self._lock = threading.Lock()

    def step(self, done: int, every: int, what: str) -> None:
        full = _WIDTH * min(done, every) // max(1, every)
        shown = "".join(letter if letter.isprintable() else "?" for letter in what[:_MOST_WORDS])
        with self._lock:
            self._draw(f"{_CLEAR}{self._title} [{'#' * full}{'.' * (_WIDTH - full)}] {done}/{every} {shown}")

    def line(self, text: str) -> None:
        with self._lock:
            self._draw(_CLEAR)
            _print(text)

    def close(self) -> None:
        """Leave no trace of it."""
        with self._lock:
            self._draw(_CLEAR)

    def _draw(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@contextlib.contextmanager
def bar(title: str, stream: TextIO) -> Iterator[ProgressBar]:
    """A bar on this stream while the block runs, if it is a terminal."""
    if not stream.isatty():
        yield _Silent()
        return
    drawn = _Drawn(title, stream)
    try:
        yield drawn
    finally:
        drawn.close()
