"""The life of the process: named threads that start together, serve, drain and stop in order.

    start   every task gets its thread
    serve   until `stop` is set, or a thread ends before it was told to: that is a failure, and sets it too
    drain   the threads that work are told to stop, and `drain` finishes what they began
    stop    the threads that carry the rest (lease, caches, HTTP) are told to stop

A daemon with a dead thread looks alive and does half of its work; therefore the first death ends all.
"""

import dataclasses
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Final

#: Runs until the event is set.
Target = Callable[[threading.Event], None]

#: Called with the thread's name and what it died of, None when it ended without being told to.
Report = Callable[[str, Exception | None], None]


#: How long a signal may go unnoticed.
LOOK: Final = 0.5


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    thread: threading.Thread
    told: threading.Event


class Supervisor:
    """Owns the threads of one process."""

    def __init__(self, report: Report) -> None:
        #: Set it to end the process in order.
        self.stop = threading.Event()
        self._carry_on = threading.Event()
        self._report = report
        self._failed = threading.Event()
        self._tasks: list[_Task] = []

    @property
    def failed(self) -> bool:
        """A thread ended before it was told to."""
        return self._failed.is_set()

    def add(self, name: str, target: Target, *, carries: bool = False) -> None:
        """A thread for this target; one that `carries` the others lives until they have drained."""
        told = self._carry_on if carries else self.stop
        thread = threading.Thread(target=self._live, args=(name, target, told), name=name, daemon=True)
        self._tasks.append(_Task(thread=thread, told=told))

    def start(self) -> None:
        """Start them in the order in which they were added."""
        for task in self._tasks:
            task.thread.start()

    def dead(self) -> tuple[str, ...]:
        """Threads that should run and do not."""
        return tuple(task.thread.name for task in self._tasks if not task.told.is_set() and not task.thread.is_alive())

    def live(self, drain: Callable[[], None], *, seconds: float) -> int:
        """Start, serve, drain, stop; the exit status. Stopping takes at most so many seconds, beside the drain."""
        self.start()
        while not self.stop.wait(LOOK):
            # Waking is what runs a signal's handler: see `install_signals`.
            pass
        deadline = time.monotonic() + seconds
        late = self._join(self.stop, deadline)
        try:
            drain()
        finally:
            self._carry_on.set()
            late += self._join(self._carry_on, deadline)
        for name in late:
            self._report(name, TimeoutError(f"still running {seconds} s after the stop"))
        return 1 if self.failed or late else 0

    def _live(self, name: str, target: Target, told: threading.Event) -> None:
        try:
            target(told)
        except Exception as error:  # noqa: BLE001 - whatever a thread dies of has to end the process
            self._die(name, error)
        else:
            if not told.is_set():
                self._die(name, None)

    def _die(self, name: str, error: Exception | None) -> None:
        self._failed.set()
        try:
            self._report(name, error)
        finally:
            self.stop.set()

    def _join(self, told: threading.Event, deadline: float) -> list[str]:
        """Wait for the threads that were told to stop; the names of those that did not."""
        threads = [task.thread for task in self._tasks if task.told is told]
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return [thread.name for thread in threads if thread.is_alive()]


def install_signals(stop: threading.Event) -> None:
    """SIGTERM and SIGINT set `stop`; the second one ends the process as the system would.

    The handler runs in the main thread, which may be inside `stop.wait` and hold the event's lock: setting it from
    there could wait for itself for ever. Therefore a thread sets it.

    The system may hand the signal to any thread, and does so when many come and go. Python notes that, and the main
    thread runs the handler once it wakes: it must never wait without an end.
    """

    def handle(number: int, _frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        threading.Thread(target=stop.set, name="signal", daemon=True).start()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)
