"""The JSON web token that slurmrestd asks for, read from a file that is renewed from outside.

Renewal takes many forms: written in place, moved over the old file, a mounted secret whose symbolic link is swapped.
All of them change what `stat` says of the path. The token itself is in no message, repr or log.
"""

import pathlib
import threading
from collections.abc import Callable

from slurm_bridge import errors

_PREFIX = "SLURM_JWT="

#: Seconds between two looks at a file; a token that is refused meanwhile is read again at once.
_BETWEEN_LOOKS = 1.0

Mark = tuple[int, int, int]


class TokenFile:
    """The current content of a token file, as old as a second of the clock `now`."""

    def __init__(self, path: pathlib.Path, now: Callable[[], float]) -> None:
        self._path = path
        self._now = now
        self._fresh_until = 0.0
        self._lock = threading.Lock()
        self._mark: Mark | None = None
        self._token = ""

    def __repr__(self) -> str:
        return f"TokenFile({str(self._path)!r})"

    def current(self) -> str:
        """The token, read again when the file has changed."""
        with self._lock:
            now = self._now()
            if not self._token or now >= self._fresh_until:
                mark = self._look()
                if mark != self._mark:
                    self._load(mark)
                self._fresh_until = now + _BETWEEN_LOOKS
            return self._token

    def changed_since(self, refused: str) -> bool:
        """Read the file whatever `stat` says: True when it holds another token than the one that was refused."""
        with self._lock:
            self._load(self._look())
            return self._token != refused

    def _look(self) -> Mark:
        try:
            seen = self._path.stat()
        except OSError as problem:
            raise errors.BadConfiguration(f"token file {self._path}: {problem.strerror}") from problem
        return seen.st_mtime_ns, seen.st_ino, seen.st_size

    def _load(self, mark: Mark) -> None:
        try:
            text = self._path.read_text(encoding="utf-8", errors="replace")
        except OSError as problem:
            raise errors.BadConfiguration(f"token file {self._path}: {problem.strerror}") from problem
        token = text.strip().removeprefix(_PREFIX).strip()
        if not token and self._token:
            # `scontrol token > file` empties the file first and writes a moment later: not marked as seen, so that
            # the next look reads it again.
            return
        if not token:
            raise errors.BadConfiguration(f"token file {self._path} is empty")
        if not (token.isascii() and token.isprintable()) or " " in token:
            raise errors.BadConfiguration(f"token file {self._path} holds something that is not a token")
        self._token, self._mark = token, mark
