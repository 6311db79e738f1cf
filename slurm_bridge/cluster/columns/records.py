"""Many records of which few change at a time: whatever follows shares all parts that stay as they were."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar, overload

V = TypeVar("V")

#: Records of one part: a copy of it, and of the list of parts, is what a change costs.
_BITS = 7
_PART = 1 << _BITS
_WITHIN = _PART - 1


class Records(Sequence[V], Generic[V]):
    """A sequence that never changes. To copy twenty thousand references touches every one of the objects behind."""

    __slots__ = ("_length", "_parts")

    def __init__(self, parts: Sequence[Sequence[V]], length: int) -> None:
        self._parts = parts
        self._length = length

    @classmethod
    def of(cls, every: Iterable[V]) -> "Records[V]":
        """These, in their order."""
        listed = list(every)
        return cls([listed[start : start + _PART] for start in range(0, len(listed), _PART)], len(listed))

    def replaced(self, changes: Mapping[int, V], length: int, default: V) -> "Records[V]":
        """With others in some rows, and as long as this; new rows that are not among them have the default."""
        grown = self._fitted(length, default) if length != self._length else list(self._parts)
        copied: dict[int, list[V]] = {}
        for row, value in changes.items():
            number = row >> _BITS
            part = copied.get(number)
            if part is None:
                part = copied[number] = list(grown[number])
            part[row & _WITHIN] = value
        for number, part in copied.items():
            grown[number] = part
        return Records(grown, length)

    def _fitted(self, length: int, default: V) -> list[Sequence[V]]:
        """Only the last part that stays, and what comes after it, are made anew."""
        whole = min(length, self._length) >> _BITS
        rest = list(itertools.islice(itertools.chain.from_iterable(self._parts[whole:]), length - whole * _PART))
        rest += [default] * (length - whole * _PART - len(rest))
        return [*self._parts[:whole], *(rest[start : start + _PART] for start in range(0, len(rest), _PART))]

    @overload
    def __getitem__(self, row: int) -> V: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[V]: ...
    def __getitem__(self, row: int | slice) -> V | Sequence[V]:
        if isinstance(row, slice):
            return list(self)[row]
        if not -self._length <= row < self._length:
            raise IndexError(f"row {row} of {self._length}")
        place = row if row >= 0 else row + self._length
        return self._parts[place >> _BITS][place & _WITHIN]

    def __iter__(self) -> Iterator[V]:
        return itertools.chain.from_iterable(self._parts)

    def __len__(self) -> int:
        return self._length
