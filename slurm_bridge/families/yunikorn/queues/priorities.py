"""Priorities of queues: what a queue passes up of the priorities that wait below it."""

import enum
from collections.abc import Iterable

#: Nothing waits; the smallest number of 32 bits, so that it sorts behind every priority.
NOTHING = -(2**31)
HIGHEST = 2**31 - 1


class PriorityPolicy(enum.StrEnum):
    """Whether priorities below a queue count outside it."""

    DEFAULT = "default"
    FENCE = "fence"


def highest(priorities: Iterable[int]) -> int:
    """The highest of those that wait, NOTHING where none does."""
    return max(priorities, default=NOTHING)


def passed_up(highest: int, offset: int, policy: PriorityPolicy) -> int:
    """What a queue passes up and is sorted by, where this is the highest below it.

    NOTHING stays what it is. A fence hides what is behind it: the queue stands for its offset alone.
    """
    if highest == NOTHING:
        return NOTHING
    return offset if policy is PriorityPolicy.FENCE else max(NOTHING, min(HIGHEST, highest + offset))
