"""One process of a daemon without a thread: it starts, lists and recovers, then goes on beat by beat."""

from collections.abc import Callable
from typing import Any, Protocol

from slurm_bridge import errors, ports
from slurm_bridge.model import kinds, names
from slurm_bridge.model.pod import Pod
from slurm_bridge.overlays.fenced import FencedCluster, FencedSlurm
from tests.simulation.feed import Feed
from tests.simulation.world import World

#: Steps in one beat; more would mean that something spins.
MOST_STEPS = 400

#: Slow calls take the time of the world; others have to have their turn.
LONGEST_BEAT = 5.0

#: How often a watch is quicker than the next step.
HEARD_AT_ONCE = 0.2

Always: Callable[[], bool] = lambda: True  # noqa: E731 - a constant


class Spinning(AssertionError):
    """The daemon goes on for ever without time passing."""


class Brain(Protocol):
    """What a beat moves: the core of the daemon, or something that a test puts in its place."""

    def on_pod(self, old: Any, new: Any) -> object: ...

    def on_other_pod(self, old: Any, new: Any) -> object: ...

    def on_node(self, old: Any, new: Any) -> object: ...

    def on_owner(self, old: Any, new: Any) -> object: ...

    def recover(self) -> object: ...

    def schedule_step(self) -> bool: ...

    def mirror_step(self) -> object: ...

    def status_step(self) -> bool: ...


Build = Callable[[ports.Cluster, ports.Slurm, ports.Clock], Brain]


class Daemon:
    """Starts as a process does: lists, recovers, then goes on beat by beat."""

    def __init__(self, world: World, name: str, build: Build, *, allowed: Callable[[], bool] = Always) -> None:
        self.name = name
        self._world = world
        clock = world.clock_of(world.dice.choice((0.0, 600.0, -600.0)))
        cluster, slurm = world.cluster(name, clock), world.jobs_of(name, clock)
        self.brain = build(FencedCluster(cluster, allowed), FencedSlurm(slurm, allowed), clock)
        brain = self.brain
        self.feeds: tuple[Feed[Any], ...] = (
            Feed(cluster, kinds.NODES, brain.on_node, news=world.news(kinds.NODES)),
            Feed(cluster, kinds.JOBS, brain.on_owner, news=world.news(kinds.JOBS)),
            Feed(cluster, kinds.PODS, self._on_pod, news=world.news(kinds.PODS)),
        )
        self._recovered = False
        self._again = 0.0
        self.deaf_until = 0.0

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        ours = pod is not None and pod.spec.scheduler_name == names.SCHEDULER_NAME
        (self.brain.on_pod if ours else self.brain.on_other_pod)(old, new)

    def beat(self) -> None:
        """Everything that is to be done at this moment."""
        told = [self._hear(feed) for feed in self.feeds]
        if not self._recovered and not (all(told) and self._recover()):
            return
        self.brain.mirror_step()
        for feed in self.feeds:
            self._hear(feed)
        self._exhaust(self.brain.schedule_step)
        self._exhaust(self.brain.status_step)

    def _hear(self, feed: Feed[Any]) -> bool:
        """A watch that is half open says nothing, and nobody knows."""
        return self._world.clock.now() < self.deaf_until or feed.pump()

    def _recover(self) -> bool:
        if self._world.clock.now() < self._again:
            return False
        try:
            self.brain.recover()
        except errors.BridgeError as problem:
            self._world.weather.note(f"{self.name} cannot recover: {problem}")
            self._again = self._world.clock.now() + 2.0
            return False
        self._recovered = True
        return True

    def _exhaust(self, step: Callable[[], bool]) -> None:
        """As long as there is something to do, and the world has not moved on by much meanwhile."""
        until = self._world.clock.now() + LONGEST_BEAT
        for _ in range(MOST_STEPS):
            if not step() or self._world.clock.now() > until:
                return
            if self._world.dice.random() < HEARD_AT_ONCE:
                self._hear(self.feeds[-1])
        raise Spinning(f"{self.name} has more to do after {MOST_STEPS} steps of {step.__name__}")
