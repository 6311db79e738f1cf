"""The trees of queues as viewers get them: names, numbers and limits, and no workload of any namespace."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

#: So many queues of one tree are shown.
MOST_QUEUES: Final = 2000

#: What is taken over of each queue, in the words of the page of the queues.
FIELDS: Final = (
    "path",
    "state",
    "guaranteed",
    "max",
    "used",
    "pending",
    "running",
    "waiting",
    "maxapplications",
)


def trees(picture: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    """One tree for each partition that has queues of its own: the queues in order, each with its depth."""
    if picture is None:
        return []
    if "partitions" in picture:
        return [tree for one in picture["partitions"] for tree in trees(one)]
    rows: list[Mapping[str, Any]] = []
    for queue, depth in _walk(picture.get("queues"), 0):
        if len(rows) >= MOST_QUEUES:
            break
        rows.append({"depth": depth, **{field: _ordered(queue[field]) for field in FIELDS}})
    return [{"partition": picture.get("partition", ""), "mode": picture.get("mode", ""), "queues": rows}]


def _ordered(value: Any) -> Any:
    """Amounts with cpus and memory before all others."""
    if not isinstance(value, Mapping):
        return value
    first = [name for name in ("vcore", "memory") if name in value]
    return {name: value[name] for name in (*first, *sorted(value.keys() - set(first)))}


def _walk(queue: Mapping[str, Any] | None, depth: int) -> Iterator[tuple[Mapping[str, Any], int]]:
    if queue is None:
        return
    yield queue, depth
    for child in queue["queues"]:
        yield from _walk(child, depth + 1)
