"""Records by row, and columns over them: only rows that differ are worked out anew, what was given out stays valid.

Tables of one cluster are a chain of steps, each with the rows in which it differs from the one before. A column that
was worked out for one step is carried to any other, forward or back: what differs is done anew, in a copy.
"""

import collections
import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from slurm_bridge.cluster.columns import carried
from slurm_bridge.cluster.columns.carried import Rows
from slurm_bridge.cluster.columns.coded import Coded, Whole
from slurm_bridge.cluster.recent_answers import Recent

F = TypeVar("F")
V = TypeVar("V")

#: So many columns are kept: which labels are looked at is for users to say.
MOST_COLUMNS = 128

#: The rows of so many steps are put together one by one.
_FEW_STEPS = 32

#: So many steps a column can be carried.
MOST_STEPS = 1024

NO_ROWS: Rows = np.empty(0, np.intp)

_Name = tuple[str, bool]


class _Kept:
    """A column, the step for which it was computed last, and the lock for computing it."""

    __slots__ = ("column", "lock", "step")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.step = 0
        self.column: carried.Column | None = None


class Past:
    """What tables of one cluster share: in which rows they differ, and columns that were worked out.

    Each column has a lock of its own: a site's code that hangs while it computes one blocks only threads that need the
    same column.
    """

    def __init__(self, most_steps: int = MOST_STEPS, most_columns: int = MOST_COLUMNS) -> None:
        self.lock = threading.RLock()
        self._changed: collections.deque[Rows] = collections.deque(maxlen=most_steps)
        self._steps = 0
        self._columns: Recent[_Name, _Kept] = Recent(most_columns)
        self._shared: dict[str, Any] = {}

    def shared(self, name: str, make: Callable[[], V]) -> V:
        """What all users of this cluster's columns share beside them: made once, so that one name has one meaning."""
        found: V | None = self._shared.get(name)
        if found is None:
            with self.lock:
                found = self._shared.setdefault(name, make())
        return found

    def step(self, changed: Sequence[int]) -> int:
        """The number of a new table that differs from the last one in these rows."""
        with self.lock:
            self._changed.append(np.array(changed, np.intp))
            self._steps += 1
            return self._steps

    def between(self, one: int, other: int) -> Rows | None:
        """The rows that may differ between two steps; None when that is not known any more."""
        if one == other:
            return NO_ROWS
        low, high = (one, other) if one < other else (other, one)
        with self.lock:
            forgotten = self._steps - len(self._changed)
            if low < forgotten:
                return None
            if high - low == 1:
                return self._changed[low - forgotten]
            changed = [self._changed[number - forgotten] for number in range(low, high)]
        if high - low <= _FEW_STEPS:
            # As a rule these are a few rows, and NumPy lets other threads run while it sorts them.
            return np.array(sorted({row for rows in changed for row in rows.tolist()}), np.intp)
        return np.unique(np.concatenate(changed))

    def column(self, records: Sequence[Any], step: int, name: _Name, of: Callable[[Any], Any]) -> Coded[Any] | Whole:
        """The column for the table of this step."""
        with self.lock:
            kept = self._columns.get(name)
            if kept is None:
                self._columns.put(name, kept := _Kept())
        with kept.lock:
            rows = self.between(kept.step, step)
            if kept.column is None or rows is None:
                column = carried.Codes() if name[1] else carried.Numbers()
                made = column.scratch(records, of)
                kept.column = column
            else:
                made = kept.column.carry(records, rows[rows < len(records)].tolist(), of)
            kept.step = step
            return made


class Strand:
    """Columns of one table that look at one side of its records; tables between which that did not change share it."""

    __slots__ = ("_known", "past", "step")

    def __init__(self, past: Past, step: int) -> None:
        self.past = past
        self.step = step
        self._known: dict[_Name, Coded[Any] | Whole] = {}

    def after(self, changed: Sequence[int]) -> "Strand":
        """That of a table which differs on this side in these rows."""
        return Strand(self.past, self.past.step(changed)) if changed else self

    def column(self, records: Sequence[Any], name: _Name, of: Callable[[Any], Any]) -> Any:
        """The column over these records, which are those of the step: codes or whole numbers, as its name says."""
        known = self._known.get(name)
        if known is not None:
            return known
        made = self.past.column(records, self.step, name, of)
        if len(self._known) >= MOST_COLUMNS:
            self._known = {}
        self._known[name] = made
        return made


class RecordTable(Generic[F]):
    """Records by row. A row keeps its record's place for as long as that is there; then it is a hole, to be filled."""

    def __init__(self, records: Sequence[F | None], past: Past, step: int) -> None:
        #: The record of each row, None in holes.
        self.records = records
        #: What all tables of one cluster share, and the place of this table among them.
        self.past = past
        self.step = step
        self._length = len(records)
        self._strand = Strand(past, step)

    def since(self, before: "RecordTable[F]") -> Rows | None:
        """The rows in which this may differ from another table; None when that is not known any more."""
        return self.past.between(before.step, self.step) if before.past is self.past else None

    def __len__(self) -> int:
        """Rows, holes included: the length of all arrays."""
        return self._length

    def attribute(self, name: str, of: Callable[[F], V]) -> Coded[V]:
        """What `of` says of each record; asked once per record, so that one name has to mean one function."""
        found: Coded[V] = self._strand.column(self.records, (name, True), of)
        return found

    def whole(self, name: str, of: Callable[[F], int]) -> Whole:
        """Likewise for numbers; 0 in holes."""
        found: Whole = self._strand.column(self.records, (name, False), of)
        return found


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """The same array, read-only from now on."""
    array.setflags(write=False)
    return array
