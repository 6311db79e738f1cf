"""Files that only their owner may read."""

import os
import pathlib
import secrets


def write(file: pathlib.Path, text: str) -> None:
    """Create or replace atomically; no moment exists in which others may read it."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = file.with_name(f"{file.name}.{os.getpid()}.new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(text)
    fresh.replace(file)


def random_token() -> str:
    """Enough randomness to be a credential."""
    return secrets.token_urlsafe(32)
