"""The size of a partition of Slurm: what its nodes have, without what jobs hold there that are not of this bridge.

Slurm says of a node how much all jobs hold together. What pods of the bridge have there is taken off, and what is left
is the others'. In between, it is not always: a job of the bridge may have its node before its pod, or after it. So of
each node only what two reads of Slurm in a row have found counts, or one that has stood for some time.
"""

import math
import threading
from collections.abc import Callable, Mapping

import numpy as np

from slurm_bridge.cluster.columns import Mask, NodeColumns, Whole
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.yunikorn import node_scores, whole_nodes
from slurm_bridge.families.yunikorn.demands import MEMORY
from slurm_bridge.families.yunikorn.node_scores import Measure
from slurm_bridge.families.yunikorn.queues.quantities import VCORE
from slurm_bridge.families.yunikorn.setup import Setup
from slurm_bridge.model.slurmnode import SlurmNode

#: What a read of Slurm found counts after so many seconds without another one: Slurm is read twice as often.
STANDS = 60.0


class PartitionMeasure(Measure):
    """Of the partition of this setup; `running` is what its workloads with nodes count as."""

    def __init__(self, setup: Setup, running: Callable[[], Mapping[str, int]]) -> None:
        super().__init__(setup.partition)
        self._name = setup.own
        self._gres = {kind: name for name, kind in setup.options.gres.items()}
        self._running = running
        self._lock = threading.Lock()
        self._read: object = None
        self._at = -math.inf
        #: By kind: what others hold of each node by the last read, and by the one before; what is the bridge's of that.
        self._now: dict[str, Whole] = {}
        self._before: dict[str, Whole] = {}
        self._ours: dict[str, int] = {}

    def is_due(self, version: int, now: float) -> bool:
        """Also when what the last read found counts from now on."""
        stands = bool(self._now) and self._before is not self._now and now >= self._at + STANDS
        return super().is_due(version, now) or stands

    def _size(self, snapshot: ClusterSnapshot, now: float) -> Mapping[str, int]:
        columns = snapshot.columns
        partitions = [one for one in snapshot.partitions if one.name == self._name]
        inside = whole_nodes.mask_of(partitions, snapshot, columns)
        with self._lock:
            if snapshot.slurm_nodes is not self._read:
                self._read, self._at, self._before = snapshot.slurm_nodes, now, self._now
                self._look(columns, inside)
            elif now >= self._at + STANDS:
                self._before = self._now
            return node_scores.size(columns, self._kinds, self._kept, inside, self._taken)

    def _look(self, columns: NodeColumns, inside: Mask) -> None:
        counted = self._running()
        self._now, self._ours = {}, {}
        for kind in self._kinds:
            name = "cpu" if kind == VCORE else kind
            placed = columns.used(name) - columns.unplaced(name)
            self._now[kind] = np.maximum(self._given(columns, kind) - placed, 0)
            # A job of the bridge may hold more than its pods ask for: a whole node, or what an annotation says.
            self._ours[kind] = max(0, counted.get(kind, 0) - int(placed[inside].sum()))

    def _given(self, columns: NodeColumns, kind: str) -> Whole:
        if kind in (VCORE, MEMORY):
            return columns.given_away("cpu" if kind == VCORE else kind)
        name = self._gres.get(kind, kind.removeprefix("gres/"))

        def of(slurm: SlurmNode | None) -> int:
            return sum(one.count for one in slurm.used_gres if one.name == name) if slurm is not None else 0

        return columns.of_slurm(f"given away gres {name}", of)

    def _taken(self, kind: str, nodes: Mask) -> int:
        now, before = self._now[kind], self._before.get(kind)
        if before is None:
            return 0
        # Rows stay where they are; of a node that was not there before, nothing counts yet.
        both, rows = np.zeros_like(now), min(len(now), len(before))
        both[:rows] = np.minimum(now[:rows], before[:rows])
        if len(both) < len(nodes):
            both = np.pad(both, (0, len(nodes) - len(both)))
        return max(0, int(both[: len(nodes)][nodes].sum()) - self._ours[kind])
