"""Configurations of queues as text; the only place of the family that reads and writes YAML."""

import hashlib
import pathlib
from typing import Final

import yaml

from slurm_bridge.errors import BadConfiguration

#: Levels of a text that a stranger sends; each level of queues has two.
_DEEPEST: Final = 100
_SHOWN: Final = 16


class Unreadable(BadConfiguration):
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
        return yaml.safe_load(given)
    except yaml.YAMLError as error:
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
    """What somebody has sent; Unreadable says why it is no YAML.

    It is built only after a look at its events: some hundred bytes of aliases make gigabytes of queues, and thousands
    of levels overflow the stack of the library, which ends the process.
    """
    source = "the configuration"
    try:
        given = body.decode()
        _look_through(given, source)
        return yaml.load(given, yaml.CSafeLoader)
    except UnicodeDecodeError:
        raise Unreadable(f"{source}: is not UTF-8") from None
    except yaml.MarkedYAMLError as error:
        line = f" line {error.problem_mark.line + 1}:" if error.problem_mark else ""
        raise Unreadable(f"{source}:{line} is not YAML: {error.problem}") from error
    except (yaml.YAMLError, TypeError, ValueError, LookupError, AttributeError) as error:
        # The library trusts what explicit tags say: `!!bool maybe`, `!!timestamp soon`.
        raise Unreadable(f"{source}: is not YAML: {type(error).__name__}") from error


def _look_through(given: str, source: str) -> None:
    depth = 0
    for event in yaml.parse(given, yaml.CSafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise Unreadable(f"{source}: YAML aliases are not taken, write *{event.anchor} out")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise Unreadable(f"{source}: is nested too deeply; allowed are {_DEEPEST} levels")
