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

#: So many numbers at once are drawn one by one. NumPy lets other threads run while it draws, and a caller that
#: wants a few numbers would wait for their turns to end.
FEW = 256

#: What is shuffled is sorted by numbers below this: of twenty thousand two are the same once in twenty times.
_HARDLY_TWICE = 2**32


#: Written down once: NumPy lets other threads run while it counts, too.
_COUNTED: Places = np.arange(4096)
_COUNTED.setflags(write=False)


class Dice(Protocol):
    """So many whole numbers from 0 on and below a bound; the same number may come again."""

    def __call__(self, below: int, count: int) -> Sequence[int] | NDArray[np.int64]: ...


def throw(seed: random.Random) -> Dice:
    """Dice that fall as the seed says."""
    generator = np.random.default_rng(seed.getrandbits(128))
    one = random.Random(seed.getrandbits(64)).random  # noqa: S311 - no secret

    def numbers(below: int, count: int) -> Sequence[int] | NDArray[np.int64]:
        if count <= FEW:
            return [int(one() * below) for _ in range(count)]
        return generator.integers(0, below, size=count)

    return numbers


def distinct(below: int, count: int, dice: Dice) -> Places:
    """So many different numbers (or all there are) in the order in which they were drawn; repetitions are skipped.

    About as many are drawn at once as will be needed: what is drawn beyond that is thrown away.
    """
    wanted = min(count, below)
    if 2 * wanted <= (FEW if below < LONG else min(FEW, below)):
        return _few(below, wanted, dice)
    chosen: Places = np.zeros(0, np.intp)
    while len(chosen) < wanted:
        missing, left = wanted - len(chosen), below - len(chosen)
        shuffles = below >= LONG and 2 * missing > left
        more = _shuffled(below, chosen, dice) if shuffles else _drawn(below, missing * below // left + missing, dice)
        if not len(more):
            raise RuntimeError(_nothing(missing, below))
        both = np.concatenate([chosen, more]) if len(chosen) else more
        chosen = both if shuffles else firsts(both)
    return chosen[: max(0, wanted)]


def _few(below: int, wanted: int, dice: Dice) -> Places:
    """The same for so few that a dictionary is faster than arrays; they are never shuffled."""
    chosen: dict[int, None] = {}
    while (missing := wanted - (number := len(chosen))) > 0:
        left = below - number
        more = dice(below, missing * below // left + missing)
        if not len(more):
            raise RuntimeError(_nothing(missing, below))
        chosen.update(dict.fromkeys(more.tolist() if isinstance(more, np.ndarray) else more))
    return np.array(list(chosen)[: max(0, wanted)], np.intp)


def _nothing(missing: int, below: int) -> str:
    return f"the dice gave nothing when {missing} more numbers below {below} were wanted"


def counting(number: int) -> Places:
    """From 0 on, so many, not to be written to."""
    return _COUNTED[:number] if number <= len(_COUNTED) else np.arange(number)


def firsts(numbers: Places) -> Places:
    """Without repetitions, in order; none is below 0."""
    if len(numbers) <= FEW:
        once = dict.fromkeys(numbers.tolist())
        return numbers if len(once) == len(numbers) else np.array(list(once), np.intp)
    return numbers[is_first(numbers)]


def is_first(numbers: Places) -> NDArray[np.bool_]:
    """Which of these numbers, none below 0, was not there before."""
    order = counting(len(numbers))
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
