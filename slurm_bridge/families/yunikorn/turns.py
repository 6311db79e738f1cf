"""Which thread runs the core: one that has just told it something, or the thread for everything else.

With `own` it is always the thread.

told ─► no thread is at it, and it was short of late ─► here and now: the answer is there when the question was asked
     └► else ─► the thread: all that was told meanwhile at once, and what follows of time alone
"""

import threading
from collections.abc import Callable

from slurm_bridge import ports
from slurm_bridge.families.shared.inline import InlineBudget

#: Without any news the core looks whether time alone has changed something.
LOOK_AROUND = 0.5
#: What is told to the thread is gathered for so long: it comes in bursts.
GATHER = 0.05
#: How long a thread that waits for an answer lets another one finish its short work.
PATIENCE = 0.02
#: A pass that failed is tried again after so many seconds.
AFTER_FAILURE = 1.0


class CoreTurns:
    """One at a time lets the core work; it ends when nothing is left to do. `threads`: a thread runs `serve`."""

    def __init__(
        self,
        settle: Callable[[], None],
        failed: Callable[[Exception], None],
        clock: ports.Clock,
        *,
        threads: bool,
        inline: InlineBudget | None = None,
        own: bool = False,
    ) -> None:
        self._settle = settle
        self._failed = failed
        self._clock = clock
        self._threads = threads
        self._inline = inline or InlineBudget(clock)
        self._own = own
        self._busy = threading.Lock()
        self._due = threading.Event()
        #: Something was told since a thread last began to work.
        self._news = False
        #: The thread that runs `serve`.
        self._server = 0

    @property
    def may_take_time(self) -> bool:
        """No pass waits for the end of this work: it is done by the thread for that, or there are no threads."""
        return not self._threads or threading.get_ident() == self._server

    def take(self, patience: float = 0.0) -> None:
        """Something was told. From within the work itself nothing follows: it ends only when nothing is left.

        A thread with `patience` waits for so long for another one that works, and must not hold what that one needs.
        """
        self._news = True
        if self._threads and (self._own or not self._inline.pays):
            self._due.set()
        elif self._busy.acquire(timeout=patience) if patience else self._busy.acquire(blocking=False):
            begun = self._inline.begin()
            try:
                self._work()
            finally:
                self._inline.end(begun)
                self._busy.release()
        else:
            # The working thread may have looked for the last time already.
            self._due.set()

    def leave(self) -> None:
        """Something was told, and no caller waits for the result."""
        if self._threads:
            self._news = True
            self._due.set()
        else:
            self.take()

    def serve(self, stop: threading.Event) -> None:
        """The thread, until it is told to stop."""
        self._server = threading.get_ident()
        while not stop.is_set():
            told = self._due.wait(LOOK_AROUND) and not self._clock.wait(stop, GATHER)
            self._due.clear()
            if told and not self._news:
                # Another thread has done it meanwhile, and would only be kept from what comes next.
                continue
            with self._busy:
                worked = self._work()
            if not worked:
                self._clock.wait(stop, AFTER_FAILURE)

    def wake(self) -> None:
        """The thread looks around at once: there is something to do, or it is to stop."""
        self._due.set()

    def _work(self) -> bool:
        """Whether all work was done, perhaps by another thread."""
        self._news = False
        try:
            self._settle()
        except Exception as error:
            # Whatever fails in the core, the passes and its thread go on.
            if not self._threads:
                raise
            self._failed(error)
            return False
        return True
