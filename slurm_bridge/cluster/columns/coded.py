"""Values of rows: few distinct ones as codes, amounts as whole numbers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

V = TypeVar("V")

Mask = NDArray[np.bool_]
Codes = NDArray[np.int32]
Whole = NDArray[np.int64]

#: So many values are looked for one by one before it is worth while to write a book of all.
_FEW = 4

#: The code of a row that holds nothing.
HOLE = -1

#: Kubernetes' largest amount, halved: so that the sum and the difference of two amounts are numbers of a column too.
_MOST = 2**62 - 1


class Coded(Generic[V]):
    """One value per row out of few distinct ones; every value is that of some row, and a hole has the code -1."""

    __slots__ = ("_asked", "_book", "codes", "values")

    def __init__(self, codes: Codes, values: tuple[V, ...]) -> None:
        self.codes = codes
        self.values = values
        self._book: Mapping[V, int] | None = None
        self._asked = 0

    def code(self, value: V) -> int | None:
        """The code of a value, None when no row has it.

        Many columns are asked once and then replaced: those get no book.
        """
        if self._book is None and self._asked < _FEW:
            self._asked += 1
            return self.values.index(value) if value in self.values else None
        if self._book is None:
            self._book = {known: code for code, known in enumerate(self.values)}
        return self._book.get(value)

    def among(self, wanted: Iterable[V]) -> Mask:
        """The rows that have one of these values: no value is looked at, however many there are."""
        found = [code for value in wanted if (code := self.code(value)) is not None]
        if len(found) == 1:
            same: Mask = self.codes == found[0]
            return same
        listed = np.zeros(len(self.values) + 1, np.bool_)
        listed[found] = True
        return listed[self.codes]

    def holding(self, codes: Sequence[int]) -> Mask:
        """The rows that have one of these codes."""
        listed = np.zeros(len(self.values) + 1, np.bool_)
        listed[list(codes)] = True
        return listed[self.codes]

    def where(self, holds: Callable[[V], bool]) -> Mask:
        """The rows whose value passes; `holds` is asked once for each distinct value, and holes never pass."""
        passed = np.fromiter((holds(value) for value in self.values), np.bool_, len(self.values))
        return np.append(passed, False)[self.codes]

    def whole(self, of: Callable[[V], int]) -> Whole:
        """A number for each row, worked out once for each distinct value; 0 in holes."""
        numbers = np.fromiter((within(of(value)) for value in self.values), np.int64, len(self.values))
        return np.append(numbers, 0)[self.codes]


def units(resource: str, amount: Fraction) -> int:
    """An amount that is asked for, in the units of columns: cpu in milli cores, all else whole; rounded up."""
    top, bottom = amount.as_integer_ratio()
    number = -(-top * 1000 // bottom) if resource == "cpu" else -(-top // bottom)
    return number if -_MOST <= number <= _MOST else within(number)


def units_given(resource: str, amount: Fraction) -> int:
    """An amount that is there, in the same units; rounded down."""
    top, bottom = amount.as_integer_ratio()
    number = top * 1000 // bottom if resource == "cpu" else top // bottom
    return number if -_MOST <= number <= _MOST else within(number)


def units_left(resource: str, there: Fraction, used: Fraction) -> int:
    """What is left of an amount that is there, in the same units; rounded down, and without a fraction in between."""
    top, bottom = there.as_integer_ratio()
    less, parts = used.as_integer_ratio()
    number = (top * parts - less * bottom) * (1000 if resource == "cpu" else 1) // (bottom * parts)
    return number if -_MOST <= number <= _MOST else within(number)


def within(number: int) -> int:
    """The nearest number that a column holds."""
    return max(-_MOST, min(_MOST, number))
