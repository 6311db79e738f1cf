"""The patch formats: merge patch (RFC 7386), JSON patch (RFC 6902), and enough of the strategic merge patch."""

import copy
from collections.abc import Mapping
from typing import Any

#: Lists that are in fact keyed maps, by field name (strategic merge and server-side apply).
KEYED = {
    "conditions": "type",
    "containers": "name",
    "initContainers": "name",
    "schedulingGates": "name",
    "volumes": "name",
    "env": "name",
    "ownerReferences": "uid",
    "addresses": "type",
    "containerStatuses": "name",
}

#: Lists that are in fact sets.
SETS = {"finalizers"}


class Unpatchable(Exception):
    """The patch does not fit the object."""


def merge(target: Any, changes: Any) -> Any:
    """Objects are merged, null deletes, everything else replaces."""
    if not isinstance(changes, Mapping):
        return copy.deepcopy(changes)
    merged = dict(target) if isinstance(target, Mapping) else {}
    for name, value in changes.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged


def strategic(target: Any, changes: Any, field: str = "") -> Any:
    """Like a merge, but keyed lists are merged item by item and sets are united."""
    if isinstance(changes, Mapping):
        return _strategic_object(target, changes)
    if isinstance(changes, list) and field in KEYED:
        return _strategic_list(target or [], changes, KEYED[field])
    if isinstance(changes, list) and field in SETS:
        return [*(target or []), *(item for item in changes if item not in (target or []))]
    return copy.deepcopy(changes)


def _strategic_object(target: Any, changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(target) if isinstance(target, Mapping) else {}
    for name, value in changes.items():
        if name.startswith("$"):
            continue  # ordering directives have no effect here
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = strategic(merged.get(name), value, name)
    return merged


def _strategic_list(target: list[Any], changes: list[Any], key: str) -> list[Any]:
    merged = list(target)
    for change in changes:
        place = next((n for n, item in enumerate(merged) if item.get(key) == change.get(key)), None)
        if change.get("$patch") == "delete":
            if place is not None:
                del merged[place]
        elif place is None:
            merged.append(copy.deepcopy(change))
        else:
            merged[place] = strategic(merged[place], change)
    return merged


def json_patch(document: Any, operations: list[Mapping[str, Any]]) -> Any:
    """Apply the operations in order; all or none."""
    changed = copy.deepcopy(document)
    for operation in operations:
        changed = _operate(changed, operation)
    return changed


def _operate(document: Any, operation: Mapping[str, Any]) -> Any:
    path = _pointer(operation["path"])
    match operation["op"]:
        case "test":
            if _look_up(document, path) != operation.get("value"):
                raise Unpatchable(f"testing path {operation['path']} value failed")
        case "remove":
            _take(document, path)
        case "add":
            return _put(document, path, operation["value"], insert=True)
        case "replace":
            _look_up(document, path)
            return _put(document, path, operation["value"], insert=False)
        case "move":
            return _put(document, path, _take(document, _pointer(operation["from"])), insert=True)
        case "copy":
            return _put(document, path, copy.deepcopy(_look_up(document, _pointer(operation["from"]))), insert=True)
        case unknown:
            raise Unpatchable(f"unexpected kind: {unknown}")
    return document


def _pointer(text: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _step(container: Any, part: str) -> Any:
    try:
        return container[int(part)] if isinstance(container, list) else container[part]
    except (KeyError, IndexError, ValueError, TypeError):
        raise Unpatchable(f"missing path element {part}") from None


def _look_up(document: Any, path: list[str]) -> Any:
    for part in path:
        document = _step(document, part)
    return document


def _take(document: Any, path: list[str]) -> Any:
    container = _look_up(document, path[:-1])
    value = _step(container, path[-1])
    del container[int(path[-1]) if isinstance(container, list) else path[-1]]
    return value


def _put(document: Any, path: list[str], value: Any, *, insert: bool) -> Any:
    if not path:
        return value
    container, last = _look_up(document, path[:-1]), path[-1]
    if isinstance(container, list):
        place = len(container) if last == "-" else int(last) if last.isdigit() else -1
        if not 0 <= place <= len(container) - (not insert):
            raise Unpatchable(f"no index {last}")
        if insert:
            container.insert(place, value)
        else:
            container[place] = value
    elif isinstance(container, dict):
        container[last] = value
    else:
        raise Unpatchable(f"{last} has no place")
    return document
