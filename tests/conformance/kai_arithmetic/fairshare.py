"""How one resource is divided among sibling queues.

1 deserved    min(deserved, requestable) for each, even where that is more than there is
2 over quota  what remains by weight, in rounds, in whole units; the highest priority first
3 the rest    a unit each by the largest fraction that step 2 has cut off
"""

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

#: What is given out last goes in pieces of this size.
_UNIT = Fraction(1)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class QueueClaim:
    """What a queue asks for; None is without a limit. `usage` is its part of the cluster in the past, `share` its own.

    `weight` is that over its quota; of two queues the one with the smaller `created` is older.
    """

    request: float
    deserved: float | None = 0
    weight: float = 0
    max: float | None = None
    priority: int = 0
    created: float = 0
    usage: float = 0
    share: float = 0

    @property
    def requestable(self) -> Fraction:
        """The request, as far as the queue may grow."""
        return _exact(self.request if self.max is None else min(self.request, self.max))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Divided:
    """What each queue has in the end, and what nobody got."""

    shares: Mapping[str, float]
    remaining: float


def divide(total: float, queues: Mapping[str, QueueClaim], k_value: float = 0) -> Divided:
    """All three steps."""
    every = _exact(total)
    deserved = {name: every if one.deserved is None else _exact(one.deserved) for name, one in queues.items()}
    shares = {name: min(deserved[name], one.requestable) for name, one in queues.items()}
    remaining = max(Fraction(0), every - sum(shares.values()))
    return _Round(queues, shares, remaining, _exact(k_value)).divided()


def over_quota(total: float, queues: Mapping[str, QueueClaim], k_value: float = 0) -> Divided:
    """Steps 2 and 3: so much is left to give beside what the queues have."""
    shares = {name: _exact(one.share) for name, one in queues.items()}
    return _Round(queues, shares, _exact(total), _exact(k_value)).divided()


class _Round:
    """Shares as they grow."""

    def __init__(
        self, queues: Mapping[str, QueueClaim], shares: dict[str, Fraction], remaining: Fraction, k_value: Fraction
    ) -> None:
        self._queues = queues
        self._shares = shares
        self._remaining = remaining
        self._k_value = k_value
        self._fractions: dict[str, Fraction] = {}

    def divided(self) -> Divided:
        """By priority, twice: whole amounts for all first, then what that has left."""
        for names in self._by_priority(self._queues):
            while self._again(names):
                pass
        for names in self._by_priority(self._fractions):
            self._give_units(names)
        shares = {name: float(share) for name, share in self._shares.items()}
        return Divided(shares=shares, remaining=float(self._remaining))

    def _by_priority(self, names: Iterable[str]) -> Iterator[tuple[str, ...]]:
        listed = tuple(names)
        for priority in sorted({self._queues[name].priority for name in listed}, reverse=True):
            yield tuple(name for name in listed if self._queues[name].priority == priority)

    def _again(self, names: Iterable[str]) -> bool:
        """One round; whether it leaves something that others can have."""
        start, less = self._remaining, False
        if start <= 0:
            return False
        for name, value in self._values(names).items():
            fair, wanted = start * value, self._open(name)
            given = wanted if wanted <= fair else Fraction(math.floor(fair))
            if wanted <= fair:
                self._fractions.pop(name, None)
            else:
                self._fractions[name] = fair - given
            self._give(name, given)
            less |= wanted < fair
        return less and self._remaining > 0

    def _values(self, names: Iterable[str]) -> Mapping[str, Fraction]:
        """The part of each unsatisfied queue with a weight; who has used much gets less."""
        weights = {name: _exact(self._queues[name].weight) for name in names if self._open(name) > 0}
        every = sum(weights.values())
        values = {
            name: max(Fraction(0), weight / every + self._k_value * (weight / every - _exact(self._queues[name].usage)))
            for name, weight in weights.items()
            if weight > 0
        }
        whole = sum(values.values())
        return {name: value / whole for name, value in values.items()} if whole else {}

    def _give_units(self, names: Iterable[str]) -> None:
        for name in sorted(names, key=lambda one: (-self._fractions[one], self._queues[one].created, one)):
            self._give(name, min(_UNIT, self._remaining))

    def _give(self, name: str, amount: Fraction) -> None:
        self._shares[name] += amount
        self._remaining -= amount

    def _open(self, name: str) -> Fraction:
        return self._queues[name].requestable - self._shares[name]


def _exact(number: float) -> Fraction:
    """As it is written: fractions that are equal on paper have to be equal when queues are compared by them."""
    return Fraction(str(number))
