"""The pods on nodes, one row each."""

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np

from slurm_bridge.cluster.columns.carried import Rows
from slurm_bridge.cluster.columns.coded import Coded, Codes, Mask, Whole
from slurm_bridge.cluster.columns.records import Records
from slurm_bridge.cluster.columns.table import Past, RecordTable, frozen
from slurm_bridge.model.pod import Pod


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Which pod is where: the pod rows that are no holes, the node row of each, the pod rows of each node row.

    `nodes` is how many rows nodes have; `rows_of` can be longer where other snapshots have more.
    """

    present: Mask
    node_rows: Codes
    rows_of: Records[tuple[int, ...]]
    nodes: int


class PodColumns(RecordTable[Pod]):
    """Columns over the pods on the nodes of one snapshot."""

    def __init__(self, records: Records[Pod | None], places: Places, past: Past, step: int) -> None:
        super().__init__(records, past, step)
        self._pods = records
        self._places = places

    @classmethod
    def of(cls, pods_of: Iterable[Sequence[Pod]]) -> "PodColumns":
        """From scratch, by node row."""
        records: list[Pod | None] = []
        rows_of: list[tuple[int, ...]] = []
        for pods in pods_of:
            rows_of.append(tuple(range(len(records), len(records) + len(pods))))
            records.extend(pods)
        node_rows = np.repeat(np.arange(len(rows_of), dtype=np.int32), [len(rows) for rows in rows_of])
        present = np.ones(len(records), np.bool_)
        places = Places(frozen(present), frozen(node_rows), Records.of(rows_of), len(rows_of))
        return cls(Records.of(records), places, Past(), 0)

    @property
    def pods(self) -> Sequence[Pod | None]:
        """The pod of each row."""
        return self.records

    @property
    def present(self) -> Mask:
        """The rows that hold a pod."""
        return self._places.present

    @property
    def node_rows(self) -> Codes:
        """The node row of each pod's node; any in a hole."""
        return self._places.node_rows

    def label(self, key: str) -> Coded[str | None]:
        """A label of the pods, None where a pod has none of this key."""
        return self.attribute(f"label {key}", lambda pod: pod.metadata.labels.get(key))

    def count(self, mask: Mask) -> Whole:
        """How many of these pods are on each node, by node row."""
        rows = self.node_rows[mask & self.present]
        return np.bincount(rows, minlength=self._places.nodes).astype(np.int64, copy=False)

    def rows_on(self, node_row: int) -> tuple[int, ...]:
        """The rows of the pods on one node, in the order in which the node's facts have them."""
        return self._places.rows_of[node_row]

    def after(self, changed: Rows, pods_of: Sequence[Sequence[Pod]], nodes: int) -> "PodColumns":
        """What it becomes when the nodes in these rows have other pods, `pods_of` in the same order."""
        step = _Step(self._pods, self._places)
        step.take(changed.tolist(), pods_of)
        return PodColumns(step.records(), step.places(nodes), self.past, self.past.step(list(step.moved)))


class _Step:
    """From columns to the next ones; pods that stay keep their rows. `moved` are those that differ, None in holes."""

    def __init__(self, records: Records[Pod | None], before: Places) -> None:
        self.moved: dict[int, int | None] = {}
        self._before = before
        self._records = records
        self._length = len(records)
        self._there: dict[int, Pod | None] = {}
        self._rows_of: dict[int, tuple[int, ...]] = {}
        self._holes: list[int] = []

    def take(self, rows: Sequence[int], pods_of: Sequence[Sequence[Pod]]) -> None:
        """First all that went, then all that came: these find their places."""
        known = [self._stay(*pair) for pair in zip(rows, pods_of, strict=True)]
        self._holes = [*np.flatnonzero(~self._before.present).tolist(), *self.moved]
        for row, pods, stay in zip(rows, pods_of, known, strict=True):
            self._rows_of[row] = tuple(self._place(pod, row, stay) for pod in pods)

    def records(self) -> Records[Pod | None]:
        """The pods by row."""
        return self._records.replaced(self._there, self._length, None)

    def places(self, nodes: int) -> Places:
        """Where they are now."""
        present, node_rows = np.zeros(self._length, np.bool_), np.zeros(self._length, np.int32)
        present[: len(self._before.present)] = self._before.present
        node_rows[: len(self._before.node_rows)] = self._before.node_rows
        moved = list(self.moved)
        present[moved] = [where is not None for where in self.moved.values()]
        node_rows[moved] = [where or 0 for where in self.moved.values()]
        longest = max(nodes, len(self._before.rows_of), max(self._rows_of, default=-1) + 1)
        rows_of = self._before.rows_of.replaced(self._rows_of, longest, ())
        return Places(frozen(present), frozen(node_rows), rows_of, nodes)

    def _stay(self, node_row: int, pods: Sequence[Pod]) -> dict[int, int]:
        """The rows of this node's pods by identity; those that went leave theirs."""
        here = self._before.rows_of[node_row] if node_row < len(self._before.rows_of) else ()
        rows = {id(self._records[row]): row for row in here}
        for gone in rows.keys() - {id(pod) for pod in pods}:
            self._there[rows[gone]] = None
            self.moved[rows[gone]] = None
        return rows

    def _place(self, pod: Pod, node_row: int, known: dict[int, int]) -> int:
        found = known.get(id(pod))
        if found is not None:
            return found
        if self._holes:
            row = self._holes.pop()
        else:
            row, self._length = self._length, self._length + 1
        self._there[row] = pod
        self.moved[row] = node_row
        return row
