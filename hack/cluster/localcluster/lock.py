"""One at a time: commands on one cluster, builds and engines in one cache."""

import contextlib
import fcntl
import os
import pathlib
from collections.abc import Iterator

from localcluster import progress


@contextlib.contextmanager
def exclusive(folder: pathlib.Path, who: str) -> Iterator[None]:
    """The lock is on the folder itself: it leaves no file, and ends with its holder however that ends."""
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.say(who, f"another command works in {folder}: waiting")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
