"""Scores in whole numbers: what plugins say, their sum, the final score, and the best of all."""

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from slurm_bridge.cluster.columns import Whole
from slurm_bridge.runtime import frozen_records

#: What the best node has once scores are normalised.
HIGHEST = 100

#: So few are sorted as a list: NumPy lets other threads run while it sorts, which here takes longer than to sort.
FEW = 64

_LOWEST, _LARGEST = -(2**15), 2**15 - 1


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Weighted:
    """What one plugin says of each node, by place, and how much that counts."""

    weight: int
    scores: Whole


def accumulated(said: Sequence[Weighted], number: int) -> Whole:
    """The sum for each of so many nodes."""
    parts = [one.scores if one.weight == 1 else one.scores * one.weight for one in said]
    return functools.reduce(np.add, parts) if parts else np.zeros(number, np.int64)


def combined(sampled: Whole, plugins: Whole, said: Sequence[Weighted]) -> Whole:
    """The final score: all sums through the number of all plugins, which their weights do not change; 0 without any."""
    # The number that all of them are, where they were written so.
    same = int(plugins[0]) if len(plugins) and plugins.strides == (0,) else None
    total = accumulated(said, len(sampled)) + sampled
    return divided(total, plugins + len(said)) if same is None else through(total, same + len(said))


def picked(scores: Whole, count: int) -> NDArray[np.intp]:
    """The places of the highest scores, best first; among equal ones the first."""
    if len(scores) <= FEW:
        known = scores.tolist()
        ordered = sorted(range(len(known)), key=known.__getitem__, reverse=True)
        return np.array(ordered[: max(0, count)], np.intp)
    numbers = -scores
    fits = _LOWEST <= numbers.min(initial=0) <= numbers.max(initial=0) <= _LARGEST
    return np.argsort(numbers.astype(np.int16) if fits else numbers, kind="stable")[: max(0, count)]


def normalized(scores: Whole) -> Whole:
    """The highest becomes 100, the others what they are of it."""
    highest = max(0, int(scores.max(initial=0)))
    return divided(scores * HIGHEST, np.full(len(scores), highest, np.int64))


def divided(dividend: Whole, divisor: Whole) -> Whole:
    """Whole numbers, toward zero; 0 through 0 (divisors are never negative)."""
    quotient: Whole = np.abs(dividend) // np.maximum(divisor, 1) * np.sign(dividend)
    return np.where(divisor > 0, quotient, 0)


def through(dividend: Whole, divisor: int) -> Whole:
    """The same through one and the same number, which takes a fraction of the time."""
    if divisor <= 0:
        return np.zeros(len(dividend), np.int64)
    if len(dividend) and np.minimum.reduce(dividend) >= 0:
        return dividend // divisor
    quotient: Whole = np.abs(dividend) // divisor * np.sign(dividend)
    return quotient


@functools.lru_cache(maxsize=FEW)
def alike(number: int, count: int) -> Whole:
    """The same number for each of so many nodes, written down once."""
    return np.broadcast_to(np.int64(number), count)
