"""What several hooks' scores are together, and which of the nodes are the best of those that have room now."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from slurm_bridge.hooks.base import Nodes, Scores
from slurm_bridge.hooks.columns import Mask, NodeColumns, Numbers

_Values = NDArray[np.float64]


def added(said: Sequence[Scores], nodes: Nodes) -> Scores:
    """The sum for each node, and how the first hook that cares wants it to be used."""
    if not said:
        return Scores(nodes={})
    if len(said) == 1:
        return said[0]
    tiers = next((one.tiers for one in said if one.tiers is not None), None)
    total = {name: sum(one.nodes.get(name, 0.0) for one in said) for name in nodes}
    return Scores(nodes=total, note="; ".join(one.note for one in said if one.note), tiers=tiers)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Ranking:
    """The nodes of a pass by their scores; one without a score has 0.

    `roomy` are those that have room now, None: nobody has looked. `turn` is where among equals the choice begins: a
    burst of workloads for which the same nodes are the best must not all be sent to the first few of them.
    """

    scores: Scores
    columns: NodeColumns
    roomy: Mask | None = None
    turn: int = 0

    def differ(self, nodes: Nodes) -> bool:
        """Whether the scores tell these nodes apart at all."""
        if not self.scores.nodes or not nodes:
            return False
        found = self._values[self._among(nodes)]
        return bool(found.size) and bool(found.min() != found.max())

    def best(self, nodes: Nodes, sizes: Sequence[int]) -> list[Nodes]:
        """So many of the best for each size, each set within the next; all of these nodes where that is enough."""
        among, values = self._among(nodes), self._values
        most = min(max(sizes, default=0), int(np.count_nonzero(among)))
        rows = _top(among, values, most, self.turn % len(among)) if most else np.empty(0, np.intp)
        names = self.columns.names[rows].tolist()
        return [nodes if size >= len(nodes) else frozenset(names[:size]) for size in sizes]

    def _among(self, nodes: Nodes) -> Mask:
        """Where none has room, all of them: who waits, waits for the best."""
        mask = self.columns.mask(nodes)
        with_room = mask if self.roomy is None else mask & self.roomy
        return with_room if with_room.any() else mask

    @functools.cached_property
    def _values(self) -> _Values:
        return _by_row(self.scores.nodes, self.columns)


def _by_row(scores: Mapping[str, float], columns: NodeColumns) -> _Values:
    if isinstance(scores, Numbers):
        return scores.values_of(columns)
    return np.fromiter((scores.get(name, 0.0) for name in columns.names.tolist()), np.float64, len(columns))


def _top(among: Mask, values: _Values, number: int, turn: int) -> NDArray[np.intp]:
    """The rows of the highest values, best first; equal ones in the order of rows, from `turn` on and around."""
    found = values[among]
    last = np.partition(found, len(found) - number)[len(found) - number]
    better = np.flatnonzero(among & (values > last))
    equal = np.flatnonzero(among & (values == last))
    begin = int(np.searchsorted(equal, turn))
    chosen = np.concatenate((better, np.roll(equal, -begin)[: number - len(better)]))
    return chosen[np.lexsort(((chosen - turn) % len(among), -values[chosen]))]
