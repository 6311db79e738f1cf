"""The rows of the live view as a client keeps them: taken in from the stream, filtered, sorted and counted."""

import collections
import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from slurm_bridge import errors
from slurm_bridge.model import texts

#: A row by the names of its fields.
Row = Mapping[str, Any]

ACTIVE: Final = ("held", "queued", "starting", "running", "leaving")
STAGES: Final = (*ACTIVE, "done", "failed")
#: A choice of stages by its name.
CHOICES: Final[Mapping[str, tuple[str, ...]]] = {"active": ACTIVE, "all": STAGES, **{one: (one,) for one in STAGES}}
MOST_DECISIONS: Final = 400

#: The orders of workloads by name, and whether the largest is first.
ORDERS: Final[Mapping[str, bool]] = {
    "age": False,
    "name": False,
    "stage": False,
    "reason": False,
    "cpus": True,
    "memory": True,
    "gpus": True,
    "pods": True,
    "start": False,
}


class LiveRows:
    """Of one stream, which begins with what is in its rows. Not thread-safe."""

    def __init__(self, about: Mapping[str, Any]) -> None:
        self.about = _plain(about)
        self.workloads: dict[int, Row] = {}
        self.nodes: dict[str, Row] = {}
        self.decisions: collections.deque[Row] = collections.deque(maxlen=MOST_DECISIONS)
        self.queues: Sequence[Mapping[str, Any]] = ()
        self.left_out = 0

    def apply(self, delta: Mapping[str, Any]) -> None:
        """Take in rows. BadAnswer if they are not of the form that the stream has announced."""
        try:
            for row in self._rows("workload", delta.get("workloads", ())):
                self.workloads[row["number"]] = row
            for number in delta.get("gone", ()):
                self.workloads.pop(number, None)
            for row in self._rows("node", delta.get("nodes", ())):
                self.nodes[row["name"]] = row
            for name in delta.get("nodes_gone", ()):
                self.nodes.pop(_plain(name), None)
            self.decisions.extendleft(self._rows("decision", delta.get("decisions", ())))
        except (TypeError, ValueError, KeyError) as error:
            raise errors.BadAnswer(f"the live view sent rows that cannot be read: {error}") from error
        if "queues" in delta:
            self.queues = _plain(delta["queues"]) or ()
        self.left_out = delta.get("left_out", self.left_out)

    def _rows(self, what: str, rows: Iterable[Sequence[Any]]) -> Iterable[Row]:
        fields = self.about["fields"][what]
        return [dict(zip(fields, map(_plain, row), strict=True)) for row in rows]


def _plain(value: Any) -> Any:
    """The same with nothing that a terminal obeys, in lists and in the names of fields as well."""
    if isinstance(value, str):
        return texts.plain(value)
    if isinstance(value, Mapping):
        return {_plain(name): _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RowChoice:
    """Which workloads are shown, and in which order."""

    stages: str = "active"
    reason: str = ""
    text: str = ""
    order: str = "age"
    reverse: bool = False

    def of(self, rows: Iterable[Row]) -> list[Row]:
        """The workloads in order."""
        words = self.text.lower().split()
        stages = CHOICES[self.stages]
        found = [
            row
            for row in rows
            if row["stage"] in stages
            and self.reason in ("", row["reason"])
            and all(word in _searched(row) for word in words)
        ]
        return sorted(found, key=lambda row: _key(self.order, row), reverse=self.reverse != ORDERS[self.order])


def _searched(row: Row) -> str:
    parts = (f"{row['namespace']}/{row['name']}", row["kind"], row["reason"], row["partition"], row["account"])
    return " ".join((*parts, str(row["job"] or ""), *row["nodes"])).lower()


def _key(order: str, row: Row) -> Any:
    name = f"{row['namespace']}/{row['name']}"
    if order == "age":
        return -row["created"], name
    if order == "start":
        return row["starts"] or math.inf, name
    if order == "stage":
        return STAGES.index(row["stage"]), name
    return (row[order], name) if order != "name" else name


def reasons(rows: Iterable[Row]) -> list[tuple[str, int]]:
    """How many workloads wait for which reason, the most frequent first."""
    waiting = (row["reason"] for row in rows if row["stage"] in ("held", "queued") and row["reason"])
    return sorted(collections.Counter(waiting).items(), key=lambda one: (-one[1], one[0]))


def stages(rows: Iterable[Row]) -> Mapping[str, int]:
    """How many workloads are at which stage."""
    return collections.Counter(row["stage"] for row in rows)


def totals(nodes: Iterable[Row]) -> Mapping[str, Sequence[int]]:
    """Of all nodes together: how much there is, and how much of that is held."""
    found = {"cpus": [0, 0], "memory": [0, 0], "gpus": [0, 0]}
    for node in nodes:
        for kind, (all_, held) in ((kind, (node[kind][0], sum(node[kind][1:]))) for kind in found):
            found[kind][0] += all_
            found[kind][1] += held
    return found


def mebibytes(amount: int) -> str:
    """An amount of memory for people."""
    for unit, size in (("TiB", 1 << 20), ("GiB", 1 << 10)):
        if amount >= size:
            digits = 0 if amount % size == 0 or amount >= 100 * size else 1
            return f"{amount / size:.{digits}f} {unit}"
    return f"{amount} MiB"
