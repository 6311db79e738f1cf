"""Nodes that were decided on, by numbers: samples are remembered for long, and are too many to be lists of words."""

import threading

import numpy as np
from numpy.typing import NDArray

from slurm_bridge.cluster.columns import Coded, NodeColumns
from slurm_bridge.cluster.columns.members import NodeRows
from slurm_bridge.families.vela import samples
from slurm_bridge.families.vela.samples import Picked
from slurm_bridge.families.vela.scene import Rows

#: A page is begun anew when it holds more than twice as many nodes as there are, and so many more.
SPARE = 1024


class _Page:
    """Nodes in the order in which they were first written down; it only grows."""

    __slots__ = ("names", "numbers", "uids")

    def __init__(self) -> None:
        self.names: list[str] = []
        self.uids: list[str] = []
        self.numbers: dict[tuple[str, str], int] = {}

    def number(self, name: str, uid: str) -> int:
        found = self.numbers.setdefault((name, uid), len(self.names))
        if found == len(self.names):
            self.names.append(name)
            self.uids.append(uid)
        return found


class Book:
    """What it gives out stays right whatever becomes of the nodes, and keeps no columns alive; from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._page = _Page()
        self._of: tuple[NodeRows, Coded[str]] | None = None
        self._numbers: NDArray[np.int32] = np.empty(0, np.int32)

    def written(self, nodes: NodeColumns, rows: Rows) -> tuple[Picked, Picked]:
        """The names of the nodes in these rows, and their uids."""
        with self._lock:
            known, uids = self._known(nodes)
            numbers = known[rows]
            new = rows[numbers < 0].tolist()
            for row in new:
                known[row] = self._page.number(nodes.names[row], uids.values[uids.codes[row]])
            if new:
                numbers = known[rows]
            return Picked(self._page.names, numbers), Picked(self._page.uids, numbers)

    def _known(self, nodes: NodeColumns) -> tuple[NDArray[np.int32], Coded[str]]:
        """The numbers by row, -1 where none was asked for since nodes came or went."""
        uids = samples.uid(nodes)
        if self._of is None or self._of[0] is not nodes.members or self._of[1] is not uids:
            self._of = nodes.members, uids
            self._numbers = np.full(len(nodes), -1, np.int32)
            if len(self._page.names) > 2 * len(nodes) + SPARE:
                self._page = _Page()
        return self._numbers, uids
