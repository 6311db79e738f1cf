"""The daemon's threads: each turns one step of the core, as often as there is something to do.

scheduler   recovers when the lead is won, thinks about one workload after the other, hands out what is to be done
worker (n)  carries out what was decided: the calls to both servers
mirror      asks Slurm what became of our jobs
preempt     has pods of ours make room for others, where that is configured
status      writes on pods why they wait
"""

import queue
import threading
from collections.abc import Callable

from loguru import logger

from slurm_bridge import errors, ports
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.scheduler.actions import Act
from slurm_bridge.scheduler.core import Core
from slurm_bridge.telemetry.health import Health

#: How long a loop sleeps at most before it looks whether it should stop, and shows that it lives.
LOOK = 0.5
#: After a recovery that failed.
RECOVERY_PAUSE = 2.0
#: How often those who line up in vain are told why.
TELL = 2.0
#: How often it is looked whether anybody has to make room.
PREEMPT = 1.0
#: Decided and not begun: few, so that the window and the order of the queue stay true.
AHEAD = 2


class Pool:
    """Workers, and what is waiting for them."""

    def __init__(self, core: Core, workers: int) -> None:
        self._core = core
        self._acts: queue.Queue[tuple[WorkloadKey, Act]] = queue.Queue()
        self._free = threading.Semaphore(workers + AHEAD)
        self._open = 0
        self._lock = threading.Lock()

    def give(self, uid: WorkloadKey, act: Act) -> None:
        """Have it done; waits while all workers have enough to do."""
        self._free.acquire()
        with self._lock:
            self._open += 1
        self._acts.put((uid, act))

    def run(self, stop: threading.Event) -> None:
        """One worker."""
        while not stop.is_set():
            try:
                uid, act = self._acts.get(timeout=LOOK)
            except queue.Empty:
                continue
            try:
                self._core.carry_out(uid, act)
            finally:
                with self._lock:
                    self._open -= 1
                self._free.release()

    @property
    def busy(self) -> int:
        """How much was handed out and is not done."""
        return self._open


class Loops:
    """The targets of the threads."""

    def __init__(self, core: Core, pool: Pool, clock: ports.Clock, health: Health, leading: Callable[[], bool]) -> None:
        self._core, self._pool, self._clock, self._health = core, pool, clock, health
        self._leading = leading
        self._recovered = threading.Event()
        self._told = 0.0
        self._synced: Callable[[], bool] = lambda: True

    def when_synced(self, synced: Callable[[], bool]) -> None:
        """Nothing is decided before this is true."""
        self._synced = synced

    @property
    def acting(self) -> bool:
        """This replica leads, and knows what there is."""
        return self._recovered.is_set() and self._leading()

    def schedule(self, stop: threading.Event) -> None:
        """The scheduler's thread."""
        while not stop.is_set():
            self._health.beat("scheduler")
            if not self._leading():
                self._recovered.clear()
                self._clock.wait(stop, LOOK / 5)
            elif not self._recovered.is_set():
                self._recover(stop)
            else:
                self._schedule_some()

    def _recover(self, stop: threading.Event) -> None:
        """Nothing is decided before both sides are known."""
        if not self._synced():
            self._clock.wait(stop, LOOK / 5)
            return
        try:
            self._core.recover()
        except errors.BridgeError as problem:
            logger.warning("cannot read Slurm's jobs to begin with, next try in {} s: {}", RECOVERY_PAUSE, problem)
            self._clock.wait(stop, RECOVERY_PAUSE)
            return
        self._recovered.set()
        logger.info("leading, with {} placeholders known", len(self._core.tools.table.all()))

    def _schedule_some(self) -> None:
        if self._core.schedule_step(self._pool.give):
            return
        now = self._clock.now()
        if now - self._told >= TELL:
            self._told = now
            self._core.tell_step()
        due = self._core.queue.next_due
        patience = LOOK if due is None else min(LOOK, max(0.0, due - now))
        self._core.queue.wait(patience, room=self._core.room)

    def mirror(self, stop: threading.Event) -> None:
        """The mirror's thread."""
        while not stop.is_set():
            self._health.beat("mirror")
            if self.acting:
                self._core.mirror_step()
            self._clock.wait(stop, self._core.tools.mirror.due_in if self.acting else LOOK)

    def preempt(self, stop: threading.Event) -> None:
        """The thread that makes room."""
        while not self._clock.wait(stop, PREEMPT):
            if self.acting:
                self._core.preempt_step()
