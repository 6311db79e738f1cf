"""Server-side apply: which manager owns which field, conflicts, and what an apply removes.

Ownership is tracked from the first apply of an object on; earlier fields belong to one earlier manager. Fields are
leaves: keyed lists and sets are split into items, any other list is one value.
"""

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from slurm_bridge.sim.kube import patch

Manifest = dict[str, Any]
Path = tuple[str, ...]

_BEFORE = "before-first-apply"

#: Fields of identity and bookkeeping have no owner.
_NOBODYS = {"apiVersion", "kind"}
_OWNABLE = {"labels", "annotations", "finalizers", "ownerReferences"}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FieldManager:
    """A writer; an update and an apply of the same name are two managers."""

    name: str
    applies: bool

    def __str__(self) -> str:
        return f'"{self.name}"'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Clash:
    """A field that another manager owns with another value."""

    manager: FieldManager
    path: Path

    @property
    def field(self) -> str:
        """The field's name in a conflict."""
        return "." + ".".join(self.path).replace(".[", "[")


class Ownership:
    """Owned leaves by object (its uid) and manager."""

    def __init__(self) -> None:
        self._owned: dict[str, dict[FieldManager, set[Path]]] = {}

    def forget(self, uid: str) -> None:
        """Drop an object that is gone."""
        self._owned.pop(uid, None)

    def updated(self, uid: str, manager: str, before: Manifest, after: Manifest) -> None:
        """Record a plain write: its writer owns what it changed."""
        owned = self._owned.get(uid)
        if owned is None:
            return
        old, new = leaves(before), leaves(after)
        changed = {path for path in old.keys() | new.keys() if old.get(path) != new.get(path)}
        for paths in owned.values():
            paths.difference_update(changed)
        owned[FieldManager(name=manager, applies=False)] |= changed & new.keys()

    def clashes(self, uid: str, name: str, current: Manifest, wanted: Manifest) -> list[Clash]:
        """The fields for which this apply needs force."""
        owned = self._of(uid, current)
        mine = FieldManager(name=name, applies=True)
        old = leaves(current)
        differing = [path for path, value in leaves(wanted).items() if path in old and old[path] != value]
        return [
            Clash(manager=manager, path=path)
            for path in differing
            for manager, paths in owned.items()
            if manager != mine and path in paths
        ]

    def apply(self, uid: str, name: str, current: Manifest, wanted: Manifest) -> Manifest:
        """The object after the apply; its manager owns exactly the fields that it names."""
        owned = self._of(uid, current)
        mine = FieldManager(name=name, applies=True)
        theirs = set().union(*(paths for manager, paths in owned.items() if manager != mine))
        named = leaves(wanted)
        result: Manifest = patch.strategic(current, wanted)
        # The key of a keyed item goes last, because the item's other fields are found by it.
        for path in sorted(owned[mine] - named.keys() - theirs, key=lambda path: path[-1] in patch.KEYED.values()):
            _remove(result, path)
        old = leaves(current)
        taken = {path for path, value in named.items() if old.get(path) != value}
        for paths in owned.values():
            paths.difference_update(taken)
        owned[mine] = set(named)
        return result

    def created(self, uid: str, name: str, named: Iterable[Path]) -> None:
        """Record an apply that created the object; its manager owns what it named, not the defaults."""
        owned = self._owned[uid] = collections.defaultdict(set)
        owned[FieldManager(name=name, applies=True)] = set(named)

    def _of(self, uid: str, current: Manifest) -> dict[FieldManager, set[Path]]:
        if uid not in self._owned:
            self._owned[uid] = collections.defaultdict(set)
            self._owned[uid][FieldManager(name=_BEFORE, applies=False)] = set(leaves(current))
        return self._owned[uid]


def leaves(manifest: Mapping[str, Any]) -> dict[Path, Any]:
    """Every field of an object that can be owned, with its value."""
    found: dict[Path, Any] = {}
    for name, value in manifest.items():
        if name == "metadata":
            found.update(_leaves((name,), {field: inner for field, inner in value.items() if field in _OWNABLE}))
        elif name not in _NOBODYS:
            found.update(_leaves((name,), value))
    return found


def _leaves(path: Path, value: Any) -> Iterator[tuple[Path, Any]]:
    field = path[-1]
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _leaves((*path, name), inner)
    elif isinstance(value, list) and field in patch.KEYED:
        for item in value:
            yield from _leaves((*path, f'[{patch.KEYED[field]}="{item.get(patch.KEYED[field])}"]'), item)
    elif isinstance(value, list) and field in patch.SETS:
        yield from (((*path, f'[="{item}"]'), item) for item in value)
    else:
        yield path, value


def _remove(manifest: Manifest, path: Path) -> None:
    container: Any = manifest
    trail = []
    for part in path[:-1]:
        trail.append((container, part))
        container = _child(container, part)
        if container is None:
            return
    _drop(container, path[-1])
    for parent, part in reversed(trail):
        if not _child(parent, part):
            _drop(parent, part)


def _child(container: Any, part: str) -> Any:
    if isinstance(container, list):
        return next((item for item in container if _is(item, part)), None)
    return container.get(part)


def _drop(container: Any, part: str) -> None:
    if isinstance(container, list):
        container[:] = [item for item in container if item and not _is(item, part)]
    else:
        container.pop(part, None)


def _is(item: Any, part: str) -> bool:
    key, _, value = part.strip("[]").partition("=")
    return f'"{item.get(key) if key else item}"' == value
