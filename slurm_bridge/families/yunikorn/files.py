"""Configurations of queues as text; the only place of the family that reads and writes YAML."""

import hashlib
import pathlib
from typing import Final

import yaml

from slurm_bridge.errors import BadConfiguration
from slurm_bridge.runtime import safe_yaml

_SHOWN: Final = 16


class UnreadableFile(BadConfiguration):
    """It is no YAML at all, so that nothing can be said about queues."""


def text(name: str) -> str:
    """What is in the file; BadConfiguration names it."""
    try:
        return pathlib.Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfiguration(f"file {name}: {error}") from error


def parsed(given: str, source: str) -> object:
    """The mapping that the text holds; BadConfiguration names its source and what is wrong with it."""
    try:
        return safe_yaml.load(given)
    except safe_yaml.NotYaml as error:
        raise BadConfiguration(f"{source}: {error}") from error


def read(name: str) -> object:
    """Both for a file."""
    return parsed(text(name), f"file {name}")


def written(mapping: object) -> str:
    """As a file that would hold the same."""
    return yaml.safe_dump(mapping, sort_keys=False, default_flow_style=False, allow_unicode=True)


def version(given: str) -> str:
    """Differs where the text does."""
    return hashlib.sha256(given.encode()).hexdigest()[:_SHOWN]


def handed_in(body: bytes) -> object:
    """A text that was sent to the admin API; Unreadable says why it is no YAML."""
    source = "the configuration"
    try:
        return safe_yaml.load(body, aliases=False)
    except safe_yaml.NotYaml as error:
        line = f" line {error.line}:" if error.line is not None else ""
        raise UnreadableFile(f"{source}:{line} is not YAML: {error.what}") from error
