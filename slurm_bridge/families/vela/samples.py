"""What is asked of an agent, and what comes back: nodes by place, their scores as arrays beside them."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from slurm_bridge.cluster.columns import Coded, NodeColumns, Whole
from slurm_bridge.families.vela.scene import Rows
from slurm_bridge.model.pod import Pod
from slurm_bridge.runtime import frozen_records

#: How many of its nodes an agent returns, in basis points (hundredths of a percent).
USUAL_NODES_BP = 200

NO_NUMBERS: Whole = np.zeros(0, np.int64)
NO_ROWS: Rows = np.zeros(0, np.intp)


class Picked(Sequence[str]):
    """Words out of many that a snapshot has anyway, by their codes: made only when they are read.

    `rows` says which of the codes are meant, where not all of them are.
    """

    __slots__ = ("_codes", "_rows", "every", "values")

    def __init__(
        self,
        values: Sequence[str] | NDArray[np.object_],
        every: NDArray[np.integer],
        rows: NDArray[np.intp] | None = None,
    ) -> None:
        self.values = values
        self.every = every
        self._rows = rows
        self._codes = every if rows is None else None

    @property
    def codes(self) -> NDArray[np.integer]:
        """By place."""
        if self._codes is None:
            self._codes = self.every[self._rows]
        return self._codes

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...
    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        if isinstance(place, slice):
            return Picked(self.values, self.codes[place])
        word: str = self.values[self.codes[place]]
        return word

    def __iter__(self) -> Iterator[str]:
        if isinstance(self.values, np.ndarray):
            found: list[str] = self.values[self.codes].tolist()
            return iter(found)
        return map(self.values.__getitem__, self.codes.tolist())

    def __len__(self) -> int:
        return len(self.every if self._rows is None else self._rows)

    def __eq__(self, other: object) -> bool:
        """To the same words in a list, too."""
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Picked({list(self)!r})"


def names(nodes: NodeColumns, rows: Rows) -> Picked:
    """The names of the nodes in these rows."""
    return Picked(nodes.names, rows)


def uids(nodes: NodeColumns, rows: Rows) -> Picked:
    """The uids of the Kubernetes nodes in these rows."""
    every = uid(nodes)
    return Picked(every.values, every.codes, rows)


def uid(nodes: NodeColumns) -> Coded[str]:
    """The uid of each node in Kubernetes."""
    return nodes.of_node("node uid", lambda node: node.metadata.uid)


def joined(parts: Sequence[Sequence[str]]) -> Sequence[str]:
    """One after the other."""
    if len(parts) == 1:
        return parts[0]
    picked = [part for part in parts if isinstance(part, Picked)]
    if len(picked) == len(parts) > 0 and all(part.values is picked[0].values for part in picked):
        return Picked(picked[0].values, np.concatenate([part.codes for part in picked]))
    return [word for part in parts for word in part]


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SamplingRequest:
    """A pod, and how many of the nodes of one agent are wanted for it; 0 is the usual number.

    `partition` are those of Slurm that its job may be in (a comma list), "" the default one; None: it is not known.
    `seconds` is how long the caller waits for the answer; None: as long as it takes.
    """

    pod: Pod
    nodes_bp: int = USUAL_NODES_BP
    partition: str | None = None
    seconds: float | None = None


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SamplingResponse:
    """The nodes of one agent that passed, in the order in which they were found.

    `uids` are those of the Kubernetes nodes, "" where the agent did not say; `accumulated` is the sum of its scores
    with their weights, `plugins` how many of its plugins gave one.
    """

    cluster: str
    nodes: Sequence[str] = ()
    uids: Sequence[str] = ()
    accumulated: Whole = dataclasses.field(default_factory=lambda: NO_NUMBERS)
    plugins: Whole = dataclasses.field(default_factory=lambda: NO_NUMBERS)
