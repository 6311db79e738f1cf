"""A plan, and what became of it, as text."""

import collections
from collections.abc import Iterable, Sequence

from slurm_bridge.takeover.steps import HandoverStep, LeftAlone

#: All is as it should be; something was left alone or not done.
CLEAR, REMAINS = 0, 3


def counted(does: Iterable[HandoverStep], heading: str) -> list[str]:
    """How many steps of each kind."""
    counts = collections.Counter(one.does for one in does)
    if not counts:
        return [f"{heading}: nothing"]
    width = max([len(heading), *map(len, counts)])
    return [f"{heading:{width}}  COUNT", *(f"{what:{width}}  {number:5}" for what, number in counts.items())]


def left(alone: Sequence[LeftAlone], heading: str) -> list[str]:
    """Objects and reasons."""
    if not alone:
        return []
    width = max(len(heading), *(len(one.subject) for one in alone))
    return ["", f"{heading:{width}}  REASON", *(f"{one.subject:{width}}  {one.reason}" for one in alone)]
