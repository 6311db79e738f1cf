"""From one snapshot's columns to the next one's, by what the keeper says has changed."""

import collections
import itertools
import threading
from collections.abc import Callable, Collection, Mapping

from slurm_bridge.cluster.columns.nodes import NodeColumns
from slurm_bridge.cluster.facts import NodeFacts

Facts = Mapping[str, NodeFacts]

#: So many names of changed nodes are remembered; beyond that all nodes are compared, which costs a millisecond or two.
MOST_CHANGES = 8192


class Follower:
    """Columns of one keeper's snapshots, each from those that were asked for last; snapshots may be asked in any order.

    The keeper tells of each snapshot which nodes differ from the one before.
    """

    def __init__(self, most: int = MOST_CHANGES) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._log: collections.deque[tuple[int, Collection[str]]] = collections.deque()
        self._noted = 0
        self._complete_since = 0
        self._last: tuple[int, Facts, NodeColumns] | None = None

    def note(self, version: int, changed: Collection[str]) -> None:
        """A snapshot of this version was given out; these nodes differ from the one before."""
        with self._lock:
            self._log.append((version, changed))
            self._noted += len(changed) + 1
            while self._noted > self._most:
                self._complete_since, dropped = self._log.popleft()
                self._noted -= len(dropped) + 1

    def columns(self, version: int, nodes: Facts, names: frozenset[str]) -> NodeColumns:
        """The columns of the snapshot of this version."""
        with self._lock:
            # With more holes than nodes a fresh start is cheaper than dragging them along.
            if self._last is None or len(self._last[2]) > 2 * len(names) + 64:
                made = NodeColumns.of(nodes, names)
            else:
                made = self._last[2].after(nodes, names, self._changed(self._last[0], self._last[1], version, nodes))
            self._last = (version, nodes, made)
            return made

    def _changed(self, known: int, before: Facts, version: int, nodes: Facts) -> Collection[str]:
        low, high = min(known, version), max(known, version)
        if low >= self._complete_since:
            # From the end: as a rule it is the last change alone.
            later = itertools.takewhile(lambda noted: noted[0] > low, reversed(self._log))
            return {name for noted, names in later if noted <= high for name in names}
        return {name for name in before.keys() | nodes.keys() if before.get(name) is not nodes.get(name)}


class Deferred:
    """Columns that are made at the first use."""

    __slots__ = ("_lock", "made", "make")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: Those that there are.
        self.made: NodeColumns | None = None
        #: How to make them; None: from scratch.
        self.make: Callable[[], NodeColumns] | None = None

    def get(self, nodes: Facts, names: frozenset[str]) -> NodeColumns:
        """The columns, the same ones every time."""
        if self.made is not None:
            return self.made
        with self._lock:
            # Under the lock: another thread may have made them meanwhile.
            if self.made is None:
                self.made = self.make() if self.make is not None else NodeColumns.of(nodes, names)
            return self.made
