"""When a pod may be evicted although its job lives: for another one of ours that waits, and says so."""

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from slurm_bridge.model import names

Manifest = Mapping[str, Any]


def properly(mine: Manifest, group: str, nodes: Collection[str], waiting: Iterable[Manifest]) -> bool:
    """By an eviction, as a member of this group that is on these nodes, for one of those that wait."""
    conditions = mine["status"].get("conditions", ())
    if not any(one.get("reason") == "EvictionByEvictionAPI" for one in conditions):
        return False
    others = tuple(waiting)
    return any(_is_more_important(one, mine, nodes) for one in others) or _makes_room(mine, group, others)


def _is_more_important(one: Manifest, mine: Manifest, nodes: Collection[str]) -> bool:
    """It was promised one of the nodes."""
    important = one["spec"].get("priority", 0) > mine["spec"].get("priority", 0)
    return important and one["status"].get("nominatedNodeName") in nodes


def _makes_room(mine: Manifest, group: str, waiting: Iterable[Manifest]) -> bool:
    """For a queue: it says for whom, and whoever that is says that this group goes for it; or nobody asked."""
    says = _note(mine, names.ANNOTATION_MAKES_ROOM)
    if not says.get("uid"):
        return bool(says.get("for"))
    return any(group in _note(one, names.ANNOTATION_ROOM).get("victims", {}) for one in waiting)


def _note(manifest: Manifest, key: str) -> Manifest:
    found = json.loads((manifest["metadata"].get("annotations") or {}).get(key, "{}"))
    assert isinstance(found, dict)
    return found
