"""Small numbers of all nodes that many pods ask for, followed from one snapshot to the next."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from slurm_bridge.hooks.columns import NodeColumns, Whole
from slurm_bridge.hooks.columns.table import frozen
from slurm_bridge.hooks.recent import Recent
from slurm_bridge.hooks.vela.scene import Rows

K = TypeVar("K", bound=Hashable)

#: Numbers of 16 bits: to copy and to pick from these is several times as fast.
Short = NDArray[np.int16]

#: So many kinds of answers are remembered: two bytes for each node.
MOST_KINDS = 32

#: When more than one in so many nodes changed, all are asked: one pass over arrays takes no longer then.
_FEW = 16

#: What is said of the nodes in these rows, or of all of them.
Said = Callable[[Rows | slice], Whole]

ALL = slice(None)


class Followed(Generic[K]):
    """Of a question that was answered before only nodes that changed are looked at; used from any thread.

    Each node has to be looked at by itself, and the question to stand for all that matters beside the nodes.
    """

    def __init__(self, most: int = MOST_KINDS) -> None:
        self._known: Recent[K, tuple[NodeColumns, Short]] = Recent(most)

    def get(self, nodes: NodeColumns, key: K, say: Said) -> Short:
        """The answer for each row."""
        known = self._known.get(key)
        if known is not None and known[0] is nodes:
            return known[1]
        rows = nodes.since(known[0]) if known is not None and len(known[0]) == len(nodes) else None
        if known is None or rows is None or len(rows) * _FEW > len(nodes):
            found = frozen(say(ALL).astype(np.int16))
        else:
            found = _redone(known[1], rows, say)
        self._known.put(key, (nodes, found))
        return found


def _redone(before: Short, rows: Rows, say: Said) -> Short:
    found = before.copy()
    found[rows] = say(rows)
    return frozen(found)
