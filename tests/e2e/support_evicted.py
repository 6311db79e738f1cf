"""When a pod may be evicted although its job lives: pure."""

import json
from collections.abc import Collection, Iterable

from slurm_bridge.model import names
from tests.e2e.support_servers import Json


def properly(mine: Json, group: str, nodes: Collection[str], waiting: Iterable[Json]) -> bool:
    """By an eviction, as a member of this group that is on these nodes, for one of those that wait."""
    conditions = mine["status"].get("conditions", ())
    if not any(one.get("reason") == "EvictionByEvictionAPI" for one in conditions):
        return False
    others = tuple(waiting)
    return any(_is_more_important(one, mine, nodes) for one in others) or _makes_room(mine, group, others)


def _is_more_important(one: Json, mine: Json, nodes: Collection[str]) -> bool:
    """It was promised one of the nodes."""
    important = one["spec"].get("priority", 0) > mine["spec"].get("priority", 0)
    return important and one["status"].get("nominatedNodeName") in nodes


def _makes_room(mine: Json, group: str, waiting: Iterable[Json]) -> bool:
    """For a queue: its note names a waiting workload that has this group as its victim, or only a reason."""
    says = _note(mine, names.ANNOTATION_MAKES_ROOM)
    asker = _uid(says.get("uid", ""))
    if not asker:
        return bool(says.get("for"))
    return any(asker in _workloads(one) and group in _victims(one) for one in waiting)


def _victims(one: Json) -> set[str]:
    return {_uid(key) for key in _note(one, names.ANNOTATION_ROOM).get("victims", {})}


def _uid(key: str) -> str:
    """The last part of what tells a workload from all others: kind, namespace and name stand before it."""
    return key.split("/", 3)[-1]


def _workloads(pod: Json) -> set[str]:
    """Itself, or what it belongs to."""
    return {pod["metadata"]["uid"], *(one["uid"] for one in pod["metadata"].get("ownerReferences", ()))}


def _note(manifest: Json, key: str) -> Json:
    found: Json = json.loads((manifest["metadata"].get("annotations") or {}).get(key, "{}"))
    return found
