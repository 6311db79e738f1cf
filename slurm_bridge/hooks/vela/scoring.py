"""Scores in whole numbers: what plugins say, their sum, the final score, and the best of all."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from slurm_bridge.hooks.columns import Whole

#: What the best node has once scores are normalised.
HIGHEST = 100


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Weighted:
    """What one plugin says of each node, by place, and how much that counts."""

    weight: int
    scores: Whole


def accumulated(said: Sequence[Weighted], number: int) -> Whole:
    """The sum for each of so many nodes."""
    total: Whole = np.zeros(number, np.int64)
    for one in said:
        total += one.scores * one.weight
    return total


def combined(sampled: Whole, plugins: Whole, said: Sequence[Weighted]) -> Whole:
    """The final score: all sums through the number of all plugins, which their weights do not change; 0 without any."""
    return divided(accumulated(said, len(sampled)) + sampled, plugins + len(said))


def picked(scores: Whole, count: int) -> NDArray[np.intp]:
    """The places of the highest scores, best first; among equal ones the first."""
    return np.argsort(_short(-scores), kind="stable")[: max(0, count)]


def _short(numbers: Whole) -> NDArray[np.int16] | Whole:
    """Numbers of 16 bits, as final scores are, are sorted ten times as fast."""
    short = numbers.astype(np.int16)
    return short if np.array_equal(short, numbers) else numbers


def normalized(scores: Whole) -> Whole:
    """The highest becomes 100, the others what they are of it."""
    highest = max(0, int(scores.max(initial=0)))
    return divided(scores * HIGHEST, np.full(len(scores), highest, np.int64))


def divided(dividend: Whole, divisor: Whole) -> Whole:
    """Whole numbers, toward zero; 0 through 0 (divisors are never negative)."""
    if len(divisor) and divisor[0] and np.all(divisor == divisor[0]):
        # Through one and the same number it takes a fraction of the time.
        same: Whole = np.abs(dividend) // divisor[0] * np.sign(dividend)
        return same
    quotient: Whole = np.abs(dividend) // np.maximum(divisor, 1) * np.sign(dividend)
    return np.where(divisor > 0, quotient, 0)
