"""Answers over all nodes that many ask for: of a question that was answered before only rows that changed are asked."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from slurm_bridge.hooks.columns.nodes import NodeColumns
from slurm_bridge.hooks.columns.table import frozen
from slurm_bridge.hooks.facts import NodeFacts
from slurm_bridge.hooks.recent import Recent

K = TypeVar("K", bound=Hashable)

#: When more than one in so many nodes changed, all are asked: one pass over arrays takes no longer then.
_FEW = 128


class Kept(Generic[K]):
    """The last answer to each of so many questions; used from any thread.

    A question has to stand for all that its answer depends on beside the node itself.
    """

    def __init__(self, most: int) -> None:
        self._known: Recent[K, tuple[NodeColumns, NDArray[Any]]] = Recent(most)

    def get(
        self, key: K, columns: NodeColumns, whole: Callable[[], NDArray[Any]], one: Callable[[NodeFacts], Any]
    ) -> NDArray[Any]:
        """By row: what `whole` says of all nodes, and `one` of a single one, which has to be the same; 0 in holes."""
        known = self._known.get(key)
        rows = columns.since(known[0]) if known is not None else None
        if known is None or rows is None or len(rows) * _FEW > len(columns):
            found = frozen(whole())
        else:
            found = _followed(known[1], columns, rows[rows < len(columns)].tolist(), one)
        self._known.put(key, (columns, found))
        return found


def _followed(
    before: NDArray[Any], columns: NodeColumns, rows: Sequence[int], one: Callable[[NodeFacts], Any]
) -> NDArray[Any]:
    """The very same array where nothing of it is different: what was made of it holds as well."""
    there = ((row, columns.facts[row]) for row in rows)
    changes = {row: 0 if facts is None else one(facts) for row, facts in there}
    if len(before) == len(columns) and all(before[row] == value for row, value in changes.items()):
        return before
    found = np.zeros(len(columns), before.dtype)
    found[: len(before)] = before[: len(columns)]
    found[list(changes)] = list(changes.values())
    return frozen(found)
