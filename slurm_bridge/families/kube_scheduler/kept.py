"""Raw scores carried from one snapshot to the next: of a shape that was rated before, only nodes that changed are."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from slurm_bridge.cluster.columns import NodeColumns, Whole
from slurm_bridge.cluster.recent_answers import Recent
from slurm_bridge.families.kube_scheduler.scene import Scene

Rate = Callable[[Scene], Whole | None]

#: When more than one in so many nodes changed, all are rated: one pass over arrays takes no longer then.
_FEW = 16


@dataclasses.dataclass(frozen=True, slots=True)
class _Before:
    """What was said of a shape the last time, by priority."""

    columns: NodeColumns
    raws: Mapping[str, Whole | None]


class ScoreCache:
    """The raw scores of so many shapes; used from any thread."""

    def __init__(self, most: int) -> None:
        self._known: Recent[bytes, _Before] = Recent(most)

    def at(self, key: bytes, scene: Scene) -> "Carried":
        """For this scene; `key` stands for all that priorities look at beside the nodes."""
        before = self._known.get(key)
        carried = Carried(scene, before)
        self._known.put(key, _Before(scene.columns, carried.raws))
        return carried


class Carried:
    """The raw scores for one scene, of priorities that look at each node by itself."""

    def __init__(self, scene: Scene, before: _Before | None) -> None:
        changed = scene.columns.since(before.columns) if before is not None else None
        few = changed is not None and len(changed) * _FEW <= len(scene.columns)
        self._scene = scene
        self._before = before.raws if before is not None and few else {}
        self._changed: Sequence[int] = changed.tolist() if changed is not None and few else ()
        self.raws: dict[str, Whole | None] = {}

    def raw(self, name: str, rate: Rate) -> Whole | None:
        """What this priority says of all nodes, None where it does not rate this pod."""
        if name in self._before:
            before = self._before[name]
            raw = before if before is None else self._redone(before, rate)
        else:
            raw = rate(self._scene)
        if raw is not None:
            raw.setflags(write=False)
        self.raws[name] = raw
        return raw

    def _redone(self, before: Whole, rate: Rate) -> Whole:
        """The very same column where nothing of it is different: what was made of it holds as well."""
        size, (rows, alone) = len(self._scene.columns), self._alone
        found = rate(alone) if rows else None
        whole = len(before) == size and len(rows) == len(self._changed)
        if whole and (found is None or (found == before[rows]).all()):
            return before
        raw = np.zeros(size, np.int64)
        raw[: len(before)] = before[:size]
        raw[[row for row in self._changed if row < size]] = 0
        if found is not None:
            raw[rows] = found
        return raw

    @functools.cached_property
    def _alone(self) -> tuple[list[int], Scene]:
        """The rows that changed and hold a node, and a scene of nothing but these."""
        columns = self._scene.columns
        there = [(row, facts) for row in self._changed if row < len(columns) and (facts := columns.facts[row])]
        alone = NodeColumns.of({facts.name: facts for _, facts in there})
        return [row for row, _ in there], dataclasses.replace(self._scene, columns=alone, parts=())
