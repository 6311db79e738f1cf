"""Which row is which node, for as long as no node comes or goes; and sets of names as masks, and back."""

import functools
import itertools
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from slurm_bridge.cluster.columns.coded import Mask, Whole
from slurm_bridge.cluster.columns.table import frozen
from slurm_bridge.cluster.recent_answers import Recent

#: So many sets of names are remembered; at twenty thousand nodes each takes a megabyte.
MOST_SETS = 64

#: Sets of so many nodes are looked up name by name: NumPy lets other threads run while it goes through all rows, and a
#: pass would wait for the end of their turns.
FEW = 64

#: Sets of more than one in so many nodes are worth being looked for among those that are known.
_MANY = 16


class NodeRows:
    """Nodes by row. Equal masks give the same frozenset again, so that caches keyed by sets of nodes are fast."""

    def __init__(self, names: Sequence[str], every: frozenset[str]) -> None:
        self.names: NDArray[np.object_] = np.empty(len(names), object)
        self.names[:] = names
        frozen(self.names)
        self.every = every
        self.index: Mapping[str, int] = {name: row for row, name in enumerate(names) if name}
        self.present: Mask = frozen((self.names != "").astype(np.bool_))
        #: By the number of the set: the set itself, its rows, and whether each of its names has one.
        self._masks: Recent[int, tuple[frozenset[str], Mask, bool]] = Recent(MOST_SETS)
        self._sets: Recent[bytes, frozenset[str]] = Recent(MOST_SETS)

    def __len__(self) -> int:
        return len(self.names)

    @functools.cached_property
    def rank(self) -> Whole:
        """The place of each row when they are sorted by name."""
        ranks = np.empty(len(self), np.int64)
        ranks[np.argsort(self.names, kind="stable")] = np.arange(len(self))
        return frozen(ranks)

    def mask(self, nodes: Iterable[str]) -> Mask:
        """The rows of these names; names that no row has are left out."""
        if nodes is self.every:
            return self.present
        if not isinstance(nodes, frozenset):
            return self._mask(nodes)
        known = self._masks.get(id(nodes))
        if known is not None and known[0] is nodes:
            return known[1]
        made = self._mask(nodes)
        self._masks.put(id(nodes), (nodes, made, bool(np.count_nonzero(made) == len(nodes))))
        return made

    def nodes(self, mask: Mask) -> frozenset[str]:
        """The names in these rows."""
        mask = mask & self.present
        key = np.packbits(mask).tobytes()
        known = self._sets.get(key)
        if known is not None:
            return known
        # Taking few from all is several times cheaper than gathering most of them.
        count, total = np.count_nonzero(mask), len(self.every)
        if count == total:
            made = self.every
        elif 4 * (total - count) < total:
            made = self.every.difference(self.names[self.present & ~mask].tolist())
        else:
            made = frozenset(self.names[mask].tolist())
        self._sets.put(key, made)
        self._masks.put(id(made), (made, frozen(mask), True))
        return made

    def at(self, rows: NDArray[np.intp]) -> frozenset[str]:
        """The names in these rows, none of which is a hole; few of them are hardly ever the same twice."""
        mask = np.zeros(len(self), np.bool_)
        mask[rows] = True
        if len(rows) * _MANY >= len(self):
            return self.nodes(mask)
        made = frozenset(self.names[rows].tolist())
        self._masks.put(id(made), (made, frozen(mask), True))
        return made

    def knows(self, nodes: frozenset[str]) -> bool:
        """These are some of the nodes here, and were told apart from the others already."""
        known = self._masks.get(id(nodes))
        return known is not None and known[0] is nodes and known[2]

    def _mask(self, nodes: Iterable[str]) -> Mask:
        rows = np.fromiter(map(self.index.get, nodes, itertools.repeat(-1)), np.intp)
        made = np.zeros(len(self), np.bool_)
        made[rows[rows >= 0]] = True
        return frozen(made)
