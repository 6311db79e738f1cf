"""Settings as text, and what two of them do not share."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from slurm_bridge.settings import keys
from slurm_bridge.settings.model import Settings
from slurm_bridge.settings.trees import Path


def effective(settings: Settings) -> str:
    """The whole configuration as a file that would lead to it. Secrets are in files of their own, named by path."""
    return yaml.safe_dump(_plain(settings), sort_keys=False, default_flow_style=False, allow_unicode=True)


def manifests(objects: Iterable[Mapping[str, Any]]) -> str:
    """Objects for `kubectl apply`."""
    return yaml.safe_dump_all(objects, sort_keys=False, explicit_start=True, allow_unicode=True, width=116)


def changed(old: Settings, new: Settings) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The keys that differ: those that a running daemon takes over, and those that need a restart."""
    before, after = dict(_leaves(_plain(old))), dict(_leaves(_plain(new)))
    different = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    soon = tuple(_name(path) for path in different if keys.reloadable(path[0]))
    later = tuple(_name(path) for path in different if not keys.reloadable(path[0]))
    return soon, later


def _plain(settings: Settings) -> Mapping[str, Any]:
    return settings.model_dump(mode="json", by_alias=True)


def _leaves(values: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    """Lists are one value: an item in between moves all that follow."""
    if not isinstance(values, Mapping) or not values:
        yield path, values
        return
    for key, value in values.items():
        yield from _leaves(value, (*path, key))


def _name(path: Path) -> str:
    return ".".join(str(step) for step in path)
