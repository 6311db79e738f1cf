"""Nested values, and where each of them was written: what a file, variables and flags come down to together."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

#: The way to a value: keys, and numbers inside lists.
Path = tuple[str | int, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SettingsTree:
    """Values and their places, in words such as `bridge.yaml:12` or `--set web.port`; the empty path is the file."""

    values: Mapping[str, Any]
    places: Mapping[Path, str]

    def says(self, path: Path) -> bool:
        """Whether the value at this path is from here: it is here, or what stands here on the way leaves no room."""
        value: object = self.values
        for step in path:
            if not isinstance(value, Mapping):
                return True
            if step not in value:
                return value is not self.values and not value
            value = value[step]
        return True

    def place(self, path: Path) -> str:
        """Where this value was written, or else what should have contained it."""
        inside = (place for way, place in self.places.items() if way[: len(path)] == path)
        ways = (path[:length] for length in range(len(path) - 1, -1, -1))
        outside = (self.places[way] for way in ways if way in self.places)
        return self.places.get(path) or next(inside, None) or next(outside, "the configuration")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """One value that a variable or a flag gives."""

    path: Path
    value: Any
    place: str


def assign(tree: SettingsTree, given: Assignment) -> SettingsTree:
    """The tree with this value in it: groups are merged key by key, anything else is replaced."""
    for leaf in _leaves(given):
        gone = _replaced(tree.values, leaf.path)
        kept = {path: place for path, place in tree.places.items() if path[: len(gone)] != gone}
        tree = SettingsTree(values=_put(tree.values, leaf.path, leaf.value), places={**kept, leaf.path: leaf.place})
    return tree


def _leaves(given: Assignment) -> Iterator[Assignment]:
    if not isinstance(given.value, Mapping) or not given.value:
        yield given
        return
    for key, value in given.value.items():
        yield from _leaves(dataclasses.replace(given, path=(*given.path, key), value=value))


def _replaced(values: object, path: Path) -> Path:
    """What makes room: the value at the path, or a list or scalar on the way to it."""
    for length, step in enumerate(path):
        if not isinstance(values, Mapping):
            return path[:length]
        if step not in values:
            break
        values = values[step]
    return path


def _put(values: object, path: Path, value: Any) -> dict[Any, Any]:
    inside = dict(values) if isinstance(values, Mapping) else {}
    inside[path[0]] = value if len(path) == 1 else _put(inside.get(path[0]), path[1:], value)
    return inside
