"""What each chain takes of the processor, and how much more than the plain one that is."""

import dataclasses
import statistics
from collections.abc import Iterable, Sequence

from cpubench.turns import Turn

#: Milliseconds that all families together may take beyond the plain chain, per pod.
GOAL = 1.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Milliseconds of a chain per pod: the median of its turns and their range; `more` than the plain chain's."""

    who: str
    ms: float
    least: float
    most: float
    more: float


def costs(turns: Sequence[Turn], plain: str) -> list[Cost]:
    """Of each chain, the differences taken within a round: what slows one turn slows its neighbours, too."""
    base = {one.round: one.ms_per_pod for one in turns if one.who == plain}
    found = []
    for who in dict.fromkeys(one.who for one in turns):
        mine = [one for one in turns if one.who == who]
        each = [one.ms_per_pod for one in mine]
        more = statistics.median(one.ms_per_pod - base[one.round] for one in mine)
        found.append(Cost(who=who, ms=statistics.median(each), least=min(each), most=max(each), more=more))
    return found


def table(found: Iterable[Cost]) -> str:
    """One line for each chain."""
    lines = [f"{one.who:16} {one.ms:5.2f} ms ({one.least:.2f} to {one.most:.2f}), {one.more:+.2f} ms" for one in found]
    return "\n".join(["CPU of the daemon per pod, and beyond the plain chain", *lines])
