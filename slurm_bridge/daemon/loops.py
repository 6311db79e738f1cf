"""The targets of the daemon's threads: each repeats one step of the core.

scheduler   recovers after this replica became leader, decides about one workload at a time, hands out the actions
worker (n)  carries out actions: the calls to both servers
mirror      asks Slurm for the state of our jobs
parts       agrees with other daemons on namespaces, if there are parts
nodes       keeps the nodes of both sides in step, if that is configured
preempt     evicts pods for others, if that is configured
status      writes on pods why they wait
"""

import contextlib
import queue
import threading
from collections.abc import Callable

from loguru import logger

from slurm_bridge import errors, ports
from slurm_bridge.controllers.nodes.controller import NodeController
from slurm_bridge.daemon.parts import PartFollower
from slurm_bridge.model import texts
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.scheduler.actions import Act
from slurm_bridge.scheduler.core import Core
from slurm_bridge.telemetry.health import Health

#: A loop sleeps at most this long before it checks for a stop and reports that it is alive.
LOOK = 0.5
#: The pause after a recovery that failed.
RECOVERY_PAUSE = 2.0
#: The time between two reports to queued workloads that are not submitted.
TELL = 2.0
#: The time between two checks whether pods have to be evicted.
PREEMPT = 1.0
#: Actions handed out and not started. Few, so that the window and the order of the queue stay accurate.
AHEAD = 2


class WorkerPool:
    """The worker threads and their queue."""

    def __init__(self, core: Core, workers: int) -> None:
        self._core = core
        self._acts: queue.Queue[tuple[WorkloadKey, Act]] = queue.Queue()
        self._free = threading.Semaphore(workers + AHEAD)
        self._open = 0
        self._lock = threading.Lock()

    def give(self, key: WorkloadKey, act: Act) -> None:
        """Queue an action; blocks while all workers are busy."""
        self._free.acquire()
        with self._lock:
            self._open += 1
        self._acts.put((key, act))

    def run(self, stop: threading.Event) -> None:
        """Run one worker."""
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
        """The number of actions that are not finished."""
        return self._open


class Loops:
    """The targets of the threads."""

    def __init__(
        self,
        core: Core,
        pool: WorkerPool,
        clock: ports.Clock,
        health: Health,
        leading: Callable[[], bool],
        parts: PartFollower | None = None,
    ) -> None:
        self._core, self._pool, self._clock, self._health = core, pool, clock, health
        self._leading, self._parts = leading, parts
        self._still = parts.still if parts is not None else contextlib.nullcontext()
        self._recovered = threading.Event()
        self._told = 0.0
        self._synced: Callable[[], bool] = lambda: True

    def when_synced(self, synced: Callable[[], bool]) -> None:
        """The scheduler waits until this returns true."""
        self._synced = synced

    @property
    def acting(self) -> bool:
        """This replica leads and has recovered."""
        return self._recovered.is_set() and self._leading() and not self._outdated

    @property
    def _outdated(self) -> bool:
        """This replica leads its part anew, perhaps unnoticed: another part may have its namespaces."""
        return self._parts is not None and not self._parts.current

    def schedule(self, stop: threading.Event) -> None:
        """Run the scheduler."""
        while not stop.is_set():
            self._health.beat("scheduler")
            if not self._leading():
                self._recovered.clear()
                self._core.stand_by()
                self._clock.wait(stop, LOOK / 5)
            elif not self._recovered.is_set() or self._outdated:
                self._recovered.clear()
                self._recover(stop)
            else:
                self._schedule_some()

    def _recover(self, stop: threading.Event) -> None:
        """Read the state of both servers; nothing is decided before that."""
        # What an earlier leadership has handed out may be of a namespace that is another part's by now.
        if not self._synced() or (self._parts is not None and self._pool.busy):
            self._clock.wait(stop, LOOK / 5)
            return
        try:
            if self._parts is not None:
                self._parts.begin()
            self._core.recover()
        except errors.BridgeError as problem:
            logger.warning("cannot recover, next try in {} s: {}", RECOVERY_PAUSE, problem)
            self._clock.wait(stop, RECOVERY_PAUSE)
            return
        self._recovered.set()
        known = len(self._core.context.table.all())
        logger.info("this replica leads and knows {}", texts.counted(known, "placeholder"))

    def _schedule_some(self) -> None:
        if self._parts is not None:
            self._parts.follow()
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
        """Run the mirror."""
        while not stop.is_set():
            self._health.beat("mirror")
            if self.acting:
                with self._still:
                    self._core.mirror_step()
            self._clock.wait(stop, self._core.context.mirror.due_in if self.acting else LOOK)

    def preempt(self, stop: threading.Event) -> None:
        """Run evictions."""
        while not self._clock.wait(stop, PREEMPT):
            if self.acting:
                with self._still:
                    self._core.preempt_step()

    def parts(self, follower: PartFollower, stop: threading.Event) -> None:
        """Agree with the daemons of other parts."""
        while not self._clock.wait(stop, LOOK / 2):
            if self.acting:
                follower.step()

    def nodes(self, controller: NodeController, appointed: Callable[[], bool], stop: threading.Event) -> None:
        """Run the node controller; of several daemons one is appointed."""
        while not self._clock.wait(stop, LOOK):
            self._health.beat("nodes")
            if self.acting and appointed() and controller.due:
                controller.step()
