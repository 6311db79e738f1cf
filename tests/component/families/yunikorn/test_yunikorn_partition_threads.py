"""The pass of each partition has its own thread: a slow, failing or dead one holds up no other partition."""

import threading
from collections.abc import Callable, Iterator

import pytest

from slurm_bridge.families.yunikorn.options import YunikornOptions
from slurm_bridge.families.yunikorn.partitions import YunikornPartitions, builder
from slurm_bridge.hooks.calls import Hook
from slurm_bridge.hooks.chain import Chain
from slurm_bridge.hooks.plans import Plan
from slurm_bridge.hooks.services import ChainServices, HookServices
from slurm_bridge.runtime.clock import SystemClock
from tests import wait
from tests.component.families.yunikorn.test_yunikorn_partitions import partition
from tests.component.families.yunikorn.yunikorn_scenes import Listed, queue
from tests.unit.hooks import builders as scene

SECONDS = 20.0
SLOW = "queue core slow"


class Clock(SystemClock):
    """In the thread of the partition `slow` something happens when it asks for the time, or waits."""

    def __init__(self) -> None:
        self.asked: Callable[[], None] = lambda: None
        self.waits: Callable[[], None] = lambda: None

    def wall(self) -> float:
        if threading.current_thread().name == SLOW:
            self.asked()
        return super().wall()

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        if threading.current_thread().name == SLOW:
            self.waits()
        return super().wait(stop, seconds)


class Daemon:
    """A chain with the hook and its threads."""

    def __init__(self) -> None:
        self.clock = Clock()
        nodes = [scene.node("a"), scene.node("b")]
        self.seen = scene.cluster(nodes, scene.partition("slow", "a", default=True), scene.partition("quick", "b"))
        given = {"partitions": [partition("slow", queue("a")), partition("quick", queue("a"))]}
        options = YunikornOptions.model_validate({"configuration": given, "partitions": "slurm"})
        services = HookServices(clock=self.clock, snapshot=lambda: self.seen)
        made = builder(options, services)
        assert isinstance(made, YunikornPartitions)
        self.hook = made
        self.chain = Chain([Hook(name="yunikorn", hook=made, needs=made.needs)], ChainServices(clock=self.clock))
        self.chain.see(dict.fromkeys(YunikornPartitions.needs, Listed([])))
        self.chain.restore((), fresh=True)

    def plan(self, name: str, where: str) -> bool:
        """A pass of the scheduler over this pod: whether it may be submitted now."""
        asked = scene.translated(hints={"queue": "root.a"}, partition=where)
        found = self.chain.plan(scene.workload(scene.pod(name)), asked, self.seen, now=self.clock.wall())
        return isinstance(found, Plan)

    def await_let_in(self, name: str, where: str) -> None:
        """Its queue has answered, and it may be submitted."""
        wait.until(lambda: self.plan(name, where), f"place of {name} in partition {where}", SECONDS)


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    """Two partitions, of which nothing is wrong yet."""
    made = Daemon()
    yield made
    made.clock.asked = made.clock.waits = lambda: None
    made.chain.close()


def test_a_slow_pass_holds_up_no_other_partition(daemon: Daemon) -> None:
    """Nor the scheduler, which asks both; it ends in its own time."""
    goes_on, is_there = threading.Event(), threading.Event()

    def hang() -> None:
        is_there.set()
        goes_on.wait(4 * SECONDS)

    daemon.clock.asked = hang
    assert not daemon.plan("waits", "slow")
    assert is_there.wait(SECONDS)
    daemon.await_let_in("mine", "quick")
    assert not daemon.plan("waits", "slow")
    goes_on.set()
    daemon.await_let_in("waits", "slow")


def test_a_failing_pass_holds_up_no_other_partition(daemon: Daemon) -> None:
    """It is tried again, and its workloads go on when it does not fail any more."""
    failed = threading.Event()

    def fail() -> None:
        failed.set()
        raise RuntimeError("a defect")

    daemon.clock.asked = fail
    assert not daemon.plan("waits", "slow")
    assert failed.wait(SECONDS)
    daemon.await_let_in("mine", "quick")
    assert daemon.hook.dead == ()
    daemon.clock.asked = lambda: None
    daemon.await_let_in("waits", "slow")


def test_a_dead_thread_is_seen(daemon: Daemon) -> None:
    """By the name of its partition; the watchdog ends the process for it, and the other partition works until then."""

    def die() -> None:
        raise RuntimeError("out of memory")

    assert daemon.chain.dead == ()
    daemon.clock.waits = die
    assert not daemon.plan("waits", "slow")
    wait.until(lambda: daemon.chain.dead == (SLOW,), "the end of the thread")
    daemon.await_let_in("mine", "quick")


def test_a_thread_that_was_told_to_stop_is_not_dead(daemon: Daemon) -> None:
    """All of them end with the chain."""
    names = {"queue core slow", "queue core quick"}
    assert names <= {one.name for one in threading.enumerate()}
    daemon.chain.close()
    wait.until(lambda: not names & {one.name for one in threading.enumerate()}, "the end of both threads")
    assert daemon.chain.dead == ()
