"""Real time, and time that stands still until a test moves it."""

import threading
import time


class SystemClock:
    """The machine's clocks."""

    #: Asked dozens of times for each workload: without a function of ours in between.
    now = staticmethod(time.monotonic)
    wall = staticmethod(time.time)

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        return stop.wait(max(0.0, seconds))


def thread_seconds() -> float:
    """What the processor has spent on this thread so far: how long work is, whatever else keeps the machine busy."""
    return time.thread_time()


class VirtualClock:
    """Moves only by `advance`, or by the waits of its single-threaded user; repeatable to the last digit."""

    def __init__(self, *, wall: float = 1_700_000_000.0) -> None:
        self._lock = threading.Lock()
        self._elapsed = 0.0
        self._wall = wall

    def now(self) -> float:
        with self._lock:
            return self._elapsed

    def wall(self) -> float:
        return self._wall + self.now()

    def advance(self, seconds: float) -> None:
        """Let this much time have passed."""
        if seconds < 0:
            raise ValueError("time does not run backwards here")
        with self._lock:
            self._elapsed += seconds

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        if not stop.is_set():
            self.advance(max(0.0, seconds))
        return stop.is_set()
