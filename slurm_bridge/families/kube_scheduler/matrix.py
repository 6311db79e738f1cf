"""What all priorities said of all nodes, as columns; as mappings and lists only where they are shown."""

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from slurm_bridge.cluster.columns import Mask, NodeColumns, Numbers, Whole
from slurm_bridge.families.kube_scheduler.priorities import numbers
from slurm_bridge.families.kube_scheduler.priorities.rule import HostPriority
from slurm_bridge.hooks import base
from slurm_bridge.model.pod import Pod

#: The score of every node where no priority says anything.
UNRATED = 1


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scored:
    """One priority's scores by row, after reduce."""

    name: str
    weight: int
    values: Whole


class Cells(Mapping[str, float]):
    """One row by name, as it lies in its column: most matrices are never read."""

    __slots__ = ("_columns", "_nodes", "_values")

    def __init__(self, columns: NodeColumns, values: Whole, nodes: Mask) -> None:
        self._columns, self._values, self._nodes = columns, values, nodes

    def __getitem__(self, name: str) -> float:
        row = self._columns.row(name)
        if row is None or not self._nodes[row]:
            raise KeyError(name)
        return int(self._values[row])

    def __iter__(self) -> Iterator[str]:
        names: list[str] = self._columns.names[self._nodes].tolist()
        return iter(names)

    def __len__(self) -> int:
        return int(np.count_nonzero(self._nodes))


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Prioritized:
    """A row for each priority over the candidates, and their weighted sum."""

    columns: NodeColumns
    nodes: Mask
    rows: tuple[Scored, ...]
    combined: Whole

    @functools.cached_property
    def by_name(self) -> Numbers:
        """The sums, always the same object."""
        return Numbers(self.columns, lambda: (self.combined, self.nodes))

    @functools.cached_property
    def shown(self) -> base.Matrix:
        """All of it by name, always the same object."""
        rows = tuple(
            base.Row(name=row.name, weight=row.weight, scores=Cells(self.columns, row.values, self.nodes))
            for row in self.rows
        )
        return base.Matrix(rows=rows, combined=self.by_name)

    def lines(self, pod: Pod) -> Iterator[str]:
        """Every cell as kube-scheduler logs it."""
        name = f"{pod.metadata.namespace}/{pod.metadata.name}"
        for row in self.rows:
            for one in listed(self.columns, row.values, self.nodes):
                yield f"{name} -> {one.host}: {row.name}, Score: ({one.score})"


def listed(columns: NodeColumns, values: Whole, nodes: Mask) -> list[HostPriority]:
    """The scores of the candidates, in the order of rows."""
    names: list[str] = columns.names[nodes].tolist()
    scores: list[int] = values[nodes].tolist()
    return [HostPriority(name, score) for name, score in zip(names, scores, strict=True)]


def combine(rows: Sequence[Scored], length: int) -> Whole:
    """The weighted sum; constant rows cost nothing."""
    flat, total = 0, None
    for row in rows:
        same = numbers.constant_of(row.values)
        if same is not None:
            flat += same * row.weight
        else:
            weighed = row.values * row.weight
            total = weighed if total is None else total + weighed
    return numbers.constant(length, flat) if total is None else np.add(total, flat)


def by_row(columns: NodeColumns, scores: Mapping[str, int]) -> Whole:
    """Scores by name as a column; a node without one has 0, and names that are no nodes are left out."""
    values = np.zeros(len(columns), np.int64)
    for name, score in scores.items():
        row = columns.row(name)
        if row is not None:
            values[row] = score
    return values
