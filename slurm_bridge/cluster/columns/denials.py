"""Reasons gathered rule by rule: a node is denied by the first rule that says no, later ones have no say about it."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from slurm_bridge.cluster.columns.answers import Reasons
from slurm_bridge.cluster.columns.coded import Coded, Codes, Mask
from slurm_bridge.cluster.columns.nodes import NodeColumns

V = TypeVar("V")

#: A set of shortages is one number with a bit for each.
_BITS = 62


class Ruling:
    """Begins with nothing against any node."""

    def __init__(self, columns: NodeColumns) -> None:
        self._columns = columns
        self._open: Mask = columns.present.copy()
        self._codes: Codes = np.zeros(len(columns), np.int32)
        self._reasons: list[tuple[str, ...]] = [()]

    def deny(self, mask: Mask, reason: str) -> None:
        """These nodes, as far as nothing was said against them before."""
        self._take(mask & self._open, (reason,))

    def deny_by(self, found: Coded[V], reason_of: Callable[[V], str | None]) -> None:
        """Nodes by their value; None when there is nothing against it."""
        said = [reason_of(value) for value in found.values]
        if not any(said):
            return
        codes = {reason: len(self._reasons) + number for number, reason in enumerate(dict.fromkeys(filter(None, said)))}
        by_value = np.array([*(codes[reason] if reason else 0 for reason in said), 0], np.int32)
        now = np.where(self._open, by_value[found.codes], 0)
        self._codes += now
        self._open &= now == 0
        self._reasons += [(reason,) for reason in codes]

    def deny_all_of(self, shortages: Sequence[tuple[str, Mask]]) -> None:
        """Nodes with every one of these reasons that is true of them."""
        short = [(reason, mask & self._open) for reason, mask in shortages]
        short = [(reason, mask) for reason, mask in short if mask.any()]
        for start in range(0, len(short), _BITS):
            some = short[start : start + _BITS]
            sets = np.zeros(len(self._open), np.int64)
            for bit, (_, mask) in enumerate(some):
                sets |= mask.astype(np.int64) << bit
            for found in np.unique(sets[sets > 0]).tolist():
                self._take(sets == found, tuple(reason for bit, (reason, _) in enumerate(some) if found >> bit & 1))

    def reasons(self) -> Reasons:
        """All that was said."""
        return Reasons(self._columns, self._codes, tuple(self._reasons))

    def _take(self, rows: Mask, reasons: tuple[str, ...]) -> None:
        if rows.any():
            self._codes[rows] = len(self._reasons)
            self._reasons.append(reasons)
            self._open &= ~rows
