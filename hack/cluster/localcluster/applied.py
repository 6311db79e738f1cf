"""Which text was applied last: so that a manifest that changed is applied again, and an unchanged one is not.

What the API server stores has defaults filled in and cannot be compared with a file.
"""

import hashlib
import pathlib

from localcluster.config import Config


def is_current(config: Config, name: str, text: str) -> bool:
    """Whether exactly this text was the last one."""
    file = _file(config, name)
    return file.exists() and file.read_text().strip() == _digest(text)


def remember(config: Config, name: str, text: str) -> None:
    """After it was applied."""
    file = _file(config, name)
    file.parent.mkdir(exist_ok=True)
    file.write_text(_digest(text) + "\n")


def forget(config: Config, name: str) -> None:
    """It is to be applied again."""
    _file(config, name).unlink(missing_ok=True)


def _file(config: Config, name: str) -> pathlib.Path:
    return config.directory / "applied" / name


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
