"""Work beside the passes that is so short that the thread that asks for it does it.

Another thread would mean two changes of threads, a wait that the user reads, and one more look at the workload when the
answer is there: far more than most of such work costs. Work that has become long goes to the threads again. It is tried
inline now and then.
"""

from collections.abc import Callable

from slurm_bridge import ports
from slurm_bridge.runtime.clock import SystemClock, thread_seconds

#: What a pass gives at most.
MOST_SECONDS = 0.004
#: So many in a row that took longer are no accident, as one is in which garbage was collected.
IN_A_ROW = 3
#: How long the threads then have it for themselves.
REST = 1.0

#: When a piece of work began, by the clock and in time of the processor.
Begun = tuple[float, float]


class InlineBudget:
    """Whether it is short enough. Measured in time of the processor: time spent waiting for it does not count.

    No work takes more of that than has `passed`, which is asked first: to read the processor's time is a system call.
    """

    def __init__(
        self,
        clock: ports.Clock,
        most_seconds: float = MOST_SECONDS,
        spent: Callable[[], float] = thread_seconds,
        passed: Callable[[], float] = SystemClock.now,
    ) -> None:
        self._clock = clock
        self._most = most_seconds
        self._spent = spent
        self._passed = passed
        self._long = 0
        self._rests_until = 0.0

    @property
    def pays(self) -> bool:
        """By what it took of late."""
        return self._long < IN_A_ROW or self._clock.now() >= self._rests_until

    def begin(self) -> Begun:
        """One piece of work begins, in this thread: what `end` is to be told, whatever comes of the work."""
        return self._passed(), self._spent()

    def end(self, begun: Begun) -> None:
        """It has come to its end."""
        passed, spent = begun
        if self._passed() - passed <= self._most or self._spent() - spent <= self._most:
            self._long = 0
        else:
            self._long += 1
            self._rests_until = self._clock.now() + REST
