"""The threads' targets, run step by step: which replica may decide, and how work is handed out."""

import threading
from collections.abc import Callable, Iterable

import pytest
from loguru import logger

from slurm_bridge.daemon.loops import AHEAD, Loops, WorkerPool
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.scheduler.queue import WOKEN, Filed
from slurm_bridge.sim import faults
from slurm_bridge.telemetry.health import Health
from tests import wait
from tests.component.scheduler.whole_core import Bridge

Act = Callable[[], Filed]


class Acting:
    """The part of a core that a pool asks."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def carry_out(self, uid: str, act: Act) -> None:
        act()
        self.done.append(uid)


class Workers:
    """A pool with threads."""

    def __init__(self, number: int) -> None:
        self.core, self.stop = Acting(), threading.Event()
        self.pool = WorkerPool(self.core, number)  # type: ignore[arg-type]
        self.died: list[BaseException] = []
        self.threads = [threading.Thread(target=self._run) for _ in range(number)]
        for thread in self.threads:
            thread.start()

    def _run(self) -> None:
        try:
            self.pool.run(self.stop)
        except RuntimeError as problem:
            self.died.append(problem)

    def end(self) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join(10)


def test_what_is_handed_out_is_done_and_counted() -> None:
    """Busy until the last one is done: draining waits for that."""
    workers = Workers(2)
    for uid in "abcdef":
        workers.pool.give(uid, lambda: WOKEN)
    wait.until(lambda: workers.pool.busy == 0, "the end of all work", 10, every=0.01)
    workers.end()
    assert sorted(workers.core.done) == list("abcdef")


def test_who_decides_waits_while_all_workers_have_enough_to_do() -> None:
    """Else the order of the queue would be decided long before it is carried out."""
    workers, release = Workers(1), threading.Event()

    def slowly() -> Filed:
        release.wait(10)
        return WOKEN

    for number in range(1 + AHEAD):
        workers.pool.give(str(number), slowly)
    giver = threading.Thread(target=lambda: workers.pool.give("late", lambda: WOKEN))
    giver.start()
    giver.join(0.1)
    assert giver.is_alive()
    release.set()
    giver.join(10)
    wait.until(lambda: workers.pool.busy == 0, "the end of all work", 10, every=0.01)
    workers.end()
    assert workers.core.done[-1] == "late"


def test_a_worker_that_dies_leaves_its_place_free() -> None:
    """The supervisor ends the process for it; no other thread hangs meanwhile."""
    workers = Workers(1)

    def fail() -> Filed:
        raise RuntimeError("a bug")

    workers.pool.give("a", fail)
    wait.until(lambda: workers.died, "its death", 10, every=0.01)
    assert workers.pool.busy == 0
    workers.end()


class Desk:
    """Loops over a real core, that stop when their script is over."""

    def __init__(self, bridge: Bridge, leading: Iterable[bool], *, synced: bool = True) -> None:
        self.bridge, self.stop = bridge, threading.Event()
        self._script = iter(leading)
        self._leads = False
        self.pool = WorkerPool(bridge.core, 1)
        health = Health(bridge.clock.now)
        self.loops = Loops(bridge.core, self.pool, bridge.clock, health, self._leading)
        self.loops.when_synced(lambda: synced)

    def _leading(self) -> bool:
        try:
            self._leads = next(self._script)
        except StopIteration:
            self.stop.set()
        return self._leads

    def schedule(self) -> None:
        """Until the script is over."""
        self.loops.schedule(self.stop)


def test_who_does_not_lead_does_nothing(bridge: Bridge) -> None:
    """Not even a question to Slurm."""
    bridge.pod("a")
    bridge.hear()
    Desk(bridge, [False] * 5).schedule()
    assert bridge.slurm_calls.journal == ()


def test_nothing_is_decided_before_all_caches_are_full(bridge: Bridge) -> None:
    """A replica that sees half of the pods would cancel the jobs of the others."""
    bridge.hear()
    desk = Desk(bridge, [True] * 5, synced=False)
    desk.schedule()
    assert bridge.slurm_calls.journal == ()
    assert not desk.loops.acting


def test_who_comes_to_lead_reads_slurm_first(bridge: Bridge) -> None:
    """Then it decides; the pool is given what is to be done."""
    bridge.pod("a")
    bridge.hear()
    desk = Desk(bridge, [True] * 3)
    desk.schedule()
    assert bridge.slurm_calls.count(target=r"/jobs/(\?|$)") == 1
    assert desk.loops.acting
    assert desk.pool.busy == 1
    assert bridge.submits() == 0


def test_the_log_says_how_many_placeholders_are_known(bridge: Bridge) -> None:
    """One is no "placeholders"."""
    bridge.waiting("a")
    lines = list[str]()
    sink = logger.add(lines.append, format="{message}", level="INFO")
    Desk(bridge, [True] * 2).schedule()
    logger.remove(sink)
    assert "this replica leads and knows 1 placeholder\n" in lines


def test_a_recovery_that_fails_is_tried_again_after_a_pause(bridge: Bridge) -> None:
    """Not all the time, and nothing is decided meanwhile."""
    bridge.hear()
    began = bridge.clock.now()
    bridge.slurm_calls.plan(faults.Answer(502), target=r"/jobs/(\?|$)", times=6)
    desk = Desk(bridge, [True] * 4)
    desk.schedule()
    assert desk.loops.acting
    assert bridge.clock.now() - began >= 4.0


def test_a_lead_that_was_lost_and_won_again_is_begun_anew(bridge: Bridge) -> None:
    """What happened meanwhile, another one did."""
    bridge.hear()
    Desk(bridge, [True, False, True]).schedule()
    assert bridge.slurm_calls.count(target=r"/jobs/(\?|$)") == 2


@pytest.mark.parametrize("leads", [True, False])
def test_the_mirror_asks_only_for_who_leads(bridge: Bridge, *, leads: bool) -> None:
    """Two replicas that poll would cost twice as much."""
    bridge.recover()
    desk = Desk(bridge, [])
    desk.loops._recovered.set()
    bridge.slurm_calls.forget()
    bridge.clock.advance(30)

    class Ending(VirtualClock):
        def wait(self, stop: threading.Event, seconds: float) -> bool:
            desk._leading()
            return super().wait(stop, seconds)

    desk.loops._clock = Ending()
    desk._script = iter([leads] * 6)
    desk.loops.mirror(desk.stop)
    assert bool(bridge.slurm_calls.journal) is leads
