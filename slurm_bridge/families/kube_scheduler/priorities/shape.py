"""A piecewise linear function from utilization to score, by the points that an administrator draws."""

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np

from slurm_bridge.cluster.columns import Whole

FULL = 100
MOST = 10


class BadShape(ValueError):
    """Points through which no function can be drawn; the message is kube-scheduler's."""


@dataclasses.dataclass(frozen=True, slots=True)
class UtilizationShape:
    """Points (utilization in percent, score), utilization rising; before the first and after the last it is flat."""

    points: tuple[tuple[int, int], ...]

    def at(self, place: int) -> int:
        """The value there; between two points rounded toward zero from the left one."""
        if place <= self.points[0][0]:
            return self.points[0][1]
        for (left, before), (right, after) in itertools.pairwise(self.points):
            if place <= right:
                rise = (after - before) * (place - left)
                return before + (rise // (right - left) if rise >= 0 else -(-rise // (right - left)))
        return self.points[-1][1]

    def scaled(self, factor: int) -> "UtilizationShape":
        """The same form with higher scores."""
        return UtilizationShape(tuple((place, score * factor) for place, score in self.points))

    def table(self) -> Whole:
        """The values from 0 to 100 percent, for looking up whole columns."""
        return np.array([self.at(place) for place in range(FULL + 1)], dtype=np.int64)


#: The emptier the better.
EMPTY_FIRST = UtilizationShape(((0, MOST), (FULL, 0)))


def checked(points: Sequence[tuple[int, int]]) -> UtilizationShape:
    """The function through these points; raises BadShape with the first thing that is wrong."""
    if not points:
        raise BadShape("at least one point must be specified")
    if any(left >= right for (left, _), (right, _) in itertools.pairwise(points)):
        raise BadShape("utilization values must be sorted")
    for place, score in points:
        _within("utilization", place, FULL)
        _within("score", score, MOST)
    return UtilizationShape(tuple((place, score) for place, score in points))


def _within(what: str, value: int, most: int) -> None:
    if value < 0:
        raise BadShape(f"{what} below 0")
    if value > most:
        raise BadShape(f"{what} above {most}")
