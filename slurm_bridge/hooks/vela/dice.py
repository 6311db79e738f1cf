"""Random numbers without repetition, from dice that a test can script."""

import random
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.intp]

#: Where more than half of what is left of a list that is at least so long is wanted, it is shuffled: most of what is
#: drawn would be a repetition.
LONG = 256

#: What is shuffled is sorted by numbers below this: of twenty thousand two are the same once in twenty times.
_HARDLY_TWICE = 2**32


class Dice(Protocol):
    """So many whole numbers from 0 on and below a bound; the same number may come again."""

    def __call__(self, below: int, count: int) -> Sequence[int] | NDArray[np.int64]: ...


def throw(seed: random.Random) -> Dice:
    """Dice that fall as the seed says."""
    generator = np.random.default_rng(seed.getrandbits(128))

    def numbers(below: int, count: int) -> NDArray[np.int64]:
        return generator.integers(0, below, size=count)

    return numbers


def distinct(below: int, count: int, dice: Dice) -> Places:
    """So many different numbers (or all there are) in the order in which they were drawn; repetitions are skipped.

    About as many are drawn at once as will be needed: what is drawn beyond that is thrown away.
    """
    wanted = min(count, below)
    chosen: Places = np.zeros(0, np.intp)
    while len(chosen) < wanted:
        missing, left = wanted - len(chosen), below - len(chosen)
        shuffles = below >= LONG and 2 * missing > left
        more = _shuffled(below, chosen, dice) if shuffles else _drawn(below, missing * below // left + missing, dice)
        if not len(more):
            raise RuntimeError(f"the dice gave nothing when {missing} more numbers below {below} were wanted")
        both = np.concatenate([chosen, more]) if len(chosen) else more
        chosen = both if shuffles else firsts(both)
    return chosen[: max(0, wanted)]


def firsts(numbers: Places) -> Places:
    """Without repetitions, in order; none is below 0."""
    if not len(numbers):
        return numbers
    return numbers[is_first(numbers)]


def is_first(numbers: Places) -> NDArray[np.bool_]:
    """Which of these numbers, none below 0, was not there before."""
    order = np.arange(len(numbers))
    last = np.empty(int(numbers.max(initial=0)) + 1, np.intp)
    # Of several values for one place the last one stays, which is the first one from behind.
    last[numbers[::-1]] = order[::-1]
    found: NDArray[np.bool_] = last[numbers] == order
    return found


def _drawn(below: int, count: int, dice: Dice) -> Places:
    return np.asarray(dice(below, count), np.intp)


def _shuffled(below: int, chosen: Places, dice: Dice) -> Places:
    """The others, in any order: as if they were drawn until all of them have come.

    Numbers that carry their places along are sorted several times as fast as places by their numbers.
    """
    bits = below.bit_length()
    places: Places = _drawn(_HARDLY_TWICE, below - len(chosen), dice) << bits
    places |= np.arange(len(places))
    places.sort()
    places &= (1 << bits) - 1
    if not len(chosen):
        return places
    left = np.ones(below, np.bool_)
    left[chosen] = False
    return np.flatnonzero(left)[places]
