"""The bearer token between a bridge and its agents, read from a file that is renewed from outside.

Renewal is writing in place, moving a file over the old one, or swapping the symbolic link of a mounted Secret: all of
them change what `stat` says. The file may hold several tokens, one in each line: asked with any of them an agent
answers, and a bridge uses the first. So a token is renewed without a refusal in between: write the new one below the
old one for the agents, then above it for the bridge, then alone. Tokens are in no message, repr or log.
"""

import hmac
import pathlib
import threading

from slurm_bridge import errors

Mark = tuple[int, int, int]


class AcceptedTokens:
    """The tokens that a file holds now."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._mark: Mark | None = None
        self._tokens: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"TokenFile({str(self._path)!r})"

    def first(self) -> str:
        """The token to ask with; BadConfiguration names the file that holds none."""
        return self.all()[0]

    def all(self) -> tuple[str, ...]:
        """Every token, read again when the file has changed."""
        with self._lock:
            mark = self._look()
            if mark != self._mark:
                self._load(mark)
            return self._tokens

    def again(self) -> str:
        """The first token, read whatever `stat` says: a clock may be too coarse for two writes in a row."""
        with self._lock:
            self._load(self._look())
            return self._tokens[0]

    def knows(self, token: str) -> bool:
        """Whether this is one of the tokens; how long the answer takes tells nothing about them."""
        given = token.encode()
        return any([hmac.compare_digest(given, known.encode()) for known in self.all()])  # noqa: C419 - compare with all

    def _look(self) -> Mark:
        try:
            seen = self._path.stat()
        except OSError as problem:
            raise errors.BadConfiguration(f"token file {self._path}: {problem.strerror}") from problem
        return seen.st_mtime_ns, seen.st_ino, seen.st_size

    def _load(self, mark: Mark) -> None:
        tokens = tuple(line.strip() for line in self._read().splitlines() if line.strip())
        if not tokens and self._tokens:
            # A shell empties the file first and writes a moment later: not marked as seen, so it is read again.
            return
        if not tokens:
            raise errors.BadConfiguration(f"token file {self._path} is empty")
        if not all(token.isascii() and token.isprintable() and " " not in token for token in tokens):
            raise errors.BadConfiguration(f"token file {self._path} holds something that is not a token")
        self._tokens, self._mark = tokens, mark

    def _read(self) -> str:
        try:
            return self._path.read_text(encoding="utf-8", errors="replace")
        except OSError as problem:
            raise errors.BadConfiguration(f"token file {self._path}: {problem.strerror}") from problem
