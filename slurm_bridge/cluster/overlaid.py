"""Records by name of which few change at a time: the next mapping shares all that stays with the one before."""

from collections.abc import Collection, ItemsView, Iterator, Mapping, ValuesView
from typing import Generic, TypeVar

V = TypeVar("V")

#: All is written anew once more than one in so many differ: a copy touches every one of the objects behind.
_FEW = 64


class Overlaid(Mapping[str, V], Generic[V]):
    """A mapping that never changes: others lie over some of its records, None over those that are gone."""

    __slots__ = ("_base", "_length", "_over")

    def __init__(self, base: Mapping[str, V], over: Mapping[str, V | None], length: int) -> None:
        self._base = base
        self._over = over
        self._length = length

    @classmethod
    def of(cls, every: Mapping[str, V]) -> "Overlaid[V]":
        """A copy, with nothing above it."""
        return cls(dict(every), {}, len(every))

    def after(self, now: Mapping[str, V], touched: Collection[str]) -> "Overlaid[V]":
        """What is there now, which differs from this in these names at most."""
        over = {**self._over, **{name: now.get(name) for name in touched}}
        return Overlaid.of(now) if len(over) * _FEW > len(now) else Overlaid(self._base, over, len(now))

    def over(self, records: Mapping[str, V]) -> "Overlaid[V]":
        """With these in place of some that are there."""
        return Overlaid(self._base, {**self._over, **records}, self._length)

    def __getitem__(self, name: str) -> V:
        if name not in self._over:
            return self._base[name]
        found = self._over[name]
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._flat())

    def __len__(self) -> int:
        return self._length

    def items(self) -> ItemsView[str, V]:
        """Those of a plain dictionary, which is several times as fast for all of them."""
        return self._flat().items()

    def values(self) -> ValuesView[V]:
        """Likewise."""
        return self._flat().values()

    def _flat(self) -> Mapping[str, V]:
        if not self._over:
            return self._base
        flat = {**self._base, **self._over}
        return {name: record for name, record in flat.items() if record is not None}
