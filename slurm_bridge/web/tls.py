"""The certificate of the HTTP server: read from files, and read again when they are replaced."""

import dataclasses
import pathlib
import ssl
import threading

from loguru import logger

from slurm_bridge import errors


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The files of the certificate chain and, if separate, of the key."""

    cert: pathlib.Path
    key: pathlib.Path | None = None


class Certificate:
    """The TLS side of a server. New files count from the next connection on; invalid files never replace valid ones."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._lock = threading.Lock()
        self._seen = _seen(files)
        try:
            self._context = _context(files)
        except OSError as error:
            raise errors.BadConfiguration(f"web.tls: {_words(files, error)}") from None

    def context(self) -> ssl.SSLContext:
        """The context for the current files; for the previous ones if the current ones are invalid."""
        seen = _seen(self._files)
        with self._lock:
            if seen != self._seen:
                self._seen = seen
                try:
                    self._context = _context(self._files)
                except OSError as error:
                    logger.warning("the certificate is not replaced: {}", _words(self._files, error))
                else:
                    logger.info("the certificate was replaced from {}", self._files.cert)
            return self._context


def _context(files: Files) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(files.cert, files.key)
    return context


def _seen(files: Files) -> tuple[object, ...]:
    """Changes when a file changes: a mounted secret is replaced by moving links, which changes the inode."""
    return tuple(_stamp(path) for path in (files.cert, files.key) if path)


def _stamp(path: pathlib.Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_ino, found.st_size


def _words(files: Files, error: OSError) -> str:
    why = error.reason if isinstance(error, ssl.SSLError) else error.strerror
    key = f" with key {files.key}" if files.key else ""
    return f"certificate {files.cert}{key} cannot be used: {why or type(error).__name__}"
