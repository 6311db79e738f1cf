"""Answers over all nodes that many ask for: of a question that was answered before only rows that changed are asked."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from slurm_bridge.cluster.columns.nodes import NodeColumns
from slurm_bridge.cluster.columns.table import frozen
from slurm_bridge.cluster.facts import NodeFacts
from slurm_bridge.cluster.recent_answers import Recent

K = TypeVar("K", bound=Hashable)

#: When more than one in so many nodes changed, all are asked: one pass over arrays takes no longer then.
_FEW = 32


class QuestionCache(Generic[K]):
    """The last answer to each of so many questions; used from any thread.

    A question has to stand for all that its answer depends on beside the node itself.
    """

    def __init__(self, most: int) -> None:
        self._known: Recent[K, _Last] = Recent(most)

    def get(
        self, key: K, columns: NodeColumns, whole: Callable[[], NDArray[Any]], one: Callable[[NodeFacts], Any]
    ) -> NDArray[Any]:
        """By row: what `whole` says of all nodes, and `one` of a single one, which has to be the same; 0 in holes."""
        last = self._known.get(key)
        if last is None:
            found = frozen(whole())
            self._known.put(key, _Last(columns, found))
            return found
        before, found = last.said
        if before is not columns:
            rows = columns.since(before)
            if rows is None or len(rows) * _FEW > len(columns):
                found = frozen(whole())
            else:
                found = _followed(found, columns, rows.tolist(), one)
            last.said = columns, found
        return found


class _Last:
    """The last answer and its columns: replaced together, so that a reader never sees a mix."""

    __slots__ = ("said",)

    def __init__(self, columns: NodeColumns, found: NDArray[Any]) -> None:
        self.said = columns, found


def _followed(
    before: NDArray[Any], columns: NodeColumns, rows: Sequence[int], one: Callable[[NodeFacts], Any]
) -> NDArray[Any]:
    """The very same array where nothing of it is different: what was made of it holds as well."""
    there, size = columns.facts, len(columns)
    changes = [(row, 0 if (facts := there[row]) is None else one(facts)) for row in rows if row < size]
    if len(before) == size:
        changes = [(row, value) for row, value in changes if before[row] != value]
        if not changes:
            return before
        found = before.copy()
    else:
        found = np.zeros(size, before.dtype)
        found[: len(before)] = before[:size]
    for row, value in changes:
        found[row] = value
    return frozen(found)
