"""How often Slurm is asked what, and how that follows from what asking costs."""

import collections
import dataclasses
import math
from typing import Final

#: Seconds that any reading costs, whatever a clock says.
_LEAST: Final = 0.002
#: Of so many readings the cheapest counts.
_READINGS: Final = 10


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """How often what is asked. `many` is the number from which one full list is cheaper than single questions.

    `share` of a processor is what readings of jobs that run may cost while nothing changes; each is of one `part`.
    Readings are `calm` seconds apart at least, unless there are many parts: a call costs more than its answer.

    Of more jobs of all users than `listed` no list is asked for: what a list costs slurmrestd grows with the square of
    their number, in time and in memory, and it answers hardly anything else meanwhile.
    """

    fastest: float = 0.2
    slowest: float = 5.0
    calm: float = 0.5
    share: float = 0.03
    part: int = 1800
    first_details_per_second: float = 10.0
    details_per_second: float = 1.0
    patience: float = 2.0
    full_states_above: int = 4000
    listed: int = 10_000
    many: int = 50
    crowd: int = 300
    sweep: float = 60.0
    maybe: float = 60.0
    #: Slurm remembers ended jobs for longer than this (MinJobAge).
    remembered: float = 60.0

    def parts(self, jobs: int) -> int:
        """Into how many parts so many jobs are divided: all of them are asked for within the slowest period."""
        return min(math.ceil(jobs / self.part), max(1, int(self.slowest / self.fastest)))


class PollPace:
    """When jobs that run are asked for again: after a pause in which what that costs is the share that it may cost.

    The cost of a reading is taken to be the time from the question to the end of what follows from its answer. That is
    more than slurmctld and this program compute for it, for they wait for each other, and slurmrestd's work is in it,
    too. What else keeps the machine busy can only add to it; therefore the cheapest of the last few counts.
    """

    def __init__(self, rhythm: Rhythm) -> None:
        self._rhythm = rhythm
        self._costs: collections.deque[float] = collections.deque(maxlen=_READINGS)

    def pause(self, cost: float, parts: int, more: float = 0.0) -> float:
        """After a reading of one of so many parts; `more` is what was spent beside it, as on the other parts."""
        self._costs.append(cost)
        rhythm = self._rhythm
        earned = (max(_LEAST, min(self._costs)) + more) / rhythm.share
        # A Slurm that always takes long to answer is left alone for as long as it takes.
        return max(rhythm.fastest, min(self._costs), min(max(earned, rhythm.calm), rhythm.slowest / max(1, parts)))
