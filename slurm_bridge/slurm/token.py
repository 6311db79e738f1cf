"""The JSON web token that slurmrestd asks for, read from a file that is renewed from outside.

Renewal takes many forms: written in place, moved over the old file, a mounted secret whose symbolic link is swapped.
All of them change what `stat` says of the path. The token itself is in no message, repr or log.
"""

import base64
import binascii
import math
import pathlib
import threading
from collections.abc import Callable

import msgspec

from slurm_bridge import errors
from slurm_bridge.model.slurmtoken import TokenLife

_PREFIX = "SLURM_JWT="

#: Seconds between two looks at a file; a token that is refused meanwhile is read again at once.
_BETWEEN_LOOKS = 1.0

Mark = tuple[int, int, int]


class _Claims(msgspec.Struct, frozen=True):
    """The part of a token that can be read without its key."""

    iat: float
    exp: float


_claims = msgspec.json.Decoder(_Claims)


def life_of(token: str) -> TokenLife | None:
    """What the token says of itself, unproved; None where it has no end, or is of another form."""
    _head, _, rest = token.partition(".")
    claims = rest.partition(".")[0]
    try:
        found = _claims.decode(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    except (binascii.Error, msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    if not (math.isfinite(found.iat) and math.isfinite(found.exp) and found.exp > found.iat):
        return None
    return TokenLife(issued=found.iat, expires=found.exp)


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

    def life(self) -> TokenLife | None:
        """That of the current token; None also where the file cannot be read."""
        try:
            return life_of(self.current())
        except errors.BadConfiguration:
            return None

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
