"""One column, carried from one table of a cluster to the next; the owner's lock guards it."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from slurm_bridge.cluster.columns.coded import HOLE, Coded, Whole, within

F = TypeVar("F")

Rows = NDArray[np.intp]
Records = Sequence[Any | None]
Of = Callable[[Any], Any]

#: When more values than this go at once, codes are given anew for all.
_MANY = 16


class Numbers:
    """Whole numbers."""

    def __init__(self) -> None:
        self._array: Whole = np.empty(0, np.int64)

    def scratch(self, records: Records, of: Of) -> Whole:
        """Asked for every record."""
        numbers = (0 if record is None else within(of(record)) for record in records)
        self._array = np.fromiter(numbers, np.int64, len(records))
        self._array.setflags(write=False)
        return self._array

    def carry(self, records: Records, rows: Sequence[int], of: Of) -> Whole:
        """Asked only for these rows."""
        found = [0 if (record := records[row]) is None else within(of(record)) for row in rows]
        array = _fitted(self._array, len(records), 0)
        if array[rows].tolist() != found:
            array = array.copy()
            array[rows] = found
        array.setflags(write=False)
        self._array = array
        return array


class Codes:
    """Few distinct values. Codes of values that no row has any more are given to others, so that all are in use."""

    def __init__(self) -> None:
        self._made: Coded[Any] = Coded(np.empty(0, np.int32), ())
        self._book: dict[Hashable, int] = {}
        self._values: list[Any] = []
        #: Whether other values were in use when the column was given out last.
        self._moved = False

    def scratch(self, records: Records, of: Of) -> Coded[Any]:
        """Asked for every record."""
        book: dict[Hashable, int] = {}
        codes = (HOLE if record is None else book.setdefault(of(record), len(book)) for record in records)
        array = np.fromiter(codes, np.int32, len(records))
        self._book, self._values, self._moved = book, list(book), True
        return self._give(array)

    def carry(self, records: Records, rows: Sequence[int], of: Of) -> Coded[Any]:
        """Asked only for these rows. Nothing is changed before all of them have answered."""
        found = [None if (record := records[row]) is None else (of(record),) for row in rows]
        array = _fitted(self._made.codes, len(records), HOLE)
        before = array[rows].tolist()
        now = [HOLE if value is None else self._code(value[0]) for value in found]
        if now == before and len(array) == len(self._made.codes):
            return self._made
        array = array.copy()
        array[rows] = now
        gone = set(before) - set(now) - {HOLE} if len(array) >= len(self._made.codes) else set(range(len(self._values)))
        return self._give(self._tidied(array, gone))

    def _code(self, value: Hashable) -> int:
        code = self._book.get(value)
        if code is None:
            code = self._book[value] = len(self._values)
            self._values.append(value)
            self._moved = True
        return code

    def _tidied(self, array: NDArray[np.int32], maybe: Iterable[int]) -> NDArray[np.int32]:
        """Without those of these codes that no row has any more: the last code takes the place of one that goes."""
        often = np.bincount(array + 1, minlength=len(self._values) + 1)
        gone = [code for code in sorted(maybe, reverse=True) if not often[code + 1]]
        self._moved = self._moved or bool(gone)
        if len(gone) > _MANY:
            used = often[1:] > 0
            self._values = [value for value, there in zip(self._values, used.tolist(), strict=True) if there]
            self._book = {value: code for code, value in enumerate(self._values)}
            return np.append(np.cumsum(used) - 1, HOLE).astype(np.int32)[array]
        for code in gone:
            last = self._values.pop()
            if code == len(self._values):
                del self._book[last]
                continue
            del self._book[self._values[code]]
            array[array == len(self._values)] = code
            self._values[code], self._book[last] = last, code
        return array

    def _give(self, array: NDArray[np.int32]) -> Coded[Any]:
        """Values that stayed are the very same tuple, so that results computed from them stay valid."""
        array.setflags(write=False)
        self._made = Coded(array, tuple(self._values) if self._moved else self._made.values)
        self._moved = False
        return self._made


Column = Codes | Numbers


def _fitted(array: NDArray[Any], size: int, hole: int) -> NDArray[Any]:
    """The same array, longer or shorter; an older table can be shorter."""
    if len(array) == size:
        return array
    fitted = np.full(size, hole, array.dtype)
    common = min(size, len(array))
    fitted[:common] = array[:common]
    return fitted
