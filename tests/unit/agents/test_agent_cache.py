"""What an agent knows of Slurm: asked again and again, kept while nobody answers."""

import contextlib
import random
import threading
from collections.abc import Callable, Iterator, Sequence

import pytest

from slurm_bridge import errors
from slurm_bridge.agents import cache
from slurm_bridge.agents.cache import AgentCache
from slurm_bridge.demo import pocket
from slurm_bridge.model.slurmnode import Partition, SlurmNode
from slurm_bridge.runtime.clock import SystemClock
from tests import wait

WAIT = 20.0


class Slurm:
    """Answers as scripted, and ends the thread that asks when the script is over."""

    def __init__(self, *script: str | None) -> None:
        self.script = list(script)
        self.stop = threading.Event()
        self.said: list[str] = []
        self.look: Callable[[], str] = str

    def nodes(self) -> Sequence[SlurmNode]:
        if not self.script:
            self.stop.set()
            raise errors.Unavailable("over")
        return ()

    def partitions(self) -> Sequence[Partition]:
        name = self.script.pop(0)
        if name is None:
            raise errors.Unavailable("slurmrestd is not reached")
        return [Partition(name=name, states=frozenset(), nodes=())]


class Steps(SystemClock):
    """The thread that asks Slurm does not wait; what it would have waited, and what was known then, is noted."""

    def __init__(self, slurm: Slurm) -> None:
        self.slurm = slurm
        self.waited: list[tuple[float, str]] = []

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        if stop is not self.slurm.stop:
            return super().wait(stop, seconds)
        self.waited.append((seconds, self.slurm.look()))
        return stop.is_set()


@pytest.fixture(scope="module")
def world() -> Iterator[pocket.PocketWorld]:
    """A few nodes."""
    with pocket.world(nodes=2) as made:
        yield made


@contextlib.contextmanager
def asking(world: pocket.PocketWorld, slurm: Slurm) -> Iterator[tuple[AgentCache, Steps]]:
    """A cache that has listed nodes and pods."""
    clock = Steps(slurm)
    made = AgentCache(world.cluster, clock, random.Random(1), machines=slurm, partition="gpu")
    slurm.look = made.problem
    made.start()
    try:
        wait.until(lambda: not made.problem().startswith("not listed"), "first lists", WAIT, every=0.02)
        yield made, clock
    finally:
        made.stop()


def test_before_slurm_has_answered_nothing_is_known(world: pocket.PocketWorld) -> None:
    """And it is asked again soon; the problem is what Slurm's adapter said last."""
    with asking(world, Slurm(None, "gpu")) as (made, clock):
        assert made.problem() == "Slurm's partition gpu: not asked yet"
        made.follow_slurm(clock.slurm.stop)
        assert clock.waited[:2] == [
            (cache.RETRY, "Slurm's partition gpu: slurmrestd is not reached"),
            (cache.LOOK, ""),
        ]


def test_what_was_known_stays_known_while_slurm_is_away(world: pocket.PocketWorld) -> None:
    """An agent outlives slurmctld."""
    with asking(world, Slurm("gpu", None, "gpu")) as (made, clock):
        made.follow_slurm(clock.slurm.stop)
        assert clock.waited[:3] == [(cache.LOOK, ""), (cache.RETRY, ""), (cache.LOOK, "")]


def test_a_partition_that_is_taken_away_is_told(world: pocket.PocketWorld) -> None:
    """With those that there are; and when it is back, nothing is wrong any more."""
    with asking(world, Slurm("gpu", "debug", "gpu")) as (made, clock):
        made.follow_slurm(clock.slurm.stop)
        gone = "Slurm's partition gpu: there is none of this name; there are debug"
        assert clock.waited[:3] == [(cache.LOOK, ""), (cache.RETRY, gone), (cache.LOOK, "")]


def test_without_a_partition_slurm_is_not_needed(world: pocket.PocketWorld) -> None:
    """The thread waits for the end of the agent."""
    slurm = Slurm()
    clock = Steps(slurm)
    made = AgentCache(world.cluster, clock, random.Random(1))
    slurm.look = lambda: slurm.stop.set() or made.problem()  # type: ignore[func-returns-value]
    made.follow_slurm(slurm.stop)
    assert clock.waited == [(cache.LOOK, "not listed yet: nodes, pods")]
